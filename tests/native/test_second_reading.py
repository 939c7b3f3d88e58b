"""A page of which little would stay is read again, without the bars around it: the sidebar of a manual is longer than
many of its chapters."""

from __future__ import annotations

import pytest

from tests.native.conftest import load

PROSE = "A shed opens between the raised and the lowered threads, and the shuttle flies through it. " * 2
SURE, ALMOST_NEVER = 6000, -1500


def main_text(body: str) -> list[str]:
    """The main text if every line is certain but for those that begin with "maybe", which are improbable."""
    html = f"<title>Looms</title><body>{body}".encode()
    core = load("rust")
    lines = core.page_pass(html, "http://a.test/", "utf-8").text.decode().split("\n")
    scores = [ALMOST_NEVER if line.startswith("maybe") else SURE for line in lines]
    return core.main_text_by(html, "utf-8", scores).decode().split("\n")


def items(count: int) -> str:
    return "".join(f"<li class=chapter-item><a href={n}.html>maybe chapter {n} of the book</a>" for n in range(count))


@pytest.mark.parametrize(
    "bar",
    [
        f"<nav class=sidebar><div class=scrollbox><ol class=chapter>{items(90)}</ol></div></nav>",
        f"<nav class=sidebar><ol class=chapter>{items(30)}<li><ol class=section>{items(60)}</ol></ol></nav>",
        f"<aside class=sidebar><div class=sidebar-nav><ul>{items(90)}</ul></div></aside>",
        f"<div class=book-summary><nav role=navigation><ul class=summary>{items(90)}</ul></nav></div>",
        f"<nav class=sidebar><h3>maybe modules</h3><ul class=block>{items(90)}</ul><h3>maybe crates</h3></nav>",
    ],
    ids=["one list", "nested lists", "aside", "list within a box", "headings"],
)
@pytest.mark.parametrize("content", ["main", "div"])
def test_the_sidebar_of_a_manual_is_no_main_text(bar: str, content: str) -> None:
    """Although nearly all of the page is its sidebar."""
    assert main_text(f"{bar}<{content}><h1>Sheds</h1><p>{PROSE}</{content}>") == ["Sheds", PROSE.strip()]


def test_entries_beside_a_sidebar_are_read_again() -> None:
    entries = "".join(f"<div class=entry>maybe entry {n} of the list</div>" for n in range(90))
    text = main_text(f"<nav><ol>{items(30)}</ol></nav><p>{PROSE}</p>{entries}")
    assert ("maybe entry 0 of the list" in text, "maybe chapter 0 of the book" in text) == (True, False)
