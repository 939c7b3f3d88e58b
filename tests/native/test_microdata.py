"""Dates and authors of microdata in any element are entries of the metadata, so that rows have them; the fallback reads
the same."""

from __future__ import annotations

from types import ModuleType

import pytest
from nephila.kernel.page_facts.row_facts import row_facts


def entries(core: ModuleType, html: str) -> dict[str, str]:
    """The metadata of a page, the first value of each name."""
    meta = core.page_pass(f"<title>T</title><body>{html}".encode(), "http://a.test/", "utf-8").meta
    return dict(reversed(meta))


@pytest.mark.parametrize(
    ("html", "date"),
    [
        ("<time itemprop=datePublished datetime=2026-11-21>today</time>", "2026-11-21"),
        ("<span itemProp='headline datePublished' content=' 2026-11-21 '>x</span>", "2026-11-21"),
        ('<TIME itemprop="dateModified">x</TIME><b itemprop="datepublished">21 <i>Nov</i>\n2026</b>', "21 Nov 2026"),
        ("<div itemprop=datePublished><p>21 Nov</p><p>2026</p></div>", "21 Nov 2026"),
        ("<div itemprop=datePublished><div>on</div>2026-11-21</div>", "on 2026-11-21"),
        ("<time itemprop=datePublished>2026-11-21</time><time itemprop=datePublished>2026-11-22</time>", "2026-11-21"),
        ("<time itemprop=datePublished></time><time itemprop=datePublished>2026-11-22</time>", "2026-11-22"),
        ("<meta itemprop=datePublished content=2026-11-20><b itemprop=datePublished>2026-11-21</b>", "2026-11-20"),
        ("itemprop <i>itemprop</i><p itemprop><x-date itemprop=datePublished>2026-11-21</x-date>", "2026-11-21"),
        ("<span itemprop=datePublished>&nbsp;1&#46;2&nbsp;</span>", "1.2"),
    ],
)
def test_dates_of_publication(core: ModuleType, html: str, date: str) -> None:
    """The attribute of a machine's date, else the text; the first that has either."""
    assert entries(core, html)["datepublished"] == date


def test_each_date_has_its_name(core: ModuleType) -> None:
    found = entries(core, "<i itemprop=dateCreated>2026-1-1</i><time itemprop=dateModified datetime=2026-02-02></time>")
    assert (found["datecreated"], found["datemodified"]) == ("2026-1-1", "2026-02-02")


@pytest.mark.parametrize(
    ("html", "author"),
    [
        ("<span itemprop=author>Ann Lee</span>", "Ann Lee"),
        ("<a rel=author itemprop='url author' href=/a>Ann <b>Lee</b></a>", "Ann Lee"),
        (
            "<div itemprop=author itemscope><img alt=x><span>By</span><a><b itemprop=name>Ann Lee</b></a>, Editor</div>"
            "<p itemprop=publisher itemscope><b itemprop=name>ACME</b></p>",
            "Ann Lee",
        ),
        ("<div itemprop=author itemscope><meta itemprop=name content='Ann Lee'></div>", "Ann Lee"),
        ("<div itemprop=author itemscope>Ann Lee</div><p itemprop=name>ACME</p>", "Ann Lee"),
    ],
)
def test_authors(core: ModuleType, html: str, author: str) -> None:
    """The name within the person, else the text."""
    assert entries(core, html)["author"] == author


@pytest.mark.parametrize(
    "html",
    [
        "<!-- <time itemprop=datePublished datetime=2026-11-21></time> -->",
        "<script>'<time itemprop=datePublished datetime=2026-11-21></time>'</script>",
        "<template><time itemprop=datePublished datetime=2026-11-21></time></template>",
        "<div id=comments><p><b itemprop=author>Troll</b><b itemprop=datePublished>2026-11-21</b></div>",
        "<div itemprop=author></div><span itemprop=datePublished>" + "x" * 200 + "</span>",
        "<span itemprop=datePublished>" + "<b></b>" * 200 + "x</span>",
        "<p class=itemprop>2026-11-21</p><p title='itemprop=author'>x</p>",
        "<br itemprop=author><img itemprop=datePublished>",
    ],
)
def test_what_is_no_microdata_of_the_page(core: ModuleType, html: str) -> None:
    """Comments of the source and of readers, scripts, templates; long texts."""
    assert entries(core, html) == {}


def test_rows_have_them(core: ModuleType) -> None:
    """Behind what the head states."""
    html = "<time itemprop=datePublished>June 5, 2026</time> by <b itemprop=author>Ann Lee</b>"
    facts = row_facts(url="http://a.test/", title="T", lang="en", meta=entries(core, html))
    assert (facts.published, facts.authors) == ("2026-06-05", ("Ann Lee",))


def test_many_of_them_take_no_long(core: ModuleType) -> None:
    """A page that has nothing else; the first counts."""
    html = "<b itemprop='author datePublished'>" * 50_000
    assert entries(core, "<i itemprop=author>Ann Lee</i>" + html)["author"] == "Ann Lee"
