"""One form of text: NFC, plain spaces, no soft hyphens; joiners stay. The core and the fallback have the same form."""

from __future__ import annotations

import random
import unicodedata
from types import ModuleType

import pytest
from nephila.native import fallback

PAGE = "http://a.test/"
FORMS = [
    ("Mit\u00adtel\u00adal\u00adter", "Mittelalter"),
    ("12\u00a0km\u202fh\u2007x", "12 km h x"),
    ("cafe\u0301", "café"),
    ("\u1ea5 a\u0302\u0301", "\u1ea5 \u1ea5"),
    ("e\u0301\u0323", "\u1eb9\u0301"),
    ("\u1112\u1161\u11ab", "한"),
    ("\u0e19\u0e49\u0e33", "\u0e19\u0e49\u0e33"),
    ("\u212b \u2126", "Å Ω"),
    ("می\u200cخواهم", "می\u200cخواهم"),
    ("\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\u0dc1\u0dca\u200d\u0dbb\u0dd3"),
    ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
    ("word\u2060join\ufeffers", "wordjoiners"),
    ("𝅗\u3000𝒜", "𝅗\u3000𝒜"),
]


@pytest.mark.parametrize(("text", "form"), FORMS)
def test_a_text_in_the_one_form(core: ModuleType, text: str, form: str) -> None:
    assert core.spelled(text.encode()).decode() == form


def test_bytes_that_are_no_text_are_unchanged(core: ModuleType) -> None:
    for data in (b"", b"\xc2", b"\xe2\x80", b"a\xffb\xc2\xa0", b"\xed\xa0\x80"):
        assert core.spelled(data) == data


def test_core_and_fallback_have_one_form() -> None:
    core = pytest.importorskip("nephila.native._core")
    chance = random.Random(4)
    letters = "ae\u0301\u0323\u0308\u00a0\u00ad\u200c\u200d\u1112\u1161\u11ab한\u0e49\u093c\u0915か\u3099👩é "
    for _ in range(3000):
        text = "".join(chance.choices(letters, k=chance.randrange(1, 40)))
        form = core.spelled(text.encode()).decode()
        assert form == fallback.spelled(text.encode()).decode()
        assert unicodedata.is_normalized("NFC", form)


PAGES = [
    ("<p>Mit&shy;tel&shy;al&shy;ter", "Mittelalter"),
    ("<p>a&nbsp;&nbsp; b<p>&nbsp;<p>c&nbsp;", "a b\nc"),
    ("<p>cafe&#769; e&#x301;&#x323; x", "café \u1eb9\u0301 x"),
    ("<p>&ecirc;&#769; &#769;a", "\u1ebf \u0301a"),
    ("<pre>a&nbsp;b\n&nbsp;&nbsp;c&shy;d</pre>", "a b\n  cd"),
    ("<p>می&zwnj;خواهم 👨&zwj;👩", "می\u200cخواهم 👨\u200d👩"),
    ("<p>Ma\u00adri\u00ado <a href=/x>Stra\u00df\u00aden\u00a0bahn</a>", "Mario Straßen bahn"),
]


@pytest.mark.parametrize(("html", "text"), PAGES)
def test_text_of_a_page_has_the_form(core: ModuleType, html: str, text: str) -> None:
    """Characters and references alike."""
    assert core.page_pass(html.encode(), PAGE, "utf-8").text.decode() == text


def test_title_description_metas_and_anchors_have_the_form(core: ModuleType) -> None:
    """URLs are as written: their characters are part of them."""
    page = core.page_pass(
        (
            "<title>Ma&shy;ri&shy;o&nbsp;I</title><meta name=description content='Cafe\u0301&nbsp;'>"
            "<meta name=author content='Jose\u0301'><meta property=og:image content='/cafe\u0301.png'>"
            "<a href='/cafe\u0301'>Ca&shy;fe&#769;</a>"
        ).encode(),
        PAGE,
        "utf-8",
    )
    assert (page.title, page.description) == ("Mario I", "Café")
    assert page.meta == [("author", "José"), ("og:image", "/cafe\u0301.png")]
    assert page.anchors.decode() == "Café"
    assert page.link_urls.endswith(b"/cafe%CC%81")


def test_bytes_in_links_are_those_of_the_text(core: ModuleType) -> None:
    page = core.page_pass(b"<p>x <a href=/y>caf e&#769;&#769;&shy;</a>", PAGE, "utf-8")
    assert page.text.decode() == "x caf \u00e9\u0301"
    assert int.from_bytes(page.text_lines[8:12], "little") == len("caf \u00e9\u0301".encode())


def test_a_change_of_form_alone_is_no_change(core: ModuleType) -> None:
    """The hash that a recrawl compares."""
    pages = [
        "<p>Mittelalter im Café",
        "<p>Mit&shy;tel&shy;al&shy;ter im&nbsp;Cafe&#769;",
        "<p>Mittelalter&nbsp; im Café",
    ]
    assert len({core.page_pass(page.encode(), PAGE, "utf-8").text_hash for page in pages}) == 1


@pytest.mark.parametrize("kind", ["rust", "python"])
def test_keywords_find_any_form(kind: str) -> None:
    from .conftest import load

    keywords = load(kind).KeywordSet(["Mittel\u00adalter", "cafe\u0301", "\u0dbb\u0dd3", "ش\u200dب"])
    assert keywords.find(b"das Mittelalter") == [0]
    assert keywords.find("le Café".encode()) == [1]
    # A joiner parts no word.
    assert keywords.find("\u0dc1\u0dca\u200d\u0dbb\u0dd3".encode()) == []
    assert keywords.find("شب".encode()) == [3]
