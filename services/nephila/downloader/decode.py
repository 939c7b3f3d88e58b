"""Content codings taken off with bounded output: gzip (of any number of members), deflate (zlib or raw), br, zstd.

A coding is a generator over pieces of at most PIECE_BYTES, so a bomb costs one piece of memory before the limits of
`body.Body` stop it. zstd is the exception: its library bounds output only when it pulls, so the wire bytes, themselves
limited, are gathered first.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import brotli
import zstandard

from nephila.downloader.chunked import Piece
from nephila.downloader.fetcher import FetchError

fast_zlib: Any = zlib
try:
    from isal import isal_zlib

    fast_zlib = isal_zlib
except ImportError:  # no wheel for this machine: 2.4 times the time
    pass

PIECE_BYTES = 256 << 10
MAX_CODINGS = 2
# RFC 9659: a content coding needs no larger window than 8 MiB.
_ZSTD_WINDOW = 8 << 20
# A million headers are 0.1 s in one piece; 32 bytes a block is no compression any more.
_ZSTD_BLOCKS = 1 << 20
# What servers send that is no coding at all; browsers read the body as it is.
_NO_CODING = frozenset(("", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8", "iso-8859-1", "text"))
_ZLIB_ERRORS: tuple[type[Exception], ...] = (zlib.error, fast_zlib.error)


class Coding(Protocol):
    """One coding being taken off."""

    def pump(self, data: Piece) -> Iterator[bytes]:
        """Decoded pieces of what `data` makes available; raises `FetchError` (encoding)."""

    def finish(self) -> Iterator[bytes]:
        """The rest; raises `FetchError` when the stream is not complete."""


class _Gzip:
    def __init__(self) -> None:
        self._inner: Any = fast_zlib.decompressobj(31)
        self._begun = False
        self._ended = False
        self._start = b""

    def pump(self, data: Piece) -> Iterator[bytes]:
        if self._ended:
            data = self._next_member(bytes(data))
        while data:
            self._begun = True
            yield from _inflate(self._inner, data, "gzip")
            if not self._inner.eof:
                return
            self._ended = True
            data = self._next_member(self._inner.unused_data)

    def _next_member(self, data: bytes) -> bytes:
        """Behind a member comes another, padding, or garbage that everybody ignores."""
        data = self._start + data
        if data[:2] == b"\x1f\x8b":
            self._inner, self._ended, self._start = fast_zlib.decompressobj(31), False, b""
            return data
        self._start = data if data in (b"", b"\x1f") else b"\0"
        return b""

    def finish(self) -> Iterator[bytes]:
        if self._begun and not self._ended:
            raise FetchError("encoding", "the gzip stream ends early")
        return iter(())


class _Deflate:
    """RFC 9110 8.4.1.2 says zlib format; raw deflate is so common that browsers take both."""

    def __init__(self) -> None:
        self._inner: Any = None
        self._start = b""

    def pump(self, data: Piece) -> Iterator[bytes]:
        if self._inner is None:
            data = self._start + bytes(data)
            if len(data) < 2:
                self._start = data
                return
            is_zlib = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._inner = fast_zlib.decompressobj(15 if is_zlib else -15)
            self._start = b""
        if not self._inner.eof:
            yield from _inflate(self._inner, data, "deflate")

    def finish(self) -> Iterator[bytes]:
        if self._start or (self._inner is not None and not self._inner.eof):
            raise FetchError("encoding", "the deflate stream ends early")
        return iter(())


def _inflate(inner: Any, data: Piece, name: str) -> Iterator[bytes]:
    try:
        out = inner.decompress(data, PIECE_BYTES)
        while out:
            yield out
            if inner.eof or (len(out) < PIECE_BYTES and not inner.unconsumed_tail):
                return
            out = inner.decompress(inner.unconsumed_tail, PIECE_BYTES)
    except _ZLIB_ERRORS as error:
        raise FetchError("encoding", f"broken {name} stream: {error}") from None


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._begun = False

    def pump(self, data: Piece) -> Iterator[bytes]:
        inner = self._inner
        if inner.is_finished():
            return
        self._begun = True
        try:
            out = inner.process(data, output_buffer_limit=PIECE_BYTES)
            while out:
                yield out
                if inner.is_finished():
                    return
                # can_accept_more_data() tells of input only: there may be output left where it is true.
                out = inner.process(b"", output_buffer_limit=PIECE_BYTES)
        except brotli.error as error:
            raise FetchError("encoding", f"broken br stream: {error}") from None

    def finish(self) -> Iterator[bytes]:
        if self._begun and not self._inner.is_finished():
            raise FetchError("encoding", "the br stream ends early")
        return iter(())


class _Zstd:
    def __init__(self) -> None:
        self._wire: list[bytes] = []

    def pump(self, data: Piece) -> Iterator[bytes]:
        self._wire.append(bytes(data))
        return iter(())

    def finish(self) -> Iterator[bytes]:
        wire = b"".join(self._wire)
        if not wire:
            return
        if not zstd_complete(wire):  # the reader would not tell
            raise FetchError("encoding", "the zstd stream ends early")
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        try:
            with decompressor.stream_reader(io.BytesIO(wire), read_across_frames=True) as reader:
                while out := reader.read(PIECE_BYTES):
                    yield out
        except zstandard.ZstdError as error:
            raise FetchError("encoding", f"broken zstd stream: {error}") from None


def zstd_complete(wire: bytes) -> bool:
    """True when every zstd frame is there to its end; looks at headers only (RFC 8878 3.1). O(blocks).

    Raises `FetchError` (encoding) for more frames and blocks than any server makes.
    """
    at = 0
    left = _ZSTD_BLOCKS
    while at < len(wire):
        left -= 1
        if left < 0:
            raise FetchError("encoding", f"over {_ZSTD_BLOCKS} zstd blocks")
        magic = wire[at : at + 4]
        if magic[1:] == b"\x2a\x4d\x18" and 0x50 <= magic[0] <= 0x5F:  # skippable frame
            at += 8 + int.from_bytes(wire[at + 4 : at + 8], "little")
            continue
        if magic != b"\x28\xb5\x2f\xfd" or at + 5 > len(wire):
            return at > 0 and magic != b"\x28\xb5\x2f\xfd"[: len(magic)]  # garbage behind a frame is ignored
        descriptor = wire[at + 4]
        single_segment = descriptor >> 5 & 1
        size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
        at += 5 + (not single_segment) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
        last = 0
        while not last and left >= 0:
            left -= 1
            if at + 3 > len(wire):
                return False
            block = int.from_bytes(wire[at : at + 3], "little")
            last = block & 1
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        at += 4 * (descriptor >> 2 & 1)
    return at == len(wire)


_CODINGS: dict[str, type[Coding]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "x-deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
ACCEPT_ENCODING = "gzip, deflate, br, zstd"


def codings_of(header: str) -> list[Coding]:
    """The codings a Content-Encoding names, the outermost first; raises `FetchError` (encoding) when one is unknown."""
    names = [name for one in header.split(",") if (name := one.strip().lower()) not in _NO_CODING]
    if len(names) > MAX_CODINGS:
        raise FetchError("encoding", f"{len(names)} content codings on top of each other")
    for name in names:
        if name not in _CODINGS:
            raise FetchError("encoding", f"content coding {name[:30]!r} is not understood")
    return [_CODINGS[name]() for name in reversed(names)]


class Bounded:
    """A coding whose output another coding takes: bounded as well, or a bomb of nothing would cost time without end."""

    def __init__(self, coding: Coding, limit: int) -> None:
        self._coding = coding
        self._limit = self._left = limit

    def pump(self, data: Piece) -> Iterator[bytes]:
        """See `Coding.pump`; raises `FetchError` (too_large) beyond the limit."""
        return self._counted(self._coding.pump(data))

    def finish(self) -> Iterator[bytes]:
        """See `Coding.finish`."""
        return self._counted(self._coding.finish())

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._left -= len(piece)
            if self._left < 0:
                raise FetchError("too_large", f"more than {self._limit} bytes between two content codings")
            yield piece


def pump_all(codings: list[Coding], data: Piece, last: int = 0) -> Iterator[bytes]:
    """Run `data` through the codings from number `last` on."""
    if last == len(codings):
        yield bytes(data)
        return
    for piece in codings[last].pump(data):
        yield from pump_all(codings, piece, last + 1)


def finish_all(codings: list[Coding]) -> Iterator[bytes]:
    """What is left in the codings, in order."""
    for number, coding in enumerate(codings):
        for piece in coding.finish():
            yield from pump_all(codings, piece, number + 1)
