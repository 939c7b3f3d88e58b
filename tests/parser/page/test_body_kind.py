"""Which bodies are parsed as HTML, which as text, and which not at all."""

from __future__ import annotations

import json

import pytest
from nephila.parser.page.body_kind import BodyKind, kind_of

from tests.parser.parser_room import FakePass, Room

PNG = b"\x89PNG\r\n\x1a\n\x00\x00"


@pytest.mark.parametrize(
    ("content_type", "head", "kind", "sniffed"),
    [
        ("text/html", b"anything", BodyKind.HTML, ""),
        ("application/xhtml+xml", b"<?xml", BodyKind.HTML, ""),
        ("text/html", b"", BodyKind.HTML, ""),
        ("text/html", PNG, BodyKind.BINARY, "image/png"),
        ("text/html", b"%PDF-1.7", BodyKind.PDF, "application/pdf"),
        ("text/plain", b"<html>", BodyKind.TEXT, ""),
        ("text/plain", bytes(range(256)) * 2, BodyKind.BINARY, "application/octet-stream"),
        ("text/plain", "Größe".encode("utf-16-le") * 20, BodyKind.TEXT, ""),
        ("text/plain", b"a\0b", BodyKind.TEXT, ""),
        ("text/plain", b"\xef\xbb\xbf" + b"\0" * 100, BodyKind.TEXT, ""),
        ("text/markdown", b"# x", BodyKind.TEXT, ""),
        ("application/json", b"{}", BodyKind.JSON, ""),
        ("application/activity+json", b"{}", BodyKind.JSON, ""),
        ("application/x-ndjson", b"{}", BodyKind.TEXT, ""),
        ("text/csv", b"a,b", BodyKind.CSV, ""),
        ("application/rss+xml", b"<rss>", BodyKind.XML, ""),
        ("application/pdf", b"%PDF-1.7", BodyKind.PDF, ""),
        ("application/octet-stream", b"%PDF-1.7", BodyKind.PDF, "application/pdf"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK\x03\x04", BodyKind.OFFICE, ""),
        ("application/vnd.oasis.opendocument.text", b"PK\x03\x04", BodyKind.OFFICE, ""),
        ("application/msword", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", BodyKind.OFFICE, ""),
        ("", b"PK\x03\x04", BodyKind.OFFICE, "application/zip"),
        ("image/jpeg", b"<html>", BodyKind.BINARY, ""),
        ("application/vnd.ms-excel", b"a,b", BodyKind.TEXT, "text/plain"),
        ("application/vnd.ms-excel", b"<table><tr><td>a", BodyKind.HTML, "text/html"),
        ("application/zip", b"plain words", BodyKind.TEXT, "text/plain"),
        ("application/zip", b"\x00\x01", BodyKind.BINARY, ""),
        ("application/zip", b"", BodyKind.BINARY, ""),
        ("application/gzip", b"plain words", BodyKind.TEXT, "text/plain"),
        ("application/gzip", b"\x1f\x8b\x08\x00", BodyKind.BINARY, ""),
        ("application/x-tar", b"name" + b"\0" * 96, BodyKind.BINARY, ""),
        ("application/pdf", b"<html>login", BodyKind.HTML, "text/html"),
        ("application/pdf", b"\r\njunk%PDF-1.7", BodyKind.PDF, ""),
        ("application/rtf", b"{\\rtf1", BodyKind.BINARY, ""),
        ("", b"  \n<!DOCTYPE HTML>", BodyKind.HTML, "text/html"),
        ("application/octet-stream", b"<a href=x>", BodyKind.HTML, "text/html"),
        ("", b"plain words", BodyKind.TEXT, "text/plain"),
        ("", b"<?xml version='1.0'?><x/>", BodyKind.XML, "text/xml"),
        ("", b"a\x00b\x01", BodyKind.BINARY, "application/octet-stream"),
        ("", b"\xff\xfea\x00", BodyKind.HTML, "text/html"),
        ("", b"", BodyKind.TEXT, ""),
        ("", b"GIF89a", BodyKind.BINARY, "image/gif"),
    ],
)
def test_kind(content_type: str, head: bytes, kind: BodyKind, sniffed: str) -> None:
    """The server's word counts, unless the bytes are a known binary format or there is no word."""
    assert kind_of(content_type, head) == (kind, sniffed)


async def test_binary_declared_as_html_is_a_row_without_text() -> None:
    """No page pass over a picture; the row says what it is."""
    room = await Room(FakePass(text=b"garbage")).start()
    record = room.record(PNG + bytes(range(256)) * 100)
    assert (record.text, room.calls) == (b"", [])
    assert (record.size_bytes, len(record.sha256)) == (25610, 32)
    assert json.loads(record.meta) == {"sniffed_type": "image/png"}


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "text", "encoding"),
    [
        ("Größe".encode("latin-1"), "text/plain", "iso-8859-1", "Größe", "windows-1252"),
        ("Größe".encode(), "text/plain", "", "Größe", "utf-8"),
        ("Größe".encode("utf-16"), "text/plain", "utf-8", "Größe", "utf-16le"),
        ("\ufeffGröße".encode("utf-16-be"), "text/plain", "", "Größe", "utf-16be"),
        ('{"a":"ß"}'.encode(), "application/json", "", '"a": "ß"', "utf-8"),
        ("<?xml version='1.0' encoding='koi8-r'?><a>Да</a>".encode("koi8-r"), "text/xml", "", "Да", "koi8-r"),
        (b"a\x00b", "text/plain", "", "a\ufffdb", "utf-8"),
        (b"a\xffb", "text/plain", "utf-8", "a\ufffdb", "utf-8"),
        (b"abc", "text/plain", "no-such-charset", "abc", "utf-8"),
    ],
)
async def test_plain_text_is_decoded(body: bytes, content_type: str, charset: str, text: str, encoding: str) -> None:
    """Mark before header before XML declaration before a guess; the text is UTF-8 without NUL."""
    room = await Room().start()
    record = room.record(body, content_type=content_type, charset=charset)
    assert text in record.text.decode()
    assert json.loads(record.meta)["encoding"] == encoding
    assert room.calls == []


@pytest.mark.parametrize("limit", range(1, 12))
async def test_plain_text_is_cut_between_characters(limit: int) -> None:
    """A bound in bytes never halves a character."""
    room = await Room(max_text_bytes=limit).start()
    text = room.record("aß€𝄞x".encode() * 3, content_type="text/plain", charset="utf-8").text
    assert len(text) <= limit
    assert ("aß€𝄞x" * 3).startswith(text.decode())
