"""What stands below the last sentence of an article goes; a page that calls itself an article and has next to no text
is read as any other."""

from __future__ import annotations

import pytest
from nephila.native import page_pass

from tests.native.conftest import load

PROSE = "The weavers of the valley dye their wool with bark and with the roots of madder. " * 2
ARTICLE = "<meta property=og:type content=article>"
SURE, UNLIKELY, ALMOST_NEVER = 6000, -400, -1500


def main_text(head: str, body: str, score: int = UNLIKELY) -> list[str]:
    """The main text if every line is certain but for those that begin with "unlikely", which have the score."""
    html = f"<title>Weavers</title>{head}<body>{body}".encode()
    lines = page_pass(html, "http://a.test/", "utf-8").text.decode().split("\n")
    scores = [score if line.startswith("unlikely") else SURE for line in lines]
    return load("rust").main_text_by(html, "utf-8", scores).decode().split("\n")


def last(head: str, ending: str) -> str:
    return main_text(head, "".join(f"<p>{number}. {PROSE}" for number in range(4)) + ending)[-1]


@pytest.mark.parametrize(
    "ending",
    [
        "<p>Was this page of any use to you?",
        "<h2>What others are reading now</h2>",
        "<p><a href=/b>How the dyers of the next valley live, and what they make of the bark of old trees.</a>",
        "<h2>Of interest</h2><ul><li><a href=/c>The dyers.</a><li><a href=/d>The tanners.</a></ul><p>Archive",
    ],
)
def test_an_article_ends_with_a_sentence(ending: str) -> None:
    assert last(ARTICLE, ending) == f"3. {PROSE.strip()}"


@pytest.mark.parametrize(
    ("head", "ending", "text"),
    [
        (ARTICLE, "<p>The end of it was near.", "The end of it was near."),
        (ARTICLE, "<p>« C'est la fin »", "« C'est la fin »"),
        (ARTICLE, "<ul><li>wool<li>bark</ul>", "bark"),
        (ARTICLE, "<pre>dye --with bark</pre>", "dye --with bark"),
        ("", "<ul><li><a href=/c>The dyers</a></ul>", "The dyers"),
        ("", "<h2>The dyers of the next valley</h2>", "The dyers of the next valley"),
    ],
)  # fmt: skip
def test_sentences_items_and_code_stay(head: str, ending: str, text: str) -> None:
    """And all lines where no article is declared."""
    assert last(head, ending) == text


def test_a_page_of_short_lines_keeps_its_end() -> None:
    body = "".join(f"<p>A line of a poem, number {number}" for number in range(12))
    assert main_text(ARTICLE, body)[-1] == "A line of a poem, number 11"


def rows(of: str, count: int) -> str:
    return "".join(f"<div class=row>{of} row {number} of the list</div>" for number in range(count))


def test_an_article_without_text_is_read_as_any_page() -> None:
    """Weblogs call every page an article, lists and shops as well."""
    body = f"<p>{PROSE[:60]}." + rows("unlikely", 40)
    assert "unlikely row 0 of the list" in main_text(ARTICLE, body, ALMOST_NEVER)
    assert "unlikely row 0 of the list" not in main_text(ARTICLE, f"<p>{PROSE * 2}" + body, ALMOST_NEVER)
