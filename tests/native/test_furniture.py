"""Lines beside the text of an article go by their words, in many languages; other pages and prose keep theirs."""

from __future__ import annotations

from types import ModuleType

import pytest

from .conftest import core_only

pytestmark = core_only

TEXT = (
    "In dry summers the threads turn yellow; after rain they are as clear as glass, and birds fly straight into them. "
    "Nobody has counted how many insects end there, but the farmers of the valley are glad of every one of them."
)
ARTICLE = "<meta property=og:type content=article>"


def main_text(core: ModuleType, line: str, head: str = ARTICLE) -> str:
    """The main text of an article of six paragraphs with a line in its midst."""
    paragraphs = [f"<p>{number}. {TEXT}</p>" for number in range(6)]
    paragraphs.insert(3, line)
    body = "".join(paragraphs)
    page = f"<!doctype html>{head}<title>Webs</title><body><article><h1>Webs</h1><div class=entry-content>{body}</div>"
    found = core.page_pass(f"{page}</article>".encode(), "http://site.test/", "utf-8")
    return str(found.main_text.decode())


@pytest.mark.parametrize(
    "line",
    [
        "<p>Lesen Sie auch: <a href=/a>Wie die Spinne den Winter verbringt</a></p>",
        "<p>Czytaj też: <a href=/a>Jak pająk spędza zimę w dolinie</a></p>",
        "<p>Lire aussi : <a href=/a>Comment l'araignée passe l'hiver</a></p>",
        "<p>Читайте также: <a href=/a>Как паук проводит зиму в долине</a></p>",
        "<p>Foto: Erika Mustermann</p>",
        "<p>Источник: РИА</p>",
        "<p>Die Spinne in ihrem Netz am Fluss (Foto: Mustermann)</p>",
        "<p>A spider in its web beside the river © Agency of the Valley</p>",
        "<p>31. března 2026</p>",
        "<p>Κατηγορίες: Σχόλια</p>",
        "<p>KATEGORIEN: ÄHNLICHE BEITRÄGE</p>",
        "<p>Follow us on Facebook, Twitter and Instagram.</p>",
    ],
)
def test_furniture_within_an_article_goes(core: ModuleType, line: str) -> None:
    """A related story, a credit, a date, categories."""
    found = main_text(core, line)
    assert [text for text in found.splitlines() if text != "Webs"] == [f"{number}. {TEXT}" for number in range(6)]


@pytest.mark.parametrize(
    "line",
    [
        "<p>Read more slowly and you will see that the threads are never of one colour.</p>",
        "<p>He took a photo of the web: it was the first one of the summer that was ever seen.</p>",
        "<p>The spider and more words follow here.</p>",
        "<p>Print and privacy came later, much later!</p>",
        "<pre>photo: image\ntags: comments</pre>",
        "<table><tr><td>Photo: image<td>tags<tr><td>comments<td>share</table>",
    ],
)
def test_prose_code_and_cells_stay(core: ModuleType, line: str) -> None:
    """A term or two make no line of terms."""
    assert len([text for text in main_text(core, line).splitlines() if text != "Webs"]) > 6


def test_a_heading_of_terms_stays_where_no_article_is_declared(core: ModuleType) -> None:
    """Documentation has sections of such names."""
    line = f"<h2>Comments and tags</h2><p>{TEXT[:150]}</p>"
    assert "Comments and tags" in main_text(core, line, "").splitlines()
    assert "Comments and tags" not in main_text(core, line).splitlines()
