"""Cookies are sent to the hosts that they belong to, and to no other."""

from __future__ import annotations

import random

import pytest
from nephila.downloader.middleware import cookie_jar
from nephila.downloader.middleware.cookie_jar import CookieJar
from nephila.downloader.middleware.cookie_syntax import parse_set_cookie, read_cookie_file
from nephila.kernel.runtime.errors import UsageError

NOW = 1_800_000_000.0


def jar_of(*headers: str, host: str = "a.example.com", path: str = "/", secure: bool = True) -> CookieJar:
    """A jar with what one answer has set."""
    jar = CookieJar()
    jar.set_all(headers, host, path, secure, NOW)
    jar.check()
    return jar


@pytest.mark.parametrize(
    ("header", "host", "goes"),
    [
        ("k=v", "a.example.com", True),
        ("k=v", "b.a.example.com", False),
        ("k=v", "example.com", False),
        ("k=v; domain=example.com", "b.example.com", True),
        ("k=v; domain=.Example.COM", "example.com", True),
        ("k=v; domain=example.com", "badexample.com", False),
        ("k=v; domain=example.com", "example.com.evil.test", False),
        ("k=v; domain=evil.test", "evil.test", False),
        ("k=v; domain=b.example.com", "b.example.com", False),
        ("k=v; domain=com", "other.com", False),
        ("k=v; domain=com", "a.example.com", False),
    ],
)
def test_hosts(header: str, host: str, goes: bool) -> None:
    """A cookie stays with its host, or below a domain that its host is in."""
    assert jar_of(header).header(host, "/", True, NOW) == ("k=v" if goes else "")


@pytest.mark.parametrize(
    ("header", "path", "goes"),
    [
        ("k=v; path=/a", "/a", True),
        ("k=v; path=/a", "/a/b", True),
        ("k=v; path=/a", "/ab", False),
        ("k=v; path=/a", "/", False),
        ("k=v; path=/a/", "/a/b", True),
        ("k=v; path=/a/", "/a", False),
        ("k=v; path=a", "/a", True),
        ("k=v", "/elsewhere", True),
    ],
)
def test_paths(header: str, path: str, goes: bool) -> None:
    """A cookie of /a goes to /a and below it, not to /ab."""
    assert jar_of(header).header("a.example.com", path, True, NOW) == ("k=v" if goes else "")


def test_a_public_suffix_sets_none_for_all() -> None:
    """github.io belongs to many; a site of that very name keeps its own cookie."""
    assert len(jar_of("k=v; domain=github.io", host="me.github.io")) == 0
    jar = jar_of("k=v; domain=github.io", host="github.io")
    assert jar.header("github.io", "/", True, NOW) == "k=v"
    assert jar.header("me.github.io", "/", True, NOW) == ""
    assert len(jar_of("k=v; domain=co.uk", host="shop.co.uk")) == 0


def test_addresses_and_names_of_an_intranet() -> None:
    """An address has no domains; below an unknown top-level domain the last two labels are a site."""
    jar = jar_of("k=v; domain=0.0.1", "l=w", host="127.0.0.1")
    assert jar.header("127.0.0.1", "/", True, NOW) == "l=w"
    assert jar.header("9.0.0.1", "/", True, NOW) == ""
    jar = jar_of("k=v; domain=shop.test", host="www.shop.test")
    assert jar.header("api.shop.test", "/", True, NOW) == "k=v"
    assert len(jar_of("k=v; domain=test", host="www.shop.test")) == 0


def test_secure_cookies_leave_over_https_alone() -> None:
    """And http sets none."""
    jar = jar_of("k=v; Secure")
    assert jar.header("a.example.com", "/", True, NOW) == "k=v"
    assert jar.header("a.example.com", "/", False, NOW) == ""
    assert len(jar_of("k=v; Secure", secure=False)) == 0


