"""Bodies in the encodings of the WHATWG: every pointer of the multi-byte ones, and one text in twenty languages.

The vectors are encoding_rs', generated from the standard's indexes. The fallback decodes with Python's codecs, which
recover from broken pairs in their own way: how many of its lines differ is written here.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from charset_corpus import CORPUS, PYTHON_CODECS
from nephila.native import sniff_encoding, to_utf8
from nephila.parser.page.charset import encoding_of, encoding_of_text

pytestmark = pytest.mark.conformance

VECTORS = {
    "big5_in": ("big5", 995),
    "euc_kr_in": ("euc-kr", 2560),
    "gb18030_in": ("gb18030", 20),
    "iso_2022_jp_in": ("iso-2022-jp", 463),
    "jis0208_in": ("euc-jp", 1963),
    "jis0212_in": ("euc-jp", 2770),
    "shift_jis_in": ("shift_jis", 1184),
}
"""File: encoding, lines that the fallback decodes otherwise."""

CASES = [(language, encoding) for language, (_, encodings) in CORPUS.items() for encoding in (*encodings, "utf-8")]


@pytest.mark.parametrize("name", VECTORS)
def test_every_pointer(core: ModuleType, conformance_data: Path, name: str) -> None:
    """Valid ones give their character, all others U+FFFD and nothing behind it is lost."""
    label, known = VECTORS[name]
    folder = conformance_data / "encodings-encoding_rs" / "tests" / "test_data"
    found = core.to_utf8((folder / f"{name}.txt").read_bytes(), label).split(b"\n")
    wanted = (folder / f"{name}_ref.txt").read_bytes().split(b"\n")
    differ = sum(ours != theirs for ours, theirs in zip(found, wanted, strict=True))
    assert len(wanted) > 8_000
    assert differ == (0 if core.__name__.endswith("_core") else known)


def encoded(language: str, encoding: str, head: str = "", lang: str = "") -> tuple[bytes, str]:
    """A page in that encoding, and its text as it should come out."""
    html = f"<html{lang}><head>{head}<title>T</title></head><body><p>{CORPUS[language][0]}</p></body></html>"
    return html.encode(PYTHON_CODECS.get(encoding, encoding)), html


@pytest.mark.parametrize(("language", "encoding"), CASES)
def test_declared_encodings(core: ModuleType, language: str, encoding: str) -> None:
    """By header, by either kind of <meta>, by XML declaration: the text comes out letter by letter."""
    body, html = encoded(language, encoding)
    assert core.to_utf8(body, encoding_of(body, encoding, core.sniff_encoding)).decode() == html
    for head in (
        f"<meta charset={encoding}>",
        f'<meta http-equiv="content-type" content="text/html; charset={encoding}">',
    ):
        body, html = encoded(language, encoding, head)
        assert core.to_utf8(body, encoding_of(body, "", core.sniff_encoding)).decode() == html
    text = f'<?xml version="1.0" encoding="{encoding}"?><p>{CORPUS[language][0]}</p>'
    body = text.encode(PYTHON_CODECS.get(encoding, encoding))
    assert core.to_utf8(body, encoding_of_text(body, "", "text/xml")).decode() == text


@pytest.mark.parametrize("language", CORPUS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
def test_byte_order_mark_beats_a_wrong_declaration(core: ModuleType, language: str, encoding: str) -> None:
    """Whatever header and <meta> say."""
    text = f"<meta charset=koi8-r><p>{CORPUS[language][0]}"
    body = (text if encoding == "utf-8-sig" else "\ufeff" + text).encode(encoding)
    assert core.to_utf8(body, encoding_of(body, "big5", core.sniff_encoding)).decode() == text


def test_undeclared_encodings() -> None:
    """All are found by the bytes and the page's language."""
    missed = set()
    for language, encoding in CASES:
        body, html = encoded(language, encoding, lang=f' lang="{language}"')
        if to_utf8(body, encoding_of(body, "", sniff_encoding)).decode() != html:
            missed.add((language, encoding))
    print(f"undeclared, by language: {len(CASES) - len(missed)}/{len(CASES)}")
    assert missed == set()


def test_undeclared_encodings_without_a_language() -> None:
    """Nineteen in twenty."""
    found = 0
    for language, encoding in CASES:
        body, html = encoded(language, encoding)
        found += to_utf8(body, encoding_of(body, "", sniff_encoding)).decode() == html
    print(f"undeclared, no language: {found}/{len(CASES)}")
    assert found >= 0.95 * len(CASES)
