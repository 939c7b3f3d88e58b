"""Limits of a body in memory and time, for any division and coding of its bytes."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import brotli
import pytest
from encoders import ENCODERS
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.response.body import Body
from nephila.downloader.http.response.decode import codings_of


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_tiny_pieces_cost_no_more_than_the_body(coding: str) -> None:
    """A body in pieces of two bytes comes to its own size in memory, not to an object for each piece."""
    data = b"xx" * 30_000
    if coding:
        data = zlib.compress(data, 0, 31)
    body = Body(HttpConfig(), codings_of(coding), keep_wire=True)
    tracemalloc.start()
    try:
        for at in range(0, len(data), 2):
            body.feed(data[at : at + 2])
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 3 * len(data)


@pytest.mark.parametrize("outer", ["gzip", "br"])
def test_a_coding_inside_another_is_counted_too(outer: str) -> None:
    """What the outer coding yields is bounded even where the inner one makes nothing of it."""
    nothing = b"\x78\x9c" + b"\x00\x00\x00\xff\xff" * 200_000  # zlib: stored blocks without a byte in them
    wire = gzip.compress(nothing) if outer == "gzip" else brotli.compress(nothing)
    body = Body(HttpConfig(max_body_bytes=500_000), codings_of(f"deflate, {outer}"))
    with pytest.raises(FetchError) as caught:
        body.feed(wire)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("coding", list(ENCODERS))
@pytest.mark.parametrize("size", [1, 262_143, 491_457, 3_000_000])
def test_much_from_one_read(coding: str, size: int) -> None:
    """A body that comes in one read is whole however many pieces its decoder makes of it."""
    data = b"".join(b"<li>%d</li>\n" % (number % 977) for number in range(size // 10 + 1))[:size]
    body = Body(HttpConfig(max_ratio=1e9), codings_of(coding))
    body.feed(ENCODERS[coding](data))
    assert body.finish() == data


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_members_without_end(coding: str) -> None:
    """A thousand empty members are a file of joined logs; more are refused instead of being counted."""
    empty = ENCODERS[coding](b"")
    body = Body(HttpConfig(), codings_of(coding))
    body.feed(empty * 999 + ENCODERS[coding](b"end"))
    assert body.finish() == b"end"
    body = Body(HttpConfig(), codings_of(coding))
    with pytest.raises(FetchError, match="over 1000"):
        body.feed(empty * 1001)


def test_empty_members_inside_another_coding() -> None:
    """75 KB that become a million empty members are refused at four times what was sent."""
    body = Body(HttpConfig(), codings_of("gzip, gzip"))
    wire = gzip.compress(gzip.compress(b"", mtime=0) * 1_000_000)
    assert len(wire) < 75_000
    with pytest.raises(FetchError, match=r"between two content codings|over 1000 gzip members"):
        body.feed(wire)


def test_every_step_is_short() -> None:
    """Between two steps lie at most 16 KiB of input and 256 KiB of output."""
    body = Body(HttpConfig(), codings_of("gzip"))
    assert sum(1 for _ in body.steps(gzip.compress(b"a" * 1_000_000))) >= 4
    body = Body(HttpConfig(), codings_of("deflate"))
    assert sum(1 for _ in body.steps(b"\x78\x9c" + b"\x00\x00\x00\xff\xff" * 50_000)) >= 15
