"""Which encoding a body is in (BOM, header, meta prescan, UTF-8 by its bytes) and its decoding to UTF-8."""

from __future__ import annotations

import re
from typing import Any, Final

_SPACES: Final = b" \t\n\r\f"
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_PRESCAN: Final = 1024
_CHARSET: Final = re.compile(rb"charset[ \t\n\r\f]*=[ \t\n\r\f]*")
_CHARSET_VALUE: Final = re.compile(rb"[^ \t\n\r\f;]*")
_TAG: Final = re.compile(rb"</?[A-Za-z][^ \t\n\r\f>]*")
_META: Final = re.compile(rb"<meta[ \t\n\r\f/]", re.IGNORECASE)


def _lookup(label: str) -> Any:
    # Imported late: a service that never looks at bodies needs no webencodings.
    import webencodings

    return webencodings.lookup(label)


def _name(label: str) -> str | None:
    found = _lookup(label)
    return None if found is None else str(found.name)


def sniff_encoding(body: bytes, header_charset: str | None = None) -> str:
    """The WHATWG name in lower case, or "" if nothing is declared and the body is no UTF-8. O(n)."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return name
    declared = (_name(header_charset) if header_charset else None) or prescan(body[:_PRESCAN])
    if declared:
        return declared
    try:
        body.decode()
    except UnicodeDecodeError:
        return ""
    return "utf-8"


def to_utf8(body: bytes, label: str) -> bytes:
    """UTF-8 of the body; ValueError for a label nobody knows. "" = windows-1252. O(n)."""
    encoding = _lookup(label or "windows-1252")
    if encoding is None:
        raise ValueError(f"unknown encoding '{label}'")
    if encoding.name == "utf-8":
        body = body.removeprefix(b"\xef\xbb\xbf")
        try:
            body.decode()
        except UnicodeDecodeError:
            return body.decode("utf-8", "replace").encode()
        return body
    if encoding.name == "replacement":
        return "\ufffd".encode() if body else b""
    text, _ = encoding.codec_info.decode(body, "nephila_c1" if encoding.name == "windows-1252" else "replace")
    if encoding.name.startswith("utf-16"):
        text = text.removeprefix("\ufeff")
    return str(text).encode("utf-8", "replace")


def is_storable(data: bytes) -> bool:
    """Whether bytes are UTF-8 without NUL: what every database takes as a text. O(n)."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    return b"\0" not in data


def _c1(error: UnicodeError) -> tuple[str, int]:
    """The standard's windows-1252 maps the five bytes that Python's leaves out to the C1 controls of that number."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(map(chr, error.object[error.start : error.end])), error.end


def _register() -> None:
    import codecs

    codecs.register_error("nephila_c1", _c1)


_register()


def prescan(data: bytes) -> str | None:
    """ "Prescan a byte stream to determine its encoding". O(n): every step moves forward."""
    at = 0
    while True:
        at = data.find(b"<", at)
        if at < 0:
            return None
        if data.startswith(b"<!--", at):
            end = data.find(b"-->", at + 2)
            if end < 0:
                return None
            at = end + 3
            continue
        if _META.match(data, at):
            found, at = _meta(data, at + 5)
            if found:
                return found
            continue
        tag = _TAG.match(data, at)
        if tag:
            at = tag.end()
            while True:
                attribute, at = _attribute(data, at)
                if attribute is None:
                    break
            at += 1
        elif data[at + 1 : at + 2] in (b"!", b"/", b"?"):
            end = data.find(b">", at)
            if end < 0:
                return None
            at = end + 1
        else:
            at += 1


def _meta(data: bytes, at: int) -> tuple[str | None, int]:
    seen: set[bytes] = set()
    pragma = False
    need_pragma: bool | None = None
    charset: str | None = None
    while True:
        attribute, at = _attribute(data, at)
        if attribute is None:
            break
        name, value = attribute
        if name in seen:
            continue
        seen.add(name)
        if name == b"http-equiv":
            pragma = pragma or value == b"content-type"
        elif name == b"content" and charset is None:
            label = _charset_of(value)
            found = _name(label.decode("latin-1")) if label is not None else None
            if found:
                charset, need_pragma = found, True
        elif name == b"charset":
            charset, need_pragma = _name(value.decode("latin-1")), False
    at += 1
    if need_pragma is None or (need_pragma and not pragma) or charset is None:
        return None, at
    if charset in ("utf-16le", "utf-16be"):
        return "utf-8", at
    return ("windows-1252" if charset == "x-user-defined" else charset), at


def _attribute(data: bytes, at: int) -> tuple[tuple[bytes, bytes] | None, int]:
    """ "Get an attribute": lower-cased name and value, and where it ends; None at `>` or at the end."""
    length = len(data)
    while at < length and (data[at] in _SPACES or data[at] == 0x2F):
        at += 1
    if at >= length or data[at] == 0x3E:
        return None, at
    start = at
    while True:
        if at >= length:
            return None, at
        byte = data[at]
        if byte == 0x3D and at > start:
            name = data[start:at].lower()
            at += 1
            break
        if byte in _SPACES:
            name = data[start:at].lower()
            at = _skip(data, at)
            if at >= length:
                return None, at
            if data[at] != 0x3D:
                return (name, b""), at
            at += 1
            break
        if byte in b"/>":
            return (data[start:at].lower(), b""), at
        at += 1
    at = _skip(data, at)
    if at >= length:
        return None, at
    if data[at] in b"\"'":
        end = data.find(data[at], at + 1)
        if end < 0:
            return None, length
        return (name, data[at + 1 : end].lower()), end + 1
    start = at
    while at < length:
        if data[at] in _SPACES or data[at] == 0x3E:
            return (name, data[start:at].lower()), at
        at += 1
    return None, at


def _skip(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _SPACES:
        at += 1
    return at


def _charset_of(content: bytes) -> bytes | None:
    """ "Extract a character encoding from a meta element": the label in a content attribute."""
    found = _CHARSET.search(content)
    if not found or found.end() >= len(content):
        return None
    start = found.end()
    if content[start] in b"\"'":
        end = content.find(content[start], start + 1)
        return content[start + 1 : end] if end >= 0 else None
    value = _CHARSET_VALUE.match(content, start)
    return value.group() if value else None
