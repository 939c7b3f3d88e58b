"""URL identity: hrefs, host keys, canonical forms, fingerprints, and what is refused."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from types import ModuleType

import pytest
from nephila import native

from .conftest import core_only


@pytest.mark.parametrize(
    ("url", "href", "host_key", "path_query"),
    [
        ("HTTP://Example.COM", "http://example.com/", "example.com", "/"),
        ("http://example.com:80/a", "http://example.com/a", "example.com", "/a"),
        ("https://example.com:443/a#f", "https://example.com/a", "example.com", "/a"),
        ("https://example.com:80/?q", "https://example.com:80/?q", "example.com:80", "/?q"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example", "/%C3%BC"),
        ("http://u:p@h.test:8080/a/../b/./c?x y", "http://u:p@h.test:8080/b/c?x%20y", "h.test:8080", "/b/c?x%20y"),
        ("http://0x7f.1/", "http://127.0.0.1/", "127.0.0.1", "/"),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/", "[2001:db8::1]:8080", "/"),
        ("  http://a.test/\n ", "http://a.test/", "a.test", "/"),
        ("http://a.test/x^y?^", "http://a.test/x%5Ey?^", "a.test", "/x%5Ey?^"),
        ("http://XN--pokxncvks.test/", "http://xn--pokxncvks.test/", "xn--pokxncvks.test", "/"),
        ("http:\\\\a.test\\b", "http://a.test/b", "a.test", "/b"),
    ],
)
def test_parts(core: ModuleType, url: str, href: str, host_key: str, path_query: str) -> None:
    """An absolute URL is taken apart as the URL Standard says."""
    parts = core.parse_url(url)
    assert (parts.href, parts.host_key, parts.path_query) == (href, host_key, path_query)
    assert parts.scheme == href.split(":")[0]


@pytest.mark.parametrize(
    ("url", "base", "href"),
    [
        ("../x", "http://a.test/b/c/d", "http://a.test/b/x"),
        ("?q=1", "http://a.test/b?old#f", "http://a.test/b?q=1"),
        ("", "http://a.test/b?old#f", "http://a.test/b?old"),
        ("#f", "http://a.test/b?old", "http://a.test/b?old"),
        ("//b.test", "https://a.test/", "https://b.test/"),
        ("///b.test/x", "https://a.test/", "https://b.test/x"),
        ("https:x", "https://a.test/b/c", "https://a.test/b/x"),
    ],
)
def test_relative(core: ModuleType, url: str, base: str, href: str) -> None:
    """A relative URL is resolved against its base."""
    assert core.parse_url(url, base).href == href


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?b=2&a=1", "?a=1&b=2"),
        ("?a=2&a=1&A=3", "?A=3&a=2&a=1"),
        ("?utm_source=x&UTM_medium=y&a", "?a"),
        ("?gclid=1&fbclid=2&_ga=3&mkt_tok=4", ""),
        ("?gclids=1&utm=2&_gaq", "?_gaq&gclids=1&utm=2"),
        ("?&&a=1&&", "?a=1"),
        ("?", ""),
        ("?=", "?="),
        ("?b&a=&=c", "?=c&a=&b"),
        ("?a=%41&a=B&%61=1", "?a=A&a=B&a=1"),
        ("?%75tm_source=x&a", "?a"),
        ("?q=%26%3D%25%41%c3%bc", "?q=%26%3D%25A%c3%bc"),
        (
            "?srsltid=1&hsCtaTracking=2&mtm_x=3&ScCid=4&pk_id=5&hsa_a=6&igsh=7&longer_than_all_names_of_the_table=8",
            "?longer_than_all_names_of_the_table=8&pk_id=5",
        ),
        ("?a=x?y&a;b=1", "?a=x?y&a;b=1"),
    ],
)
def test_canonical(core: ModuleType, query: str, kept: str) -> None:
    """The canonical form drops tracking and empty pieces and sorts the rest stably by raw name."""
    assert core.parse_url(f"http://a.test/p{query}#f").canonical == f"http://a.test/p{kept}"


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/%7Euser/%2D%2e%5f%41%7a%30", "/~user/-._Az0"),
        ("/~user", "/~user"),
        ("/%2F%3F%23%25%20%C3%BC%c3%bc", "/%2F%3F%23%25%20%C3%BC%c3%bc"),
        ("/%2541%4", "/%2541%4"),
        ("/%%41%", "/%A%"),
        ("/a%7e?b=%7E&a=%7e#%7E", "/a~?a=~&b=~"),
    ],
)
def test_unreserved_characters_are_decoded(core: ModuleType, path: str, kept: str) -> None:
    """Percent-encoded letters, digits and - . _ ~ equal the characters in the key; the URL that is fetched stays."""
    for userinfo in ("", "u%7E@"):
        parts = core.parse_url(f"http://{userinfo}a.test{path}")
        assert parts.canonical == f"http://{userinfo}a.test{kept}"
        assert parts.href == f"http://{userinfo}a.test{path.partition('#')[0]}"
    link = core.page_pass(f'<a href="{path}">x'.encode(), "http://a.test/", "utf-8")
    assert link.fingerprints == core.parse_url(f"http://a.test{kept}").fingerprint


def test_each_row_of_the_table_is_removed(core: ModuleType) -> None:
    """Every name of tracking.txt, in any ASCII case, and nothing that begins or ends like it."""
    rows = (Path(native.__file__).parent / "tracking.txt").read_text("utf-8").splitlines()
    names = [row.split()[0] for row in rows if row and not row.startswith("#")]
    assert len(names) == len(set(names)) > 50
    for name in names:
        whole = name.replace("*", "x")
        for written in (whole, whole.upper(), whole.title()):
            assert core.parse_url(f"http://a.test/?{written}=1&b").canonical == "http://a.test/?b", written
        assert core.parse_url(f"http://a.test/?x{whole}=1").canonical == f"http://a.test/?x{whole}=1"
        if not name.endswith("*"):
            assert core.parse_url(f"http://a.test/?{whole}x=1").canonical == f"http://a.test/?{whole}x=1"


@pytest.mark.parametrize("length", [0, 30, 31, 39, 40, 41, 47, 48, 103, 104, 167, 500, 5000])
def test_fingerprint(core: ModuleType, length: int) -> None:
    """The fingerprint is MD5 of host key and canonical URL at every block boundary of MD5."""
    parts = core.parse_url("http://a.test/p" + "x" * length)
    wanted = md5(b"a.test").digest()[:4] + md5(parts.href.encode()).digest()[:12]
    assert parts.fingerprint == wanted


@core_only
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://a.test/", "unsupported scheme 'ftp'"),
        ("mailto:x@a.test", "unsupported scheme 'mailto'"),
        ("http://", "empty host"),
        ("http://a.test:99999/", "invalid port"),
        ("http://[::1", "invalid IPv6 address"),
        ("http://1.2.3.4.5/", "invalid IPv4 address"),
        ("http://a b.test/", "invalid international domain name"),
        ("a.test/x", "relative URL without a base"),
        ("", "relative URL without a base"),
        ("http://\ud800/", "not valid Unicode"),
    ],
)
def test_refusals(core: ModuleType, url: str, reason: str) -> None:
    """What is no http(s) URL is refused with one short reason, as a ValueError."""
    with pytest.raises(core.UrlError) as caught:
        core.parse_url(url)
    assert str(caught.value) == reason
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://a.test/", "unsupported scheme 'ftp'"),
        ("http://", "empty host|not a valid URL"),
        ("http://a.test:99999/", "invalid port|not a valid URL"),
        ("a.test/x", "relative URL without a base"),
        ("http://\ud800/", "not valid Unicode"),
    ],
)
def test_refusals_of_both(core: ModuleType, url: str, reason: str) -> None:
    """Both refuse the same URLs; the frequent reasons have one text."""
    with pytest.raises(core.UrlError, match=reason):
        core.parse_url(url)


def test_refusal_names_the_base(core: ModuleType) -> None:
    """A base that does not parse is said to be the base."""
    with pytest.raises(core.UrlError, match="base: relative URL without a base"):
        core.parse_url("x", "nowhere")


@core_only
@pytest.mark.parametrize("base", ["mailto:a@b.test", "data:,x", "javascript:1"])
def test_refusal_of_a_base_without_hierarchy(core: ModuleType, base: str) -> None:
    """A relative URL cannot be resolved against it, an absolute one needs no base."""
    for parse in (core.parse_url, core.parse_any):
        with pytest.raises(core.UrlError) as caught:
            parse("x", base)
        assert str(caught.value) == "relative URL with a base that has no hierarchy"
    assert core.parse_url("http://a.test/", base).href == "http://a.test/"


def test_any_scheme(core: ModuleType) -> None:
    """parse_any takes every scheme and keeps the fragment."""
    assert core.parse_any("mailto:a@b#f") == "mailto:a@b#f"
    assert core.parse_any("x#f", "ftp://h/a") == "ftp://h/x#f"


def test_partitions() -> None:
    """A partition is the top bits of the fingerprint; doubling the number splits a partition in two."""
    key = bytes.fromhex("c0ffee00" + "0" * 24)
    assert [native.partition_of(key, 1 << bits) for bits in range(5)] == [0, 1, 3, 6, 12]
    for wrong in (0, 3, -4, 1 << 33):
        with pytest.raises(ValueError, match="power of two"):
            native.partition_of(key, wrong)
