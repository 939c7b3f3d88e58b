"""Character sets, and small functions on texts."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final

from nephila.native.fallback.spelling import spelled_text

_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_PRESCAN: Final = 1024
_HEAD_TAG: Final = re.compile(
    rb"""<!--(?:>|->|.*?(?:--!?>|\Z))|<[!?][^>]*+>?|<(/?)([A-Za-z][^\s/>]*+)(?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+>""",
    re.DOTALL,
)
_RAW_TEXT: Final = (b"script", b"style", b"title")
_IN_HEAD: Final = frozenset((b"html", b"head", b"noscript", b"link", b"meta", b"object", b"base", *_RAW_TEXT))
_CONTROLS: Final = tuple(chr(code) for code in (*range(32), 127))


def _lookup(label: str) -> Any:
    import webencodings  # a service that reads no pages does not need it

    return webencodings.lookup(label)


def sniff_encoding(body: bytes, header_charset: str | None = None) -> str:
    """The WHATWG name by byte order mark, HTTP header, <meta>, or valid UTF-8; "" if none of them decides. O(n)."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return name
    header = _lookup(header_charset) if header_charset else None
    declared = str(header.name) if header else _declared(body[:_PRESCAN]) or _declared_in_head(body)
    if declared:
        return declared
    try:
        body.decode()
    except UnicodeDecodeError:
        return ""
    return "utf-8"


def _declared_in_head(body: bytes) -> str:
    """The same by a <meta> of the head behind the bytes of the prescan: the first tag that is of no head ends it."""
    at = 0
    while len(body) > _PRESCAN and (tag := _HEAD_TAG.search(body, at)) is not None:
        at, name = tag.end(), (tag[2] or b"").lower()
        if not name:
            continue  # a comment, a doctype
        if name not in _IN_HEAD or (tag[1] and name in (b"html", b"head")):
            break
        if name == b"meta" and not tag[1] and (label := _declared(tag[0])):
            return label
        if name in _RAW_TEXT and not tag[1]:
            end = re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE).search(body, at)
            at = end.start() if end else len(body)
    return ""


def _declared(head: bytes) -> str:
    """The character set that the first <meta> with a known one names."""
    from selectolax.lexbor import LexborHTMLParser

    for meta in LexborHTMLParser(head).css("meta") if b"<" in head else ():
        attributes = meta.attributes
        label = attributes.get("charset")
        if label is None and (attributes.get("http-equiv") or "").lower() == "content-type":
            label = (attributes.get("content") or "").lower().partition("charset")[2].lstrip(" \t\n\r\f=")
            if label[:1] in ("'", '"') and label:
                label = label.split(label[0])[1] if label.count(label[0]) > 1 else ""
            label = label.partition(";")[0]
        codec = _lookup(label) if label else None
        if codec is not None:
            name = str(codec.name)
            return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(name, name)
    return ""


def to_utf8(body: bytes, encoding: str) -> bytes:
    """UTF-8 of a body without its byte order mark; ValueError for an unknown label. "" = windows-1252. O(n)."""
    codec = _lookup(encoding or "windows-1252")
    if codec is None:
        raise ValueError(f"unknown encoding '{encoding}'")
    if codec.name == "replacement":
        return "\ufffd".encode() if body else b""
    if codec.name == "utf-8":
        body = body.removeprefix(b"\xef\xbb\xbf")
    text, _ = codec.codec_info.decode(body, "nephila_c1" if codec.name == "windows-1252" else "replace")
    return str(text.removeprefix("\ufeff") if codec.name.startswith("utf-16") else text).encode("utf-8", "replace")


def _c1(error: UnicodeError) -> tuple[str, int]:
    """The standard's windows-1252 decodes the five bytes that Python leaves out as the C1 controls of that number."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(map(chr, error.object[error.start : error.end])), error.end


codecs.register_error("nephila_c1", _c1)


def is_storable(data: bytes) -> bool:
    """Whether bytes are UTF-8 without NUL, as every database accepts. O(n)."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def is_tidy(text: str) -> bool:
    """Whether a text is ASCII with no white space but single spaces."""
    return text.isascii() and "  " not in text and not any(code in text for code in _CONTROLS)


def trimmed(texts: list[str], most: int) -> list[str]:
    """Each text cut to `most` characters, white space collapsed within lines; no empty lines, no empty texts."""
    for text in texts:
        text.encode()  # UnicodeEncodeError for lone surrogates, as in the core
    lines = ((" ".join(part.split()) for part in spelled_text(text[:most]).split("\n")) for text in texts)
    return [joined for parts in lines if (joined := "\n".join(filter(None, parts)))]


def quoted(text: str) -> bytes:
    """A text as JSON: UTF-8 in quotes."""
    text.encode()
    return json.dumps(text, ensure_ascii=False).encode()
