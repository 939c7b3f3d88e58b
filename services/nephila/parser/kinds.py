"""Which of three treatments a body gets: HTML, plain text, or none.

Invariant: what the server says counts, unless the first bytes are those of a known binary format. Only without a
usable type are the bytes asked whether they are HTML (the tags of WHATWG's MIME sniffing). Nothing is decoded here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

HEAD_BYTES: Final = 512
"""Bytes of a body that are looked at; WHATWG's sniffing reads 1445, of which the rest is for audio and video."""


class Kind(IntEnum):
    """How a body is parsed."""

    HTML = 1
    """By the page pass."""
    TEXT = 2
    """Decoded as it is; no links."""
    BINARY = 3
    """A row without text."""


_KNOWN: Final = {
    "text/html": Kind.HTML,
    "application/xhtml+xml": Kind.HTML,
    "application/vnd.wap.xhtml+xml": Kind.HTML,
    "application/json": Kind.TEXT,
    "application/ld+json": Kind.TEXT,
    "application/x-ndjson": Kind.TEXT,
    "application/xml": Kind.TEXT,
    "application/javascript": Kind.TEXT,
    "application/x-javascript": Kind.TEXT,
    "application/yaml": Kind.TEXT,
    "application/toml": Kind.TEXT,
    "application/x-sh": Kind.TEXT,
    "application/sql": Kind.TEXT,
    "application/rtf": Kind.BINARY,
    "text/rtf": Kind.BINARY,
    "image/svg+xml": Kind.TEXT,
}

# Types that say nothing: old servers send them for whatever they do not know.
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


def kind_of(content_type: str, head: bytes) -> tuple[Kind, str]:
    """Treatment of a body, and the type its bytes show when that differs from what the server said (else "").

    `content_type` is a media type in lower case without parameters; `head` the first `HEAD_BYTES` of the body.
    """
    known = _KNOWN.get(content_type)
    if known is None and content_type not in _UNKNOWN:
        known = _by_family(content_type)
    if known is Kind.BINARY:
        return Kind.BINARY, ""
    if head.startswith(_MAGIC_STARTS):
        return Kind.BINARY, _magic(head)
    if known is not None:
        return known, ""
    return _sniff(head)


def _by_family(content_type: str) -> Kind:
    if content_type.startswith("text/") or content_type.endswith(("+json", "+xml", "+yaml", "-yaml")):
        return Kind.TEXT
    return Kind.BINARY


def _magic(head: bytes) -> str:
    return next(kind for start, kind in _MAGIC.items() if head.startswith(start))


def _sniff(head: bytes) -> tuple[Kind, str]:
    if head.startswith(_BOMS):
        # A mark says text; the page pass reads plain text under it just as well.
        return Kind.HTML, "text/html"
    start = head.lstrip(b" \t\n\r\f")[:16].lower()
    if start.startswith(_HTML_STARTS):
        return Kind.HTML, "text/html"
    if not head:
        return Kind.TEXT, ""
    if start.startswith(b"<?xml") and b"<html" in head.lower():
        return Kind.HTML, "application/xhtml+xml"
    if len(head.translate(None, _BINARY_BYTES)) != len(head):
        return Kind.BINARY, "application/octet-stream"
    return Kind.TEXT, "text/xml" if start.startswith(b"<?xml") else "text/plain"
