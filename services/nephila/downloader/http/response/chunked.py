"""Decoder of the chunked transfer coding (RFC 9112 7.1), piece by piece. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nephila.downloader.http.contract import FetchError
from nephila.kernel.reasons.table import Reason

_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(?:;|$)")
# A size line that is complete in one read, as nearly all are; any other is read line by line.
_SIZE_LINE = re.compile(rb"[ \t]{0,64}([0-9a-fA-F]{1,15})[ \t]{0,64}(?:;[^\n]{0,1024})?\r{0,4}\n")
_MAX_LINE = 4096
_MAX_TRAILERS = 16 << 10
_MAX_CHUNKS = 1 << 18
"""32 MiB in chunks of 128 bytes; servers that flush each line write fewer."""
_STEPS = 1024
"""Chunks between two pieces returned: 0.5 to 3 ms."""

Piece = bytes | memoryview


class Chunked:
    """Returns pieces of the body for bytes from the wire; `done` becomes True after the last chunk.

    O(bytes). Raises `FetchError` (protocol) for an invalid chunk size. `framing` counts the bytes that are not body;
    `trailing` is True when bytes follow the end.
    """

    __slots__ = ("_chunks", "_left", "_line", "_state", "_trailers", "done", "framing", "trailing")

    def __init__(self) -> None:
        self._left = 0
        self._line = b""
        self._state = 0  # 0 = size line, 1 = data, 2 = line end behind data, 3 = trailers
        self._trailers = 0
        self._chunks = 0
        self.framing = 0
        self.done = False
        self.trailing = False

    def feed(self, data: Piece) -> Iterator[Piece]:
        """The body bytes in `data`, many chunks in a piece; a piece may be empty. The caller runs it to its end."""
        data = bytes(data)
        view = memoryview(data)
        pieces: list[Piece] = []
        at, end, since, steps = 0, len(data), 0, 0
        while at < end:
            if self.done:
                self.trailing = True
                break
            steps += 1
            if steps >= _STEPS:
                piece = _join(pieces)
                self.framing += at - since - len(piece)
                yield piece
                pieces, since, steps = [], at, 0
            if self._state == 1:
                stop = min(end, at + self._left)
                pieces.append(view[at:stop])
                self._left -= stop - at
                at = stop
                if self._left == 0:
                    self._state = 2
                continue
            if self._state == 0 and not self._line:
                match = _SIZE_LINE.match(data, at)
                if match is not None:
                    at = match.end()
                    self._on_size(match[1])
                    stop = at + self._left
                    if self._state == 1 and data.startswith(b"\r\n", stop):
                        pieces.append(view[at:stop])
                        at = stop + 2
                        self._state = 0
                    continue
            line, at = self._read_line(data, at, end)
            if line is None:
                break
            self._on_line(line)
        piece = _join(pieces)
        self.framing += at - since - len(piece)
        yield piece

    def _read_line(self, data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
        newline = data.find(b"\n", at, min(end, at + _MAX_LINE))
        if newline < 0:
            self._line += data[at : min(end, at + _MAX_LINE)]
            if len(self._line) >= _MAX_LINE:
                raise FetchError(Reason.PROTOCOL, "a line of the chunked coding is too long")
            return None, end
        line = self._line + data[at:newline]
        self._line = b""
        return line.rstrip(b"\r"), newline + 1

    def _on_size(self, digits: bytes) -> None:
        self._chunks += 1
        if self._chunks > _MAX_CHUNKS:
            raise FetchError(Reason.PROTOCOL, f"over {_MAX_CHUNKS} chunks")
        self._left = int(digits, 16)
        self._state = 1 if self._left else 3

    def _on_line(self, line: bytes) -> None:
        if self._state == 0:
            match = _SIZE.match(line)
            if match is None:
                raise FetchError(Reason.PROTOCOL, f"chunk size {line[:20]!r} is not a hexadecimal number")
            self._on_size(match[1])
        elif self._state == 2:
            if line:
                raise FetchError(Reason.PROTOCOL, "a chunk is longer than its size says")
            self._state = 0
        elif line:
            self._trailers += len(line)
            if self._trailers > _MAX_TRAILERS:
                raise FetchError(Reason.PROTOCOL, "trailers over 16 KiB")
        else:
            self.done = True


def _join(pieces: list[Piece]) -> Piece:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
