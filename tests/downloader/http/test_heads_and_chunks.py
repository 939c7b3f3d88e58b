"""Framing by response headers, and content codings cut anywhere."""

from __future__ import annotations

import gzip
import random

import pytest
import zstandard
from encoders import ENCODERS
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.response import response_head
from nephila.downloader.http.response.body import Body
from nephila.downloader.http.response.decode import codings_of
from nephila.kernel.pages import mime


@pytest.mark.parametrize("status", [200, 204, 304])
def test_a_length_beside_transfer_encoding_ends_the_connection(status: int) -> None:
    """Whatever the coding, the status and the method; and any transfer coding of an HTTP/1.0 server."""
    for coding in ("chunked", "identity"):
        both = {"transfer-encoding": coding, "content-length": "3"}
        assert response_head.framing(status, both)[1] is False
        assert response_head.is_exact(both) is False
    chunked = {"transfer-encoding": "chunked", "connection": "keep-alive"}
    assert response_head.keeps_alive(chunked, True)
    assert not response_head.keeps_alive(chunked, False)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content-length": "5"}, (5, True)),
        ({"content-length": "5, 5"}, (5, False)),
        ({}, (response_head.UNTIL_CLOSE, False)),
        ({"transfer-encoding": "Chunked"}, (response_head.CHUNKED, True)),
        ({"transfer-encoding": "identity, chunked"}, (response_head.CHUNKED, True)),
        ({"transfer-encoding": "chunked, chunked"}, (response_head.CHUNKED, False)),
        ({"transfer-encoding": "identity"}, (response_head.UNTIL_CLOSE, False)),
        ({"transfer-encoding": "chunked", "content-length": "1"}, (response_head.CHUNKED, False)),
    ],
)
def test_framing(headers: dict[str, str], expected: tuple[int, bool]) -> None:
    """RFC 9112 6.3, and a connection is used again only where the length is beyond doubt."""
    assert response_head.framing(200, headers) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": "-1"},
        {"content-length": "+5"},
        {"content-length": "5, 6"},
        {"content-length": ""},
        {"content-length": "5x"},
        {"content-length": "\u0665"},
        {"content-length": "9" * 30},
        {"transfer-encoding": "gzip, chunked"},
        {"transfer-encoding": "chunked, gzip, chunked"},
        {"transfer-encoding": "chunked, gzip"},
    ],
)
def test_framing_nobody_understands(headers: dict[str, str]) -> None:
    """A length that is none ends the fetch."""
    with pytest.raises(FetchError):
        response_head.framing(200, headers)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html", ("text/html", "")),
        ("Text/HTML; Charset=UTF-8", ("text/html", "utf-8")),
        ('text/html;charset="windows-1252"; x=y', ("text/html", "windows-1252")),
        ("text/html;;charset='x'", ("text/html", "x")),
        ("text/plain, text/html; charset=a", ("text/html", "a")),
        ("text/html; charset=a, text/html", ("text/html", "a")),
        ("text/html; charset=a, text/html; charset=b", ("text/html", "b")),
        ("text/html; charset=a, text/plain", ("text/plain", "")),
        ("text/html; charset=a, */*; charset=b", ("text/html", "a")),
        ("text/html; charset=a, nonsense,", ("text/html", "a")),
        ('text/html; x="a, text/plain"; charset=b', ("text/html", "b")),
        ("nonsense", ("", "")),
        ("; charset=utf-8", ("", "utf-8")),
        ("", ("", "")),
    ],
)
def test_media_types(value: str, expected: tuple[str, str]) -> None:
    """Type and charset in lower case, with any text around them."""
    assert mime.media_type(value) == expected


@pytest.mark.parametrize("coding", ENCODERS)
def test_codings_cut_anywhere(coding: str) -> None:
    """The same body comes out wherever the wire is cut, also around the size of a piece."""
    rng = random.Random(6)
    for size in (0, 1, 1_000, 262_144, 700_001):
        text = rng.randbytes(size // 2) + b"x" * (size - size // 2)
        wire = ENCODERS[coding](text)
        body, at = Body(HttpConfig(), codings_of(coding)), 0
        while at < len(wire):
            step = rng.choice((1, 7, 5_000, 100_000))
            body.feed(memoryview(wire)[at : at + step])
            at += step
        assert body.finish() == text
        assert body.wire_bytes == len(wire)


def test_gzip_members_cut_anywhere() -> None:
    """The start of the next member may be torn from the end of the one before."""
    wire = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two") + b"garbage" * 9
    for cut in range(1, len(wire)):
        body = Body(HttpConfig(), codings_of("gzip"))
        body.feed(wire[:cut])
        body.feed(wire[cut:])
        assert body.finish() == b"onetwo"


def zstd_ends(wire: bytes) -> bool:
    """Whether a zstd stream is there to its end."""
    body = Body(HttpConfig(), codings_of("zstd"))
    body.feed(wire)
    try:
        body.finish()
    except FetchError:
        return False
    return True


def test_zstd_frames() -> None:
    """Every prefix of a zstd stream is known to be incomplete; frames, skippable ones too, follow each other."""
    rng = random.Random(7)
    one = zstandard.ZstdCompressor(write_checksum=True).compress(rng.randbytes(300_000))
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    two = stream.compress(b"abc" * 90_000) + stream.flush()
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    for frame in (one, two):
        assert zstd_ends(frame + b"garbage")
        assert not any(zstd_ends(frame[:cut]) for cut in range(5, len(frame), 1 + len(frame) // 500))
    body = Body(HttpConfig(), codings_of("zstd"))
    body.feed(one + skippable + two)
    assert len(body.finish()) == 570_000


def test_codings_under_noise() -> None:
    """Broken streams end in a result or in a FetchError, never in another exception."""
    rng = random.Random(8)
    for coding, encode in ENCODERS.items():
        wire = encode(rng.randbytes(2_000) + b"x" * 2_000)
        for _ in range(200):
            noisy = bytearray(wire)
            for _ in range(rng.randrange(1, 4)):
                noisy[rng.randrange(len(noisy))] = rng.randrange(256)
            body = Body(HttpConfig(), codings_of(coding))
            reason = ""
            try:
                for at in range(0, len(noisy), 700):
                    body.feed(bytes(noisy[at : at + 700]))
                body.finish()
            except FetchError as error:
                reason = error.reason
            assert reason in ("", "encoding", "too_large")
