"""The quick search before RE2: it may find too much, never too little."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
import re2
from nephila.downloader.middleware import block_pages

from .conftest import core_only

PIECES = (
    *(b"window.", b"KPSDK ", b"=", b"\x0b", b"\n", b" ", b"\xff", b"\xc5\xbf", b"/_fs-ch-", b"a9", b"/", b"ID", b"id="),
    *(b"'px-captcha", b"anubis_challenge", b"cf-error-details", b"You have been blocked", b"you have been blocked"),
    *(b"Access Denied", b"LOG  IN", b"log in", b"not a bot", b"hello", b"<title>", b"_cf_chl_opt", b"rbzreqid"),
)
PATTERNS = ("_ANY_MARKUP", "_TITLE")


@pytest.mark.parametrize("name", PATTERNS)
def test_what_re2_finds_may_match(core: ModuleType, name: str) -> None:
    """For the patterns of block pages, on texts of their pieces and bytes of any value."""
    pattern = block_pages._plain(getattr(block_pages, name))
    may_match, search, chance = (
        core.PatternFilter(pattern).may_match,
        re2.compile(pattern.encode()).search,
        random.Random(7),
    )
    found = 0
    for _ in range(4_000):
        text = b"".join(chance.choices(PIECES, k=chance.randrange(0, 9)))
        if search(text):
            found += 1
            assert may_match(text), text
    assert found > 100


@core_only
@pytest.mark.parametrize("name", PATTERNS)
def test_ordinary_pages_are_left_out(core: ModuleType, name: str) -> None:
    """Else the search would be of no use."""
    may_match = core.PatternFilter(block_pages._plain(getattr(block_pages, name))).may_match
    assert not may_match(b"<!doctype html><title>News</title><p>The river rose by a metre this week." * 40)


@core_only
def test_an_unknown_pattern_is_an_error(core: ModuleType) -> None:
    """At its construction."""
    with pytest.raises(ValueError):
        core.PatternFilter("(")
