"""What a URL means to a dialler, what is sent, and what the settings allow."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.accept_encoding import ACCEPT_ENCODING
from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.request import RequestHeads, http_request_of, media_filter, names_list
from nephila.downloader.http.response.decode import codings_of
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.outcome import retry_after_s
from nephila.downloader.service import build
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchKind, FetchRequest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UsageError

from tests.downloader_settings import downloader_config


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://A.test", ("http", "a.test", 80, "a.test", "/")),
        ("https://a.test/x?y#z", ("https", "a.test", 443, "a.test", "/x?y")),
        ("http://a.test:8080/", ("http", "a.test", 8080, "a.test:8080", "/")),
        ("http://a.test:80/", ("http", "a.test", 80, "a.test", "/")),
        ("http://[::1]:81/p", ("http", "::1", 81, "[::1]:81", "/p")),
        ("http://[::1]/", ("http", "::1", 80, "[::1]", "/")),
        ("http://0x7f.1/", ("http", "127.0.0.1", 80, "127.0.0.1", "/")),
        ("http://b\u00fccher.test/\u00e9 x", ("http", "xn--bcher-kva.test", 80, "xn--bcher-kva.test", "/%C3%A9%20x")),
        ("http://u:p@a.test/@:/", ("http", "a.test", 80, "a.test", "/@:/")),
        ("http://a.test?q", ("http", "a.test", 80, "a.test", "/?q")),
    ],
)
def test_parts(url: str, expected: tuple[str, str, int, str, str]) -> None:
    """Scheme, host to dial, port, Host header and request target."""
    target = TargetUrl(url)
    assert (target.scheme, target.dial_host, target.port, target.host_header, target.path) == expected


@pytest.mark.parametrize(
    ("userinfo", "expected"),
    [("user:pass@", "Basic dXNlcjpwYXNz"), ("user@", "Basic dXNlcjo="), ("%C3%BC:%3A@", "Basic w7w6Og=="), ("", "")],
)
def test_credentials(userinfo: str, expected: str) -> None:
    """Userinfo is decoded before it is encoded (RFC 7617)."""
    assert TargetUrl(f"http://{userinfo}a.test/").authorization == expected


@pytest.mark.parametrize(
    ("location", "authorization"),
    [
        ("/y", "Basic dTpw"),
        ("http://a.test/y", "Basic dTpw"),
        ("http://v:w@a.test/y", "Basic dTpw"),
        ("https://a.test/y", ""),
        ("http://b.test/y", ""),
        ("http://v:w@b.test/y", ""),
    ],
)
def test_credentials_and_redirects(location: str, authorization: str) -> None:
    """A redirect keeps the credentials of a URL within its origin, and brings none of its own."""
    assert TargetUrl(location, "http://u:p@a.test/x").authorization == authorization
    assert TargetUrl(location, "http://a.test/x").authorization == ""


@pytest.mark.parametrize(
    "url", ["", "a.test", "/x", "ftp://a/", "http://", "javascript:x", "http://a b/", "http://a:99999/"]
)
def test_no_target(url: str) -> None:
    """What cannot be dialled is a ValueError."""
    with pytest.raises(ValueError):
        TargetUrl(url)


def test_relative() -> None:
    """A base makes references absolute as browsers do."""
    assert TargetUrl("//b.test\\x", "http://a.test/").href == "http://b.test/x"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("99999999999999999999", 86_400.0),
        ("Fri, 15 Jan 2027 08:01:40 GMT", 100.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Fri, 15 Jan 2100 08:00:00 GMT", 86_400.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("1.5", 0.0),
        ("", 0.0),
        ("\u0663", 0.0),
    ],
)
def test_retry_after(value: str, expected: float) -> None:
    """Seconds or a date, a day at most; nonsense is nothing."""
    assert retry_after_s(value, 1_800_000_000.0) == expected


@pytest.mark.parametrize("header", ["X", "X y: z", ": z", "X: a\nY: b", "Host: x", "content-length: 5", "X: \u00e9"])
def test_headers_that_cannot_be_sent(header: str) -> None:
    """A bad header is a usage error at the start, not a failure of every fetch."""
    with pytest.raises(UsageError, match="header"):
        RequestHeads(HttpConfig(headers=(header,)))


def test_agent_with_contact() -> None:
    """The contact stands in the default agent; an own agent replaces it whole."""
    target = TargetUrl("http://a.test/")
    http_request = HttpRequest(target, direct_route(target, ("8.8.8.8",), 80))
    assert b"(+mailto:me@x.test)\r\n" in RequestHeads(HttpConfig(contact="mailto:me@x.test")).make(http_request)
    assert b"\r\nUser-Agent: mine\r\n" in RequestHeads(HttpConfig(user_agent="mine")).make(http_request)


def test_refusal_wins() -> None:
    """A type that is accepted and refused is refused; an empty list accepts nothing but a missing type."""
    wanted = media_filter(["text/*"], ["text/css"])
    assert [wanted(one) for one in ("text/html", "text/css", "image/png", "")] == [True, False, False, True]
    assert [media_filter([], [])(one) for one in ("text/html", "")] == [False, True]


def test_unknown_settings() -> None:
    """An unknown key names the nearest known one; an unknown fetcher names all."""
    with pytest.raises(UsageError, match="per_host"):
        load(DownloaderConfig, {"perhost": 1}, "test")
    clock = ManualClock()
    with pytest.raises(UsageError, match="native"):
        build(downloader_config(fetcher="curl"), LocalBus(clock), clock)
    with pytest.raises(UsageError, match="host map"):
        build(downloader_config(host_map=("x",)), LocalBus(clock), clock)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sitemap.xml", True),
        ("/Sitemap_Index.XML.GZ?page=2", True),
        ("/feed.rss", True),
        ("/x/news.atom", True),
        ("/sitemap-pages-1.gz", True),
        ("/sitemap.txt", True),
        ("/sitemap/backup.tar.gz", False),
        ("/list.txt", False),
        ("/a.gz?x=.xml", False),
        ("/", False),
        ("/sitemap.html", False),
    ],
)
def test_names_of_sitemaps_and_feeds(path: str, expected: bool) -> None:
    """Only the last segment of the path counts."""
    assert names_list(path) is expected


@pytest.mark.parametrize(
    ("path", "fields", "any_type", "keep", "max_bytes"),
    [
        ("/a", {}, False, 0, 0),
        ("/a", {"seed": True}, True, 0, 0),
        ("/sitemap.xml.gz", {}, True, 0, 77),
        ("/robots.txt", {"kind": FetchKind.ROBOTS}, True, 512_000, 0),
        ("/sitemap.xml", {"kind": FetchKind.ROBOTS}, True, 512_000, 0),
    ],
)
def test_what_a_request_takes(path: str, fields: dict[str, Any], any_type: bool, keep: int, max_bytes: int) -> None:
    """A page has the limits of the settings, a list its own; of a robots.txt the first 500 KiB count."""
    target = TargetUrl(f"http://a.test{path}")
    route = direct_route(target, ("8.8.8.8",), 80)
    made = http_request_of(FetchRequest(url=target.href, host="a.test", **fields), target, route, 77, None)
    assert (made.any_type, made.keep, made.max_bytes, made.body) == (any_type, keep, max_bytes, None)


def test_errors_of_the_system_are_broken_connections() -> None:
    """With the error's text, cut; without one its name."""
    for error, detail in ((ConnectionResetError("gone"), "gone"), (TimeoutError(), "TimeoutError")):
        found = AiohttpFetcher._translate(HttpResponse(), error)
        assert (found.reason, found.detail) == ("disconnected", detail)
    assert AiohttpFetcher._translate(HttpResponse(), ValueError("x" * 300)).detail == "x" * 200


@pytest.mark.parametrize("name", ACCEPT_ENCODING.split(", "))
def test_what_is_asked_for_can_be_decoded(name: str) -> None:
    """Every coding of Accept-Encoding has a decoder here."""
    assert len(codings_of(name)) == 1
