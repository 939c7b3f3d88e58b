"""How a body is parsed: as HTML, as some kind of document, as plain text, or not at all.

Invariants: the server's content type decides, unless the first bytes are those of a known binary format or cannot be
the stated plain text. Only without a usable type are the bytes sniffed for HTML (tags of WHATWG's MIME sniffing).
Nothing is decoded here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

HEAD_BYTES: Final = 512
"""Bytes of a body that are examined. WHATWG's sniffing reads 1445; the rest is for audio and video."""


class BodyKind(IntEnum):
    HTML = 1
    """By the page pass."""
    TEXT = 2
    """Decoded as plain text; no links."""
    BINARY = 3
    """A row without text."""
    PDF = 4
    """Read in a child process."""
    OFFICE = 5
    """Text is read in a child process; includes archives until they are opened."""
    JSON = 6
    XML = 7
    CSV = 8


_KNOWN: Final = {
    "text/html": BodyKind.HTML,
    "application/xhtml+xml": BodyKind.HTML,
    "application/vnd.wap.xhtml+xml": BodyKind.HTML,
    "application/json": BodyKind.JSON,
    "text/json": BodyKind.JSON,
    "application/x-ndjson": BodyKind.TEXT,
    "application/xml": BodyKind.XML,
    "text/xml": BodyKind.XML,
    "text/csv": BodyKind.CSV,
    "application/csv": BodyKind.CSV,
    "text/comma-separated-values": BodyKind.CSV,
    "text/tab-separated-values": BodyKind.CSV,
    "application/pdf": BodyKind.PDF,
    "application/x-pdf": BodyKind.PDF,
    "application/javascript": BodyKind.TEXT,
    "application/x-javascript": BodyKind.TEXT,
    "application/yaml": BodyKind.TEXT,
    "application/toml": BodyKind.TEXT,
    "application/x-sh": BodyKind.TEXT,
    "application/sql": BodyKind.TEXT,
    "application/rtf": BodyKind.BINARY,
    "text/rtf": BodyKind.BINARY,
    "application/msword": BodyKind.OFFICE,
    "application/vnd.ms-excel": BodyKind.OFFICE,
    "application/vnd.ms-powerpoint": BodyKind.OFFICE,
    "application/epub+zip": BodyKind.OFFICE,
    "application/zip": BodyKind.OFFICE,
}
_FAMILIES: Final = (
    ("text/", BodyKind.TEXT),
    ("application/vnd.openxmlformats-officedocument.", BodyKind.OFFICE),
    ("application/vnd.oasis.opendocument.", BodyKind.OFFICE),
)
_SUFFIXES: Final = (
    ("+json", BodyKind.JSON),
    ("+xml", BodyKind.XML),
    ("+yaml", BodyKind.TEXT),
    ("-yaml", BodyKind.TEXT),
)

# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
_BINARY, _OFFICE, _PDF = BodyKind.BINARY, BodyKind.OFFICE, BodyKind.PDF
# Types without information: old servers send them for unknown files.
_UNKNOWN: Final = frozenset(
    ("", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown", "*/*")
)

_MAGIC: Final = {
    b"%PDF-": "application/pdf",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b\x08": "application/gzip",
    b"Rar!\x1a\x07": "application/vnd.rar",
    b"7z\xbc\xaf\x27\x1c": "application/x-7z-compressed",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "application/x-ole-storage",
    b"\x7fELF": "application/x-elf",
    b"OggS\x00": "application/ogg",
    b"\x1a\x45\xdf\xa3": "video/webm",
    b"ID3": "audio/mpeg",
    b"wOFF": "font/woff",
    b"wOF2": "font/woff2",
    b"\x00asm": "application/wasm",
    b"\x28\xb5\x2f\xfd": "application/zstd",
    b"{\\rtf": "application/rtf",
    b"%!PS-Adobe-": "application/postscript",
}
_MAGIC_STARTS: Final = tuple(_MAGIC)
_MAGIC_KINDS: Final = {
    "application/pdf": BodyKind.PDF,
    "application/zip": BodyKind.OFFICE,
    "application/x-ole-storage": BodyKind.OFFICE,
}

_HTML_STARTS: Final = (
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a ",
    b"<style",
    b"<title",
    b"<b>",
    b"<body",
    b"<br",
    b"<p>",
    b"<p ",
    b"<meta",
    b"<!--",
)
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# Control bytes that no text has (WHATWG: "binary data byte").
_BINARY_BYTES: Final = bytes((*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)))


def kind_of(content_type: str, head: bytes) -> tuple[BodyKind, str]:
    """Kind of a body, and the type that its bytes show if it differs from the server's (else "").

    `content_type` is a media type in lower case without parameters; `head` the first `HEAD_BYTES` of the body.
    """
    stated = _KNOWN.get(content_type)
    if stated is None and content_type not in _UNKNOWN:
        stated = _by_family(content_type)
    if stated is _BINARY and (not content_type.startswith("application/") or head.startswith(_MAGIC_STARTS)):
        return BodyKind.BINARY, ""
    if head.startswith(_MAGIC_STARTS):
        real_type = _magic(head)
        kind = _MAGIC_KINDS.get(real_type, BodyKind.BINARY)
        return kind, "" if kind is stated else real_type
    if stated is _OFFICE or stated is _BINARY or (stated is _PDF and b"%PDF-" not in head):
        # No archive in spite of its type: spreadsheets are often HTML or CSV under another name, and servers give the
        # type of a download to a text.
        kind, real_type = _sniff(head)
        return (stated if stated is _PDF else _BINARY, "") if kind is _BINARY or not head else (kind, real_type)
    if content_type == "text/plain" and _is_garbage(head):
        return BodyKind.BINARY, "application/octet-stream"
    if stated is not None:
        return stated, ""
    return _sniff(head)


def _is_garbage(head: bytes) -> bool:
    """Whether a body of type text/plain is binary: servers use that type for unknown files. For WHATWG one binary byte
    is enough; here a sixteenth of the bytes is needed, and zeros at every second byte mean UTF-16."""
    binary = len(head) - len(head.translate(None, _BINARY_BYTES))
    if binary < 8 or binary * 16 < len(head) or head.startswith(_BOMS):
        return False
    return max(head[::2].count(0), head[1::2].count(0)) * 4 < len(head)


def _by_family(content_type: str) -> BodyKind:
    for suffix, kind in _SUFFIXES:
        if content_type.endswith(suffix):
            return kind
    return next((kind for start, kind in _FAMILIES if content_type.startswith(start)), BodyKind.BINARY)


def _magic(head: bytes) -> str:
    return next(kind for start, kind in _MAGIC.items() if head.startswith(start))


def _sniff(head: bytes) -> tuple[BodyKind, str]:
    if head.startswith(_BOMS):
        # A byte order mark means text; the page pass reads plain text as well.
        return BodyKind.HTML, "text/html"
    start = head.lstrip(b" \t\n\r\f")[:16].lower()
    if start.startswith(_HTML_STARTS):
        return BodyKind.HTML, "text/html"
    if not head:
        return BodyKind.TEXT, ""
    if start.startswith(b"<?xml") and b"<html" in head.lower():
        return BodyKind.HTML, "application/xhtml+xml"
    if len(head.translate(None, _BINARY_BYTES)) != len(head):
        return BodyKind.BINARY, "application/octet-stream"
    return (BodyKind.XML, "text/xml") if start.startswith(b"<?xml") else (BodyKind.TEXT, "text/plain")
