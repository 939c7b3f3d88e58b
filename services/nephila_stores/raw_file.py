"""Files of fetched bodies (`raw-00000.gz` …): the sink `raw` writes them, `rules apply` reads them.

A file is a sequence of gzip members, one per page: a line of JSON (`RawPageHead`), then the decoded body. A body that
the same writer stored before is not repeated: the head refers to it. Invariants: each member can be read alone, so a
file that ends within a member yields all earlier ones; a reader holds one body at a time, of at most MAX_BODY_BYTES.
`zcat` shows the same.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

PREFIX: Final = "raw-"
SUFFIX: Final = ".gz"
MAX_BODY_BYTES: Final = 64 << 20
_MAX_HEAD_BYTES: Final = 64 << 10
_PIECE_BYTES: Final = 64 << 10
_NAME: Final = re.compile(r"raw-\d{5,9}\.gz")
_MAGIC: Final = b"\x1f\x8b\x08"


class RawPageHead(msgspec.Struct, omit_defaults=True):
    url: str
    job: str = ""
    url_key: str = ""
    fetch_no: int = 0
    attempt: int = 0
    status: int = 200
    content_type: str = ""
    charset: str = ""
    fetched_at: float = 0.0
    """Seconds since 1970 UTC."""
    sha256: str = ""
    """Of the body, in hex; the same as in the table `pages`."""
    bytes: int = 0
    """Size of the body."""
    kept_in: str = ""
    """Name of another file in the directory that holds the body; empty: the body follows."""
    kept_at: int = 0
    """Offset of its member in that file."""
    left_out: str = ""
    """The reason why there is no body; empty if there is one."""


class RawPage(msgspec.Struct, frozen=True):
    head: RawPageHead
    body: bytes


class DamagedMember(msgspec.Struct, frozen=True):
    """A member that cannot be read: the last member of a killed writer, or damage."""

    offset: int
    why: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RawPageHead).decode


def is_raw(path: Path) -> bool:
    """Whether this is the name of such a file."""
    return _NAME.fullmatch(path.name) is not None


def member(head: RawPageHead, body: bytes) -> bytes:
    """The uncompressed content of one member."""
    return _encode(head) + b"\n" + body


def read(path: Path) -> Iterator[RawPage | DamagedMember]:
    """The pages of a file in order, with bodies from other files of the directory. O(bytes). Raises `OSError`."""
    with path.open("rb") as file:
        for member in _members(file):
            yield _with_body(member, path) if isinstance(member, RawPage) and member.head.kept_in else member


def scan(path: Path, start: int = 0) -> Iterator[tuple[int, int, RawPageHead]]:
    """(offset, offset of the next member, head) of the pages of a file from `start` on; damaged members are left out.
    O(bytes). Raises `OSError`."""
    with path.open("rb") as file:
        file.seek(start)
        source = _Source(file)
        while source.at_member():
            begun = source.at
            try:
                head = _page(source.unpack(_MAX_HEAD_BYTES + MAX_BODY_BYTES)).head
            except (zlib.error, ValueError, EOFError):
                source.at = begun + 1
                continue
            yield begun, source.at, head


def read_at(path: Path, offset: int) -> RawPage | DamagedMember:
    """The page whose member begins at `offset`, with its body. Raises `OSError`."""
    with path.open("rb") as file:
        file.seek(offset)
        member = next(_members(file), None)
    if not isinstance(member, RawPage):
        return member or DamagedMember(offset, "the file ends before it")
    return _with_body(member, path) if member.head.kept_in else member


def _with_body(page: RawPage, path: Path) -> RawPage | DamagedMember:
    head = page.head
    first: RawPage | DamagedMember | None = None
    if _NAME.fullmatch(head.kept_in):
        with contextlib.suppress(OSError, ValueError), path.with_name(head.kept_in).open("rb") as file:
            file.seek(head.kept_at)
            first = next(_members(file), None)
    if not isinstance(first, RawPage) or first.head.sha256 != head.sha256:
        return DamagedMember(head.kept_at, f"the body of {head.url} is not in {head.kept_in[:40]!r} any more")
    return RawPage(head, first.body)


def _members(file: BinaryIO) -> Iterator[RawPage | DamagedMember]:
    source, whole = _Source(file), True
    while source.at_member():
        begun = source.at
        try:
            yield _page(source.unpack(_MAX_HEAD_BYTES + MAX_BODY_BYTES))
            whole = True
        except (zlib.error, ValueError, EOFError) as error:
            if whole:
                yield DamagedMember(begun, str(error))
            # Inside a damaged member further matches are not reported.
            whole = False
            source.at = begun + 1


def _page(data: bytes) -> RawPage:
    end = data.find(b"\n", 0, _MAX_HEAD_BYTES)
    if end < 0:
        raise ValueError("it does not begin with a line of JSON")
    try:
        head = _decode(data[:end])
    except msgspec.MsgspecError as error:
        raise ValueError(f"its first line cannot be read: {error}") from None
    body = data[end + 1 :]
    if not (head.kept_in or head.left_out) and len(head.sha256) == 64 and sha256(body).hexdigest() != head.sha256:
        raise ValueError("its body is not the one that was fetched")
    return RawPage(head, body)


class _Source:
    """A file of gzip members, read one at a time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.at = file.tell()

    def at_member(self) -> bool:
        """Move to the next position that looks like a member; False at the end of the file."""
        while True:
            self._file.seek(self.at)
            piece = self._file.read(_PIECE_BYTES)
            offset = piece.find(_MAGIC)
            if offset >= 0:
                self.at += offset
                return True
            if len(piece) < _PIECE_BYTES:
                return False
            self.at += len(piece) - len(_MAGIC) + 1

    def unpack(self, limit: int) -> bytes:
        """The member at this position; moves behind it. Raises `ValueError`, `EOFError`, `zlib.error`."""
        self._file.seek(self.at)
        inflater, parts, count = zlib.decompressobj(31), [], 0
        while not inflater.eof:
            piece = inflater.unconsumed_tail or self._file.read(_PIECE_BYTES)
            if not piece:
                raise EOFError("the file ends in the middle of it")
            parts.append(inflater.decompress(piece, _PIECE_BYTES))
            count += len(parts[-1])
            if count > limit:
                raise ValueError(f"it is larger than {limit >> 20} MiB")
        self.at = self._file.tell() - len(inflater.unused_data)
        return b"".join(parts)
