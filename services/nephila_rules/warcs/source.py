"""The bytes of a WARC file, decompressed on demand: plain, or gzip with one member per record or for the whole file.

Invariants: memory is the requested bytes and one piece; a broken member costs only itself: reading continues with the
next member that starts like a record.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO, Final

PIECE_BYTES: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b\x08"
_RECORD: Final = b"WARC/"


class BrokenMember(Exception):
    """A member is broken: what was unpacked so far is lost, the source stands at the next member or at its end."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.offset = offset
        """Where the broken one begins in the file."""


class WarcSource:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._raw = file.read(PIECE_BYTES)  # read, not yet unpacked
        self._raw_at = 0  # where it begins in the file
        self._buffer = b""
        self.packed = self._raw[:3] == _GZIP
        self._inflater = zlib.decompressobj(31) if self.packed else None
        self._member_at = 0
        self.line_at = 0
        """Where the last line stands in the file, or the member that holds it."""

    def line(self, limit: int) -> bytes | None:
        """The next line with its end, b"" at the end of the file, None when it is longer than `limit`."""
        start = self._raw_at - len(self._buffer)
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > limit:
                return None
            if not self._fill():
                end = len(self._buffer) - 1
                break
        self.line_at = self._member_at if self.packed else start
        line, self._buffer = self._buffer[: end + 1], self._buffer[end + 1 :]
        return line if len(line) <= limit else None

    def take(self, count: int) -> bytes:
        """Take so many bytes, fewer at the end of the file."""
        parts, missing = [], count
        while missing > 0 and (self._buffer or self._fill()):
            part = self._buffer[:missing]
            self._buffer = self._buffer[missing:]
            missing -= len(part)
            parts.append(part)
        return b"".join(parts)

    def skip(self, count: int) -> int:
        """Pass over so many bytes; returns how many there were."""
        done = 0
        while done < count and (part := len(self.take(min(count - done, PIECE_BYTES)))):
            done += part
        return done

    def to_next_record(self) -> None:
        """Pass over what cannot be read, up to a line that begins like a record."""
        while not self._buffer.startswith(_RECORD):
            at = self._buffer.find(b"\n" + _RECORD)
            if at >= 0:
                self._buffer = self._buffer[at + 1 :]
                return
            self._buffer = self._buffer[-len(_RECORD) :]
            if not self._fill():
                self._buffer = b""
                return

    def _read(self) -> bool:
        more = self._file.read(PIECE_BYTES)
        self._raw += more
        return bool(more)

    def _fill(self) -> bool:
        """More bytes into the buffer; False at the end of the file. Raises `BrokenMember`."""
        if self._inflater is None:
            if not self._raw and not self._read():
                return False
            self._buffer += self._raw
            self._raw_at += len(self._raw)
            self._raw = b""
            return True
        while True:
            if self._inflater.eof and not self._next_member():
                return False
            if not self._raw and not self._read():
                raise self._broken("the gzip stream ends early")
            try:
                part = self._inflater.decompress(self._raw, PIECE_BYTES)
            except zlib.error as error:
                raise self._broken(str(error)) from None
            rest = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            self._raw_at += len(self._raw) - len(rest)
            self._raw = rest
            if part:
                self._buffer += part
                return True

    def _next_member(self) -> bool:
        while len(self._raw) < 3 and self._read():
            pass
        if self._raw[:3] != _GZIP:
            # Zeros or junk behind the last member are no member.
            return False
        self._inflater = zlib.decompressobj(31)
        if not self._buffer.strip():
            self._member_at = self._raw_at
        return True

    def _broken(self, why: str) -> BrokenMember:
        """Stand at the next member that begins like a record, or at the end."""
        self._buffer = b""
        broken = BrokenMember(why, self._member_at)
        while True:
            at = self._raw.find(_GZIP, 1)
            if at < 0:
                keep = self._raw[-2:]
                self._raw_at += len(self._raw) - len(keep)
                self._raw = keep
                if not self._read():
                    self._raw_at += len(self._raw)
                    self._raw = b""
                    self._inflater = _ENDED
                    return broken
                continue
            self._raw_at += at
            self._raw = self._raw[at:]
            while len(self._raw) < 512 and self._read():
                pass
            if self._begins_like_a_record():
                self._inflater = zlib.decompressobj(31)
                self._member_at = self._raw_at
                return broken

    def _begins_like_a_record(self) -> bool:
        try:
            return zlib.decompressobj(31).decompress(self._raw[:512], 64).startswith(_RECORD)
        except zlib.error:
            return False


_ENDED: Final = zlib.decompressobj(31)
_ENDED.decompress(zlib.compress(b"", wbits=31))
