"""Decoders of content codings with bounded output: gzip and zstd (several members), deflate (zlib or raw), br.

A coding yields pieces of at most PIECE_BYTES, so a decompression bomb costs one piece of memory before the limits of
`body.Body` stop it. Each step reads at most SLICE_BYTES from the wire, which takes some milliseconds for any input. A
step without output yields an empty piece, so that the caller can pause between any two steps.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Protocol

from nephila.downloader.http.accept_encoding import HAS_BROTLI, HAS_ZSTD
from nephila.downloader.http.contract import FetchError
from nephila.kernel import gzip_member
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.extras import install_line

fast_zlib: Any = zlib
try:
    from isal import isal_zlib

    fast_zlib = isal_zlib
except ImportError:  # no wheel for this platform: decoding takes 2.4 times as long
    pass
brotli: Any = import_module("brotli") if HAS_BROTLI else None
zstd: Any = None
if sys.version_info >= (3, 14):
    from compression import zstd
elif HAS_ZSTD:
    from backports import zstd

Piece = bytes | memoryview

PIECE_BYTES = 256 << 10
SLICE_BYTES = 16 << 10
MAX_CODINGS = 2
MAX_MEMBERS = 1000
"""Gzip members or zstd frames in one body; concatenated log files have a few. An empty one costs 20 bytes and 2 us."""
# RFC 9659: a content coding needs no larger window than 8 MiB.
_ZSTD_WINDOW_LOG = 23
_PRESET_DICTIONARY = 0x20
# Values that servers send and that are not codings; browsers read the body unchanged.
_NO_CODING = frozenset(("", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8", "iso-8859-1", "text"))
_ZLIB_ERRORS: tuple[type[Exception], ...] = (zlib.error, fast_zlib.error)


class Coding(Protocol):
    """The decoder of one coding."""

    def pump(self, data: Piece) -> Iterator[bytes]:
        """Decoded pieces of `data`, some empty; raises `FetchError` (encoding)."""

    def finish(self) -> None:
        """End of input; raises `FetchError` when the stream is not complete."""


def _slices(data: Piece) -> Iterator[Piece]:
    if len(data) <= SLICE_BYTES:
        yield data
        return
    view = memoryview(data)
    for at in range(0, len(view), SLICE_BYTES):
        yield view[at : at + SLICE_BYTES]


class _MemberStream:
    """A stream of members. After a member follows another one, padding, or bytes that clients ignore."""

    name = ""
    magic_bytes = 0
    trailer_bytes = 0
    """Bytes at the end of a member that are skipped; they may be missing."""

    def __init__(self) -> None:
        self._inner = self.member()
        self._members = 1
        self._begun = False
        self._ended = False
        self._start = b""
        self._trailer_left = 0

    def member(self) -> Any:
        """A decoder of one member."""
        raise NotImplementedError

    def begins(self, data: bytes) -> bool:
        """Whether these `magic_bytes` bytes begin a member."""
        raise NotImplementedError

    def decode(self, data: Piece) -> Iterator[bytes]:
        """The decoded bytes of the member, up to its end; raises `FetchError`."""
        raise NotImplementedError

    def pump(self, data: Piece) -> Iterator[bytes]:
        for piece in _slices(data):
            rest: Piece = self._next_member(bytes(piece)) if self._ended else piece
            while rest:
                self._begun = True
                yield from self.decode(rest)
                if not self._inner.eof:
                    break
                self._ended, self._trailer_left = True, self.trailer_bytes
                rest = self._next_member(self._inner.unused_data)
            yield b""

    def _next_member(self, data: bytes) -> bytes:
        if self._trailer_left:
            skipped = min(len(data), self._trailer_left)
            self._trailer_left -= skipped
            data = data[skipped:]
        data = self._start + data
        if len(data) < self.magic_bytes:
            self._start = data
            return b""
        if not self.begins(data[: self.magic_bytes]):
            self._start = b"\0" * self.magic_bytes
            return b""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise FetchError(Reason.ENCODING, f"over {MAX_MEMBERS} {self.name} members")
        self._inner, self._ended, self._start = self.member(), False, b""
        return data

    def finish(self) -> None:
        if self._begun and not self._ended:
            raise FetchError(Reason.ENCODING, f"the {self.name} stream ends early")


class _Gzip(_MemberStream):
    name = "gzip"
    magic_bytes = 2
    trailer_bytes = gzip_member.TRAILER_BYTES

    def member(self) -> Any:
        self._head: bytes | None = b""
        return fast_zlib.decompressobj(gzip_member.RAW_DEFLATE)

    def begins(self, data: bytes) -> bool:
        return data == b"\x1f\x8b"

    def decode(self, data: Piece) -> Iterator[bytes]:
        if self._head is not None:
            self._head += bytes(data)
            try:
                start = gzip_member.data_start(self._head)
            except ValueError as error:
                raise FetchError(Reason.ENCODING, f"broken gzip stream: {error}") from None
            if start < 0:
                return
            data, self._head = self._head[start:], None
        if data:
            yield from _inflate(self._inner, data, "gzip")


class _Zstd(_MemberStream):
    name = "zstd"
    magic_bytes = 4

    def member(self) -> Any:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})

    def begins(self, data: bytes) -> bool:
        skippable = data[1:] == b"\x2a\x4d\x18" and 0x50 <= data[0] <= 0x5F
        return skippable or data == b"\x28\xb5\x2f\xfd"

    def decode(self, data: Piece) -> Iterator[bytes]:
        inner = self._inner
        try:
            yield inner.decompress(data, PIECE_BYTES)
            while not inner.eof and not inner.needs_input:
                yield inner.decompress(b"", PIECE_BYTES)
        except zstd.ZstdError as error:
            raise FetchError(Reason.ENCODING, f"broken zstd stream: {error}") from None


class _Deflate:
    """RFC 9110 8.4.1.2 requires zlib format; raw deflate is so common that browsers accept both."""

    def __init__(self) -> None:
        self._inner: Any = None
        self._start = b""

    def pump(self, data: Piece) -> Iterator[bytes]:
        if self._inner is None:
            data = self._start + bytes(data)
            if len(data) < 2:
                self._start = data
                return
            # The checksum behind zlib's stream is not needed, so the stream is read raw in both forms.
            if data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0:
                if data[1] & _PRESET_DICTIONARY:
                    raise FetchError(Reason.ENCODING, "broken deflate stream: it needs a dictionary")
                data = data[2:]
            self._inner = fast_zlib.decompressobj(gzip_member.RAW_DEFLATE)
            self._start = b""
        for piece in _slices(data):
            if self._inner.eof:
                return
            yield from _inflate(self._inner, piece, "deflate")
            yield b""

    def finish(self) -> None:
        if self._start or (self._inner is not None and not self._inner.eof):
            raise FetchError(Reason.ENCODING, "the deflate stream ends early")


def _inflate(inner: Any, data: Piece, name: str) -> Iterator[bytes]:
    try:
        out = inner.decompress(data, PIECE_BYTES)
        while out:
            yield out
            if inner.eof or (len(out) < PIECE_BYTES and not inner.unconsumed_tail):
                return
            out = inner.decompress(inner.unconsumed_tail, PIECE_BYTES)
    except _ZLIB_ERRORS as error:
        raise FetchError(Reason.ENCODING, f"broken {name} stream: {error}") from None


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._begun = False

    def pump(self, data: Piece) -> Iterator[bytes]:
        inner = self._inner
        for piece in _slices(data):
            if inner.is_finished():
                return
            self._begun = True
            try:
                out = inner.process(piece, output_buffer_limit=PIECE_BYTES)
                while out:
                    yield out
                    if inner.is_finished():
                        return
                    # can_accept_more_data() concerns input only: output may be left even when it is true.
                    out = inner.process(b"", output_buffer_limit=PIECE_BYTES)
            except brotli.error as error:
                raise FetchError(Reason.ENCODING, f"broken br stream: {error}") from None
            yield b""

    def finish(self) -> None:
        if self._begun and not self._inner.is_finished():
            raise FetchError(Reason.ENCODING, "the br stream ends early")


_CODINGS: dict[str, type[Coding]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "x-deflate": _Deflate,
}
if HAS_BROTLI:
    _CODINGS["br"] = _Brotli
if HAS_ZSTD:
    _CODINGS["zstd"] = _Zstd


def _remedy(name: str) -> str:
    return f"; {install_line('codings')}" if name in ("br", "zstd") else ""


def codings_of(header: str) -> list[Coding]:
    """Decoders for a Content-Encoding header, outermost first; raises `FetchError` (encoding) for an unknown one."""
    names = [name for part in header.split(",") if (name := part.strip().lower()) not in _NO_CODING]
    if len(names) > MAX_CODINGS:
        raise FetchError(Reason.ENCODING, f"{len(names)} nested content codings")
    for name in names:
        if name not in _CODINGS:
            raise FetchError(Reason.ENCODING, f"content coding {name[:30]!r} is not supported{_remedy(name)}")
    return [_CODINGS[name]() for name in reversed(names)]


class BoundedCoding:
    """A coding whose output is the input of another one. Compressed data does not compress again, so the output is
    bounded by a multiple of the input; else a few bytes could cause endless work in the inner coding."""

    FLOOR_BYTES = 64 << 10
    TIMES = 4

    def __init__(self, coding: Coding) -> None:
        self._coding = coding
        self._left = self.FLOOR_BYTES

    def pump(self, data: Piece) -> Iterator[bytes]:
        """Raises `FetchError` (too_large) above the bound."""
        self._left += self.TIMES * len(data)
        for piece in self._coding.pump(data):
            self._left -= len(piece)
            if self._left < 0:
                raise FetchError(
                    Reason.TOO_LARGE, f"between two content codings over {self.TIMES} times the bytes sent"
                )
            yield piece

    def finish(self) -> None:
        self._coding.finish()


def pump_all(codings: list[Coding], data: Piece, last: int = 0) -> Iterator[bytes]:
    """Run `data` through the codings from number `last` on; empty pieces mark steps without output."""
    if last == len(codings):
        yield bytes(data)
        return
    for piece in codings[last].pump(data):
        if piece:
            yield from pump_all(codings, piece, last + 1)
        else:
            yield b""
