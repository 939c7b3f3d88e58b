"""The chunked transfer coding (RFC 9112 7.1), taken off piece by piece. Pure; knows nothing of limits."""

from __future__ import annotations

import re

from nephila.downloader.fetcher import FetchError

_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(?:;|$)")
_MAX_LINE = 4096
_MAX_TRAILERS = 16 << 10

Piece = bytes | memoryview


class Chunked:
    """Feed it what the wire brings; it hands out body pieces, and `done` turns true behind the last chunk.

    O(bytes). Raises `FetchError` (protocol) on a chunk size that is none. `trailing` is True when bytes follow the end.
    """

    __slots__ = ("_left", "_line", "_state", "_trailers", "done", "trailing")

    def __init__(self) -> None:
        self._left = 0
        self._line = b""
        self._state = 0  # 0 = size line, 1 = data, 2 = line end behind data, 3 = trailers
        self._trailers = 0
        self.done = False
        self.trailing = False

    def feed(self, data: memoryview) -> list[Piece]:
        """The body bytes in `data`, as views into it."""
        pieces: list[Piece] = []
        at, end = 0, len(data)
        while at < end:
            if self.done:
                self.trailing = True
                break
            if self._state == 1:
                stop = min(end, at + self._left)
                pieces.append(data[at:stop])
                self._left -= stop - at
                at = stop
                if self._left == 0:
                    self._state = 2
                continue
            line, at = self._read_line(data, at, end)
            if line is None:
                break
            self._on_line(line)
        return pieces

    def _read_line(self, data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
        window = bytes(data[at : min(end, at + _MAX_LINE)])
        newline = window.find(b"\n")
        if newline < 0:
            self._line += window
            if len(self._line) >= _MAX_LINE:
                raise FetchError("protocol", "a line of the chunked coding does not end")
            return None, end
        line = self._line + window[:newline]
        self._line = b""
        return line.rstrip(b"\r"), at + newline + 1

    def _on_line(self, line: bytes) -> None:
        if self._state == 0:
            match = _SIZE.match(line)
            if match is None:
                raise FetchError("protocol", f"chunk size {line[:20]!r} is no hexadecimal number")
            self._left = int(match[1], 16)
            self._state = 1 if self._left else 3
        elif self._state == 2:
            if line:
                raise FetchError("protocol", "a chunk is longer than its size says")
            self._state = 0
        elif line:
            self._trailers += len(line)
            if self._trailers > _MAX_TRAILERS:
                raise FetchError("protocol", "trailers over 16 KiB")
        else:
            self.done = True
