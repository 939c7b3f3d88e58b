"""Finds the WARC record of the last complete answer of a URL: a revisit record refers to it.

Records of this process are remembered; those of earlier runs are read from the record headers of the WARC files when
the first 304 arrives. Bounds: `MAX` URLs (the oldest are dropped) and `READ_BYTES` of files. Beyond them a revisit
names only the URL, which WARC allows.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nephila.kernel import messages as m
from nephila.kernel.url_credentials import without_credentials

MAX = 100_000
"""URLs remembered, some 300 bytes each."""
READ_BYTES = 2 << 30
"""Bytes of WARC files that are read for earlier records, newest files first; some 200 MB/s."""
_CHUNK = 256 << 10
_HEAD_BYTES = 64 << 10
_END = b"\r\n\r\n"


class Capture(NamedTuple):
    """The fields of a record that a revisit names."""

    date: str
    digest: str


class Captures:
    """URL → its last complete answer. `files` returns the WARC files with their committed lengths."""

    def __init__(self, files: Callable[[], list[tuple[Path, int]]]) -> None:
        self._files = files
        self._known: OrderedDict[str, Capture] = OrderedDict()
        self._read = False

    def note(self, page: m.Page, response: bytes) -> None:
        """Remember a record that was written."""
        if page.status == 200 and not page.truncated:
            self._take(header_block(response))

    def find(self, page: m.Page) -> Capture | None:
        """The record that a 304 confirms."""
        capture = self._known.get(without_credentials(page.url))
        if capture is None and not self._read:
            self._read = True
            self._read_archive()
            capture = self._known.get(without_credentials(page.url))
        return capture

    def _read_archive(self) -> None:
        newer, self._known = self._known, OrderedDict()
        left, chosen = READ_BYTES, []
        for path, length in reversed(self._files()):
            left -= length
            if left < 0:
                break
            chosen.append((path, length))
        for path, length in reversed(chosen):
            for head in record_heads(path, length):
                self._take(head)
        self._known.update(newer)

    def _take(self, head: dict[str, str]) -> None:
        if head.get("WARC-Type") != "response" or "WARC-Truncated" in head or head.get("Nephila-Status") != "200":
            return
        url = head["WARC-Target-URI"]
        self._known[url] = Capture(head["WARC-Date"], head["WARC-Payload-Digest"])
        self._known.move_to_end(url)
        if len(self._known) > MAX:
            self._known.popitem(last=False)


def header_block(record: bytes) -> dict[str, str]:
    """The headers of a record."""
    lines = record[: record.find(_END)].decode("utf-8", "replace").split("\r\n")[1:]
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def record_heads(path: Path, length: int) -> Iterator[dict[str, str]]:
    """The headers of each record in the first `length` bytes of a file. Unreadable data ends the iteration."""
    for _, _, start in member_heads(path, length):
        yield header_block(start)


def member_heads(path: Path, length: int) -> Iterator[tuple[int, int, bytes]]:
    """(offset, length in the file, first 64 KB unpacked) of each record in the first `length` bytes of a file.
    Unreadable data ends the iteration."""
    data, offset = b"", 0
    try:
        with path.open("rb") as file:
            while data or length > 0:
                unpacked, head, size = zlib.decompressobj(31), b"", 0
                while not unpacked.eof:
                    if not data:
                        data = file.read(min(_CHUNK, length))
                        length -= len(data)
                        if not data:
                            return
                    size += len(data)
                    out = unpacked.decompress(data)
                    if len(head) < _HEAD_BYTES:
                        head += out[: _HEAD_BYTES - len(head)]
                    data = unpacked.unused_data if unpacked.eof else b""
                size -= len(data)
                yield offset, size, head
                offset += size
    except (OSError, zlib.error):
        return