def test_time() -> None:
    """Max-Age wins over Expires; what has expired is gone; a cookie set again with a past date is deleted."""
    jar = jar_of("k=v; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
    assert jar.header("a.example.com", "/", True, NOW + 9) == "k=v"
    assert jar.header("a.example.com", "/", True, NOW + 10) == ""
    jar = jar_of("k=v")
    jar.set_all(["k=; Max-Age=0"], "a.example.com", "/", True, NOW)
    jar.check()
    assert len(jar) == 0


@pytest.mark.parametrize(
    "date", ["Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01-Jan-1970 00:00:01 GMT", "Mon, 01 Jan 1900 00:00:00 GMT"]
)
def test_a_date_at_the_epoch_deletes(date: str) -> None:
    """The instant 0 is a date like any other, also behind another Expires; a text that is no date has no effect."""
    for attributes in (f"Expires={date}", f"Expires=Fri, 07 Aug 2037 08:04:19 GMT; Expires={date}; Expires=soon"):
        jar = jar_of("k=v")
        jar.set_all([f"k=; {attributes}"], "a.example.com", "/", True, NOW)
        assert len(jar) == 0


def test_other_hosts_do_not_evict_the_cookies_of_a_login() -> None:
    """One host that sets many cookies for the whole domain loses its own; of many hosts the last ones lose theirs."""
    for host in ("x.example.com", "x{}.example.com"):
        for attributes in ("; Domain=example.com", ""):
            jar = CookieJar()
            jar.set_all(["sid=1; Domain=example.com", "own=2"], "www.example.com", "/", True, NOW)
            for number in range(400):
                jar.set_all([f"k{number}={'v' * 300}{attributes}"], host.format(number), "/", True, NOW + number)
            jar.set_all(["late=3"], "www.example.com", "/", True, NOW + 500)
            jar.check()
            assert {"sid=1", "own=2", "late=3"} <= set(jar.header("www.example.com", "/", True, NOW + 501).split("; "))


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest cookie of a site goes, the site that was not used for longest, and a cookie that is too large."""
    monkeypatch.setattr(cookie_jar, "MAX_SITES", 3)
    jar = jar_of(*(f"k{number}=v" for number in range(200)))
    assert len(jar) == cookie_jar.MAX_PER_DOMAIN
    assert jar.header("a.example.com", "/", True, NOW).endswith("k199=v")
    for number in range(5):
        jar.set_all(["k=v"], f"s{number}.example.net", "/", True, NOW)
        jar.set_all(["k=v"], f"www.s{number}.org", "/", True, NOW)
        jar.check()
    assert jar.header("a.example.com", "/", True, NOW) == ""
    assert parse_set_cookie(f"k={'v' * 4096}", NOW) is None


@pytest.mark.parametrize("many", ["k{}=v; domain=example.com", "k{}=" + "v" * 4000])
def test_a_host_cannot_evict_the_cookies_of_another(many: str) -> None:
    """Not by their number and not by their size; its own oldest ones go."""
    jar = jar_of("login=1", "old=1; Max-Age=1")
    for number in range(400):
        jar.set_all([many.format(number)], f"evil{number % 3}.example.com", "/", True, NOW + 2)
        jar.check()
    assert "login=1" in jar.header("a.example.com", "/", True, NOW)
    assert len(jar) > 10


def test_secure_cookies_go_last_within_their_domain() -> None:
    """RFC 6265bis 5.7."""
    jar = jar_of("login=1; Secure", *(f"k{number}=v" for number in range(200)))
    assert "login=1" in jar.header("a.example.com", "/", True, NOW)


@pytest.mark.parametrize(
    ("header", "host", "path", "kept"),
    [
        ("login=evil", "a.example.com", "/", False),
        ("login=evil; Max-Age=0", "a.example.com", "/", False),
        ("login=evil; domain=example.com", "b.example.com", "/", False),
        ("login=evil; path=/deep", "a.example.com", "/", False),
        ("login=evil", "b.example.com", "/", True),
        ("other=1", "a.example.com", "/", True),
    ],
)
def test_http_leaves_secure_cookies_alone(header: str, host: str, path: str, kept: bool) -> None:
    """Neither replaced, nor deleted, nor hidden by one of a longer path or a wider domain."""
    jar = jar_of("login=1; Secure")
    before = len(jar)
    jar.set_all([header], host, path, False, NOW)
    assert (len(jar) > before) is kept
    assert "login=1" in jar.header("a.example.com", "/deep", True, NOW)
    assert "evil" not in jar.header("a.example.com", "/deep", True, NOW)


@pytest.mark.parametrize(
    ("header", "secure", "kept"),
    [
        ("__Secure-k=v; Secure", True, True),
        ("__Secure-k=v; Secure; domain=example.com", True, True),
        ("__Secure-k=v", True, False),
        ("__secure-k=v", True, False),
        ("__Secure-k=v; Secure", False, False),
        ("__Host-k=v; Secure; path=/", True, True),
        ("__Host-k=v; Secure", True, False),
        ("__Host-k=v; Secure; path=/x", True, False),
        ("__Host-k=v; path=/", True, False),
        ("__HOST-k=v; Secure; path=/; domain=a.example.com", True, False),
        ("__Host-k=v; Secure; path=/", False, False),
    ],
)
def test_prefixes_promise_what_a_cookie_has(header: str, secure: bool, kept: bool) -> None:
    """In any case of letters."""
    assert len(jar_of(header, secure=secure)) == int(kept)


def test_no_cookie_reaches_another_site() -> None:
    """Random cookies of random hosts: each that is sent was set by a host of the same site."""
    rng = random.Random(6265)
    hosts = ["a.com", "b.a.com", "c.b.a.com", "ba.com", "a.co.uk", "b.co.uk", "x.github.io", "y.github.io", "127.0.0.1"]
    jar = CookieJar()
    for _ in range(2_000):
        host, domain = rng.choice(hosts), rng.choice([*hosts, "com", "co.uk", "github.io", "0.1"])
        jar.set_all([f"{host}_{rng.randrange(3)}=v; domain={domain}"], host, "/", True, NOW)
        asked = rng.choice(hosts)
        for pair in jar.header(asked, "/", True, NOW).split("; "):
            setter = pair.partition("=")[0].rpartition("_")[0]
            family = {"a.com", "b.a.com", "c.b.a.com"}
            assert setter in ("", asked) or {setter, asked} <= family, (setter, asked)
    jar.check()


FILE = (
    "# Netscape HTTP Cookie File\n\n.example.com\tTRUE\t/\tFALSE\t0\tall\t1\n"
    "#HttpOnly_a.example.com\tFALSE\t/x\tTRUE\t1999999999\tone\t2\nb.example.com\tFALSE\t/\tFALSE\t5\told\t3\n"
)


def test_a_cookie_file() -> None:
    """Domains, paths, https and expiry as browsers and curl write them."""
    jar = CookieJar()
    for domain, below, cookie in read_cookie_file(FILE, "cookies.txt"):
        assert jar.load(cookie, domain, below, NOW)
    assert jar.header("a.example.com", "/x", True, NOW) == "one=2; all=1"
    assert jar.header("a.example.com", "/x", False, NOW) == "all=1"
    assert jar.header("b.example.com", "/", True, NOW) == "all=1"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("hello\n", "f:1: not a cookie file line"),
        ("# x\na.test\tTRUE\t/\tFALSE\tsoon\tk\tv\n", "f:2: 'soon' is not an expiry"),
        ("\tTRUE\t/\tFALSE\t0\tk\tv\n", "f:1: domain"),
    ],
)
def test_a_file_that_is_none(text: str, error: str) -> None:
    """The line is named; the value of a cookie is not repeated."""
    with pytest.raises(UsageError, match=error):
        read_cookie_file(text, "f")
