"""Encoding: what is declared, in which order, and how bodies are decoded."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.mark.parametrize(
    ("body", "header", "encoding"),
    [
        (b"\xef\xbb\xbfx", "iso-8859-2", "utf-8"),
        (b"\xff\xfex\0", None, "utf-16le"),
        (b"\xfe\xff\0x", None, "utf-16be"),
        (b"<meta charset=utf-8>", "ISO-8859-1", "windows-1252"),
        (b"<meta charset=koi8-r>\xff", "no-such", "koi8-r"),
        (b"<meta charset=utf-16>\xff", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=big5">', None, "big5"),
        (b'<meta content="text/html; charset=big5">', None, "utf-8"),
        (b"<!-- <meta charset=big5> -->\xff", None, ""),
        (b"<!--><meta charset=big5>", None, "big5"),
        (b"<head><style>" + b"x" * 1100 + b"</style><meta charset=big5>", None, "big5"),
        (b"<head><title><body>" + b"x" * 1100 + b"</title><noscript></noscript><META CHARSET='big5'>", None, "big5"),
        (
            b"<!-- <body> "
            + b"x" * 1100
            + b" --><link x='>'><meta content='text/html;charset=big5' http-equiv=Content-Type>",
            None,
            "big5",
        ),
        (
            b"<script>'<body>'/*"
            + b"x" * 1100
            + b"*/</script><meta name=a content=b><meta charset=none><meta charset=big5>",
            None,
            "big5",
        ),
        (b"<head><script>" + b"x" * 1100 + b"</script><meta charset=utf-16>\xff", None, "utf-8"),
        (b"x" * 1100 + b"<meta charset=big5>", None, "big5"),
        (b"<body>" + b"x" * 1100 + b"<meta charset=big5>", None, "utf-8"),
        (b"<head></head>" + b"x" * 1100 + b"<meta charset=big5>\xff", None, ""),
        (b"<head><div>" + b"x" * 1100 + b"</div><meta charset=big5>", None, "utf-8"),
        (b"<head><script>" + b"x" * 1100 + b"<meta charset=big5>", None, "utf-8"),
        (b"<head><!-- " + b"x" * 1100 + b"<meta charset=big5>", None, "utf-8"),
        (b"<head><style>" + b"x" * 1100 + b"</style><meta charset=big5>", "koi8-r", "koi8-r"),
        ("plain ü".encode(), None, "utf-8"),
        (b"caf\xe9", None, ""),
        (b"", None, "utf-8"),
        (b"", "", "utf-8"),
    ],
)
def test_sniffing(core: ModuleType, body: bytes, header: str | None, encoding: str) -> None:
    """BOM, then header, then meta, then the bytes themselves decide."""
    assert core.sniff_encoding(body, header) == encoding


@pytest.mark.parametrize(
    ("label", "body", "title"),
    [
        ("utf-8", "é\ufeff".encode(), "é"),
        ("utf-8", b"\xef\xbb\xbf<title>bom", "bom"),
        ("utf-8", b"a\xffb\xe2\x82c\xf0\x9f", "a\ufffdb\ufffdc\ufffd"),
        ("windows-1252", b"\x80\x81\x8d\xe9", "€\x81\x8dé"),
        ("", b"\x93x\x94", "“x”"),
        ("shift_jis", "日本".encode("shift_jis"), "日本"),
        ("euc-kr", "한국".encode("euc-kr"), "한국"),
        ("gb18030", "中文".encode("gb18030"), "中文"),
        ("big5", "中文".encode("big5"), "中文"),
        ("koi8-r", "мир".encode("koi8-r"), "мир"),
    ],
)
def test_decoding(core: ModuleType, label: str, body: bytes, title: str) -> None:
    """The page pass decodes legacy encodings and replaces what is not UTF-8."""
    data = body if b"<title>" in body else b"<title>" + body
    assert core.page_pass(data, "http://a.test/", label).title == title


def test_utf16(core: ModuleType) -> None:
    """UTF-16 is decoded, its byte order mark dropped."""
    body = "\ufeff<title>hé</title>".encode("utf-16-le")
    assert core.page_pass(body, "http://a.test/", "utf-16le").title == "hé"


def test_unknown_label(core: ModuleType) -> None:
    """A label nobody knows is a ValueError that names it."""
    with pytest.raises(ValueError, match="unknown encoding 'klingon'"):
        core.page_pass(b"", "http://a.test/", "klingon")
