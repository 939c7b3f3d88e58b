"""Routes of single-page applications: part of a URL only if the job follows routes."""

from __future__ import annotations

import hashlib

import pytest
from nephila.kernel.documents.job_document import keeps_routes
from nephila.kernel.documents.job_schema import JobSpec, Parse
from nephila.kernel.fragment_routes import parse_for, parse_routed, redirected
from nephila.native import UrlError, fallback, parse_url, partition_of
from nephila.native import parse_any as native_any


@pytest.mark.parametrize(
    ("url", "href", "canonical"),
    [
        ("http://A.test#/x", "http://a.test/#/x", "http://a.test/#/x"),
        ("http://a.test/p?b=2&a=1&utm_source=m#!/x", "http://a.test/p?b=2&a=1&utm_source=m#!/x", "http://a.test/p?a=1&b=2#!/x"),
        ("http://a.test/#!x", "http://a.test/#!x", "http://a.test/#!x"),
        ("http://a.test/#/caf\u00e9 1?b=2&a=1", "http://a.test/#/caf%C3%A9%201?b=2&a=1", "http://a.test/#/caf%C3%A9%201?b=2&a=1"),
        ("http://a.test/#/a#/b", "http://a.test/#/a#/b", "http://a.test/#/a#/b"),
    ],
)  # fmt: skip
def test_a_route_is_part_of_the_url(url, href, canonical):
    """In the spelling of the URL standard; host key and partition are those of the page."""
    parts, bare = parse_routed(url), parse_url(url)
    assert (parts.href, parts.canonical, parts.host_key) == (href, canonical, bare.host_key)
    assert parts.path_query == bare.path_query
    assert parts.fingerprint[:4] == bare.fingerprint[:4]
    assert parts.fingerprint[4:] == hashlib.md5(canonical.encode(), usedforsecurity=False).digest()[:12]
    assert partition_of(parts.fingerprint, 64) == partition_of(bare.fingerprint, 64)
    assert parse_routed(href).fingerprint == parts.fingerprint


@pytest.mark.parametrize("fragment", ["", "#", "#/", "#!", "#!/", "#top", "#%2Fx", "# /x", "#?a=/"])
def test_other_fragments_are_dropped(fragment):
    """Anchors within a page, and the front page of the application, have no route."""
    parts = parse_routed(f"http://a.test/p{fragment}")
    assert (parts.href, parts.fingerprint) == ("http://a.test/p", parse_url("http://a.test/p").fingerprint)


def test_both_cores_write_a_fragment_alike():
    """The identity of routes depends on it."""
    for url in ('http://a.test/#/\u00fc`<>" x', "http://a.test/#!/%zz\t\n^|", "http://a.test/#/\ud800"):
        texts = []
        for parse in (native_any, fallback.parse_any):
            try:
                texts.append(parse(url))
            except (UrlError, ValueError) as error:
                texts.append(type(error).__name__)
        assert texts[0] == texts[1]


def test_a_job_decides():
    """Without the word `route` URLs are unchanged."""
    assert parse_for(True, "http://a.test/#/x").href == "http://a.test/#/x"
    assert keeps_routes(JobSpec(parse=Parse(follow=["next", "route"])))
    assert not keeps_routes(JobSpec(parse=Parse(follow=["next"])))
    assert parse_for(False, "http://a.test/#/x").href == "http://a.test/"
    assert redirected(False, "https://a.test/", "http://a.test/#/x").href == "https://a.test/"


def test_a_redirect_keeps_the_route():
    """Unless the target has a fragment."""
    assert redirected(True, "https://a.test/", "http://a.test/#/x").href == "https://a.test/#/x"
    assert redirected(True, "https://a.test/#/y", "http://a.test/#/x").href == "https://a.test/#/y"
    assert redirected(True, "https://a.test/#top", "http://a.test/#/x").href == "https://a.test/"
    assert redirected(True, "https://a.test/", "http://a.test/").href == "https://a.test/"
    with pytest.raises(UrlError):
        redirected(True, "mailto:x", "http://a.test/#/x")
