"""An expression on paths, rewritten for whole URLs, matches where the expression itself matches the path."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import re2
from nephila.kernel.runtime.errors import UsageError
from nephila_doors.firecrawl.path_patterns import MAX_CHARS, url_expression

PATHS = ("/", "/a", "/a/b", "/shop", "/blog/2024/post-1", "/x", "/b", "/a.html", "/1/2", "/a-b")
QUERIES = ("", "?x=1", "?add-to-cart=1", "?a=/b", "?p=/a", "?q=.html")
URLS = [f"http://{host}{path}{query}" for host in ("a.test", "shop.b.test:80") for path in PATHS for query in QUERIES]
PATTERNS = (
    *("^/a$", "a", "/b", "blog", "test", "shop", "", "^", "$", "^$", "^/$", ".*", "^b", r"^a\.test", "^.*test", "//"),
    *(".*add-to-cart=.*", "[?&]x=", r"\?x", "x=1$", r"\x3fx", "#", "^/[^?]*$", r"\Q?x\E", "[!-~]+=", r"\S=1"),
    *("^/blog/.*", r"\.html$", "[^/]+$", "(^|/)b$", "^/(a|b)$|^/shop", r"/\d+", "/[!-~]+$", r"\Q/a\E$", r"\S+b"),
    *(r"[\W]a", "/a(/b)?$", "(?i)/A$", "[a-c]{1}$", "^/a/?$", r"\/a\/b", "[]a]$", "[^]a]$", r"\D$", "^.?shop"),
    *("(/a|/b)$", "(?:/a)?/b", "^(?:/)?a$", "[^a]b", "^[/x]a$", "/{1,2}a$", "/{0,}a$", "^.b$", "^(|/)b", "(^/a|^/b)$"),
    *("^/.{0,3}$", "[a-z]+://", r"\bb", "(?P<word>/s)hop", "((/|x)a)+$", "[a-]b$", "^/+$"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_matches_the_path_alone(pattern: str) -> None:
    rewritten, original = re2.compile(url_expression(pattern)), re2.compile(pattern)
    differ = [url for url in URLS if bool(rewritten.search(url)) != bool(original.search(urlsplit(url).path))]
    assert differ == []


@pytest.mark.parametrize("pattern", ["a" * (MAX_CHARS + 1), "(" * 50 + "a" + ")" * 50, "[/a]?" * 190 + "b"])
def test_an_expression_that_grows_without_bound_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        url_expression(pattern)
