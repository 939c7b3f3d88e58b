"""Visible lines with the date or the author are an entry of the metadata, because they are no main text."""

from __future__ import annotations

from types import ModuleType

import pytest

TITLE = "Storm over the coast"
MANY = "<p>x" * 9


def dateline(core: ModuleType, html: str, title: str = TITLE) -> list[str]:
    meta = dict(core.page_pass(f"<title>{title}</title><body>{html}".encode(), "http://a.test/", "utf-8").meta)
    return meta.get("dateline", "").split("\n")


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        (f"<h1>{TITLE}</h1><p>By Ann Lee<p>June 25, 2025<p>It was loud.", ["By Ann Lee", "June 25, 2025"]),
        (f"<p>25. Juni 2025<h1>{TITLE}</h1><p>von 2024", ["von 2024", "25. Juni 2025"]),
        (f"<h1>{TITLE}</h1>{MANY}<p>June 25, 2025", [""]),
        (f"<p>2021<p>a<p>b<p>c<h1>{TITLE}</h1>", [""]),
        (f"<h1>The site</h1>{MANY}<p>{TITLE}<p>2025年6月25日", ["2025年6月25日"]),
        (f"<h1>{TITLE}</h1><p>12025 or 202 or 20255", [""]),
        (f"<h1>{TITLE}</h1><p>{'In 2025 ' * 40}", [""]),
        (f"<h1>{TITLE}</h1><p>๒๕๖๘ ปี 2568<p>2025년", ["๒๕๖๘ ปี 2568", "2025년"]),
        (f"<h1>{TITLE}</h1>{MANY}<p>Zuletzt aktualisiert: 25.06.2025", ["Zuletzt aktualisiert: 25.06.2025"]),
        (f"<h1>{TITLE}</h1>{MANY}<p>Published<p>June 25, 2025<p>June 26, 2025", ["June 25, 2025"]),
        ("<p>ОПУБЛИКОВАНО 25 июня 2025 и в 2024", ["ОПУБЛИКОВАНО 25 июня 2025 и в 2024"]),
        (f"<h1>{TITLE}</h1>" + "<p>Posted in 2020" * 20, ["Posted in 2020"] * 8),
        ("", [""]),
    ],
)
def test_lines_of_a_page(core: ModuleType, html: str, lines: list[str]) -> None:
    assert dateline(core, html) == lines


def test_without_a_title_the_only_heading_is_the_headline(core: ModuleType) -> None:
    assert dateline(core, "<h1>Storm</h1><p>June 25, 2025", "") == ["June 25, 2025"]


def test_many_years_take_no_long(core: ModuleType) -> None:
    """Beyond 256 places of a year none is looked at for a label."""
    assert dateline(core, "<p>2021 " * 300 + "<p>Posted in 2025") == [""]


def test_versions_in_other_languages(core: ModuleType) -> None:
    """As written, each a line, at most 2,000 bytes."""
    head = (
        "<link rel='Alternate' hreflang=de href=/de><link rel=alternate type=application/rss+xml href=/feed>"
        "<link rel=alternate hreflang='x y' href=/no><link rel=next hreflang=fr href=/no>"
        "<link rel=alternate hreflang=it><link rel=alternate hreflang=x-default href=' http://a.test/ '>"
    )
    meta = dict(core.page_pass(head.encode(), "http://a.test/", "utf-8").meta)
    assert meta == {"hreflang": "de /de\nx-default http://a.test/"}
    many = "".join(f"<link rel=alternate hreflang=aa-{n} href=/{n}>" for n in range(1000))
    assert len(dict(core.page_pass(many.encode(), "http://a.test/", "utf-8").meta)["hreflang"]) in range(1990, 2001)


def test_names_of_a_publication_are_metadata(core: ModuleType) -> None:
    head = "<meta name=w-Published-date content=2025-05-27><meta name=dcPublisher content=x>"
    assert core.page_pass(head.encode(), "http://a.test/", "utf-8").meta == [("w-published-date", "2025-05-27")]
