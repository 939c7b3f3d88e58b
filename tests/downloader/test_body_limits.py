"""What a body may cost in memory and time, whatever way its bytes are cut or packed."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from encoders import ENCODERS
from nephila.downloader.body import Body
from nephila.downloader.chunked import Chunked
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.decode import codings_of, zstd_complete
from nephila.downloader.fetcher import FetchError


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_tiny_chunks_cost_no_more_than_the_body(coding: str) -> None:
    """A body of two-byte chunks comes to its own size in memory, not to an object for each chunk."""
    data = b"xx" * 300_000
    if coding:
        data = zlib.compress(data, 0, 31)
    wire = b"".join(b"2\r\n%b\r\n" % data[at : at + 2] for at in range(0, len(data) - 1, 2))
    chunked, body = Chunked(), Body(DownloaderConfig(), codings_of(coding), keep_wire=True)
    tracemalloc.start()
    try:
        for at in range(0, len(wire), 1 << 16):
            for piece in chunked.feed(memoryview(wire)[at : at + (1 << 16)]):
                body.feed(piece)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 3 * len(data)


@pytest.mark.parametrize("outer", ["gzip", "br"])
def test_a_coding_inside_another_is_counted_too(outer: str) -> None:
    """What the outer coding yields is bounded even where the inner one makes nothing of it."""
    nothing = b"\x78\x9c" + b"\x00\x00\x00\xff\xff" * 200_000  # zlib: stored blocks without a byte in them
    wire = gzip.compress(nothing) if outer == "gzip" else brotli.compress(nothing)
    body = Body(DownloaderConfig(max_body_bytes=500_000), codings_of(f"deflate, {outer}"))
    with pytest.raises(FetchError) as caught:
        body.feed(wire)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("coding", list(ENCODERS))
@pytest.mark.parametrize("size", [1, 262_143, 491_457, 3_000_000])
def test_much_from_one_read(coding: str, size: int) -> None:
    """A body that comes in one read is whole however many pieces its decoder makes of it."""
    data = b"".join(b"<li>%d</li>\n" % (number % 977) for number in range(size // 10 + 1))[:size]
    body = Body(DownloaderConfig(max_ratio=1e9), codings_of(coding))
    body.feed(ENCODERS[coding](data))
    assert body.finish() == data


@pytest.mark.parametrize("filler", [b"\x50\x2a\x4d\x18\0\0\0\0", b"\0\0\0"])
def test_zstd_headers_without_end(filler: bytes) -> None:
    """Millions of empty frames or blocks are refused instead of being counted."""
    start = zstandard.compress(b"")[:6] if len(filler) == 3 else b""
    with pytest.raises(FetchError, match="zstd blocks"):
        zstd_complete(start + filler * 1_100_000 + b"\1\0\0")
