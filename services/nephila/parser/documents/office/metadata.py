"""Office files: what they are and what they say of themselves: title, author, dates. `text.py` reads the rest.

OOXML (docx, xlsx, pptx), OpenDocument and EPUB are zip archives; this reads their directory and the one small member
with the metadata. Older formats give their type alone. Invariant: at most MAX_ENTRIES entries are looked at and
MAX_MEMBER_BYTES of one member unpacked, also for an archive with false sizes.

Sources: APPNOTE.TXT (zip), ECMA-376-2 part 11 (core properties), OpenDocument 1.3 part 2 section 4, EPUB 3.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from nephila.parser.documents.content import MAX_WORD_CHARS, DocumentContent
from nephila.parser.lists.markup import decoded_text, tokens
from nephila.parser.page.text import one_line

MAX_ENTRIES: Final = 5_000
MAX_MEMBER_BYTES: Final = 256 << 10

_END, _ENTRY, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_END_FIELDS: Final = struct.Struct("<4s4H2IH")
_ENTRY_FIELDS: Final = struct.Struct("<4s6H3I5H2I")
_LOCAL_FIELDS: Final = struct.Struct("<4s5H3I2H")
_STORED, _DEFLATED = 0, 8
_OOXML: Final = "application/vnd.openxmlformats-officedocument."
_FOLDERS: Final = {
    b"word/": _OOXML + "wordprocessingml.document",
    b"xl/": _OOXML + "spreadsheetml.sheet",
    b"ppt/": _OOXML + "presentationml.presentation",
}
_METADATA: Final = (b"docProps/core.xml", b"meta.xml")
_FIELDS: Final = {
    b"title": "title",
    b"creator": "author",
    b"initial-creator": "author",
    b"created": "published",
    b"creation-date": "published",
    b"modified": "modified",
    b"date": "modified",
    b"language": "lang",
}
_FACTS: Final = {b"description": "description", b"subject": "subject", b"keywords": "keywords", b"keyword": "keywords"}


class ArchiveMember(NamedTuple):
    name: bytes
    method: int
    packed_bytes: int
    at: int


def read_office(body: bytes) -> DocumentContent:
    """Metadata of an office file; `facts` has its type. O(entries that are present)."""
    if not body.startswith(_LOCAL):
        return DocumentContent()
    content = DocumentContent()
    members: dict[bytes, ArchiveMember] = {}
    try:
        for number, member in enumerate(directory(body), 1):
            members.setdefault(member.name, member)
            if number == MAX_ENTRIES:
                content.problem = f"not looked at beyond {MAX_ENTRIES:,} entries"
        if kind := _kind(body, members):
            content.facts["type"] = kind
        for name in (*_METADATA, *(name for name in members if name.endswith(b".opf"))):
            if name in members:
                xml = unpacked(body, members[name])
                _properties(content, xml)
                if len(xml) == MAX_MEMBER_BYTES:
                    content.problem = f"its metadata is longer than {MAX_MEMBER_BYTES:,} bytes"
                break
    except (ValueError, struct.error, zlib.error) as error:
        content.problem = f"broken archive: {error}"
    return content


def directory(body: bytes) -> Iterator[ArchiveMember]:
    """The entries of a zip archive, the first MAX_ENTRIES. Raises `ValueError` or `struct.error` when it has none."""
    end = body.rfind(_END, max(0, len(body) - 65_557))
    if end < 0:
        raise ValueError("it has no directory")
    _, _, _, _, count, size, at, _ = _END_FIELDS.unpack_from(body, end)
    # Self-extracting archives have something in front: the directory ends where its end mark begins.
    shift = max(end - size - at, 0)
    at += shift
    for _ in range(min(count, MAX_ENTRIES)):
        fields = _ENTRY_FIELDS.unpack_from(body, at)
        if fields[0] != _ENTRY:
            return
        method, packed, name, extra, comment, start = fields[4], fields[8], *fields[10:13], fields[16]
        yield ArchiveMember(body[at + 46 : at + 46 + name], method, packed, start + shift)
        at += 46 + name + extra + comment


def unpacked(body: bytes, member: ArchiveMember) -> bytes:
    """The content of a member, its first MAX_MEMBER_BYTES. Raises `ValueError`, `struct.error` or `zlib.error`."""
    mark, *_, name, extra = _LOCAL_FIELDS.unpack_from(body, member.at)
    if mark != _LOCAL:
        raise ValueError("its directory points nowhere")
    at = member.at + 30 + name + extra
    packed = body[at : at + min(member.packed_bytes, 4 * MAX_MEMBER_BYTES)]
    if member.method == _STORED:
        return packed[:MAX_MEMBER_BYTES]
    if member.method == _DEFLATED:
        return zlib.decompressobj(-15).decompress(packed, MAX_MEMBER_BYTES)
    raise ValueError(f"packing method {member.method}")


def _kind(body: bytes, members: dict[bytes, ArchiveMember]) -> str:
    """The media type that the members show."""
    if b"mimetype" in members:
        return one_line(unpacked(body, members[b"mimetype"])[:100].decode("ascii", "replace"))
    if b"[Content_Types].xml" in members:
        return next((kind for folder, kind in _FOLDERS.items() if any(n.startswith(folder) for n in members)), "")
    return ""


def _properties(content: DocumentContent, xml: bytes) -> None:
    for slash, name, _, text in tokens((xml,)):
        local = name.rpartition(b":")[2]
        if slash or not text.strip():
            continue
        value = one_line(decoded_text(text, "utf-8")[:MAX_WORD_CHARS])
        if field := _FIELDS.get(local):
            if not getattr(content, field):
                setattr(content, field, value)
        elif fact := _FACTS.get(local):
            content.facts.setdefault(fact, value)
