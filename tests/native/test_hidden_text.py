"""Text that a page hides by its own attributes is no text; readings of words are left out. Core and fallback alike."""

from __future__ import annotations

from types import ModuleType

import pytest
from nephila.native import PassOptions

from .conftest import load

HIDDEN = (
    "<p hidden>x</p>",
    "<p HIDDEN=''>x</p>",
    "<div hidden=hidden><p>x</p></div>",
    "<span style='display:none'>x</span>",
    "<p style='color: red; DISPLAY : None !important'>x</p>",
    "<p style='display:block;display:none'>x</p>",
    "<p style='visibility:hidden'>x</p>",
    "<tag-of-its-own style='visibility: collapse'>x</tag-of-its-own>",
    "<p style='display&colon;none'>x</p>",
    "<p style='display:none'><b style='visibility:visible'>x</b></p>",
    "<div style='visibility:hidden'><p hidden>x<b style='visibility:visible'>x</b></p></div>",
    "<dialog>x</dialog>",
    "<div popover>x</div>",
    "<div aria-hidden=true role=dialog>x</div>",
    "<div aria-hidden=true tabindex=-1>x</div>",
    "<ruby hidden>x<rt>x</ruby>",
)
SHOWN = (
    "<p hidden=until-found>x</p>",
    "<p style='display:none;display:block'>x</p>",
    "<p style='background:none; content:hidden; visibility:visible'>x</p>",
    "<div style='visibility:hidden'><p style='visibility:visible'>x</p></div>",
    "<dialog open>x</dialog>",
    "<details><summary></summary>x</details>",
    "<p aria-hidden=true>x</p>",
    "<span aria-hidden=true tabindex=-1>x</span>",
    "<main aria-hidden=true tabindex=-1>x</main>",
    "<p data-hidden class=hidden>x</p>",
)


@pytest.fixture(params=["rust", "python"])
def core(request: pytest.FixtureRequest) -> ModuleType:
    """Each implementation."""
    return load(request.param)


def text_of(core: ModuleType, html: str, **options: bool) -> str:
    """The text of a page around the piece of HTML."""
    page = f"<!doctype html><body><p>a</p>{html}<p>b</p>".encode()
    text: bytes = core.page_pass(page, "http://a.test/", "utf-8", PassOptions(**options)).text
    return text.decode()


@pytest.mark.parametrize("html", HIDDEN)
def test_hidden_text_is_left_out(core: ModuleType, html: str) -> None:
    """An option keeps it."""
    assert text_of(core, html).split() == ["a", "b"]
    assert "x" in text_of(core, html, hidden_text=True)


@pytest.mark.parametrize("html", SHOWN)
def test_text_that_browsers_show_is_text(core: ModuleType, html: str) -> None:
    """What is found by a search or opened by a click, too."""
    assert "x" in text_of(core, html)


def test_the_body_is_shown(core: ModuleType) -> None:
    """Scripts hide it until they have run."""
    page = b"<!doctype html><html hidden><body style='visibility:hidden'><p>x"
    assert core.page_pass(page, "http://a.test/", "utf-8").text == b"x"


def test_links_in_hidden_parts_are_links(core: ModuleType) -> None:
    """Menus that open are hidden."""
    found = core.page_pass(b"<ul style='display:none'><li><a href=/x>x</a></ul>", "http://a.test/", "utf-8")
    assert (found.link_count, found.text) == (1, b"")


@pytest.mark.parametrize(
    "ruby",
    [
        "<ruby>漢字<rt>かんじ</ruby>",
        "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rp>(<rt>じ<rp>)</ruby>",
        "<ruby><rb>漢</rb><rb>字</rb><rtc><rt>かん</rt><rt>じ</rt></rtc></ruby>",
    ],
)
def test_readings_are_left_out(core: ModuleType, ruby: str) -> None:
    """They are never glued to their word."""
    assert text_of(core, f"<p>x{ruby}y</p>").split() == ["a", "x漢字y", "b"]


def test_a_picture_that_is_hidden_is_no_picture() -> None:
    """As of a counter of visits."""
    core = load("rust")
    html = b"<p>a <img src=/i style='display:none'><img src=/j> b"
    text, structure = core.structure_by(html, "utf-8", [])
    assert core.markdown(structure, text, "http://a.test/") == b"a ![](http://a.test/j) b"
