"""Set-Cookie against the parser tests of the http-state working group."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from nephila.downloader.middleware.cookie_jar import CookieJar
from nephila.downloader.middleware.cookie_syntax import parse_date

from tests.acceptance import locate

pytestmark = pytest.mark.conformance

NOW = 1_303_000_000.0
"""The files are of April 2011."""
DIFFERENT = {
    "0028",  # its expectation is a header Set-Cookie, no Cookie: nothing is sent here either
    "disabled-chromium0022",  # a NUL: RFC 6265bis ignores the cookie
    "disabled-chromium0023",  # a CR alone, likewise
    "disabled-path0029",  # escapes in a path are compared as they are written, as browsers do
}


def case(path: Path) -> tuple[list[str], str, str, str]:
    """Set-Cookie headers, the URL that set them, the URL asked next, and the Cookie header that is expected."""
    name = path.name.removesuffix("-test")
    url = f"http://home.example.org:8888/cookie-parser?{name}"
    sent, following = [], f"/cookie-parser-result?{name}"
    for line in path.read_bytes().decode("latin-1").split("\n"):
        header, _, value = line.rstrip("\r").partition(":")
        if header.lower() == "set-cookie":
            sent.append(value.removeprefix(" "))
        elif header.lower() == "location":
            following = value.strip()
    expected = path.with_name(f"{name}-expected").read_bytes().decode("latin-1").strip("\r\n")
    return sent, url, urljoin(url, following), expected.removeprefix("Cookie:").strip(" ")


def test_every_parser_case() -> None:
    """222 cases: all but those that are named above."""
    different = set()
    paths = sorted((locate("cookies-http-state") / "tests" / "data" / "parser").glob("*-test"))
    for path in paths:
        sent, url, following, expected = case(path)
        jar, there, then = CookieJar(), urlsplit(url), urlsplit(following)
        jar.set_all(sent, there.hostname or "", there.path, there.scheme == "https", NOW)
        jar.check()
        if jar.header(then.hostname or "", then.path, then.scheme == "https", NOW) != expected:
            different.add(path.name.removesuffix("-test"))
    assert len(paths) == 222
    assert different == DIFFERENT


def test_every_date() -> None:
    """Dates as browsers read them; null is none."""
    data = json.loads((locate("cookies-http-state") / "tests" / "data" / "dates" / "examples.json").read_text())
    for one in data:
        expected = one["expected"] and parsedate_to_datetime(one["expected"]).timestamp()
        assert parse_date(one["test"]) == expected, one
