"""Dates and authors of JSON-LD are entries of the metadata, so that rows have them; the fallback reads the same."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from nephila.kernel.page_facts.row_facts import row_facts

ARTICLE = {
    "@type": "NewsArticle",
    "headline": "H",
    "datePublished": "2026-11-21T10:00:00Z",
    "dateModified": "2026-11-22",
    "author": [{"@type": "Person", "name": "Ann Le\u0301e"}, {"name": "Bob Ray"}],
    "comment": [{"@type": "Comment", "datePublished": "2026-11-23", "author": {"name": "Troll"}}],
}
OF_ARTICLE = {"published": "2026-11-21T10:00:00Z", "modified": "2026-11-22", "author": "Ann Lée, Bob Ray"}


def entries(core: ModuleType, *scripts: Any) -> dict[str, str]:
    texts = (one if isinstance(one, str) else json.dumps(one) for one in scripts)
    html = "".join(f'<script type="application/ld+json">{text}</script>' for text in texts)
    return dict(core.page_pass(f"<title>T</title>{html}<p>x".encode(), "http://a.test/", "utf-8").meta)


@pytest.mark.parametrize(
    "script",
    [
        ARTICLE,
        {"@graph": [{"@type": "WebSite", "name": "S"}, {"@type": "Organization"}, ARTICLE]},
        [ARTICLE | {"@type": ["Thing", "https://schema.org/BlogPosting"]}],
        f"//<![CDATA[\n{json.dumps(ARTICLE)}\n//]]>",
        json.dumps(ARTICLE, indent=2, ensure_ascii=False),
    ],
)
def test_facts_of_the_article(core: ModuleType, script: Any) -> None:
    found = entries(core, script)
    assert {name: found[f"jsonld:article:{name}"] for name in OF_ARTICLE} == OF_ARTICLE


def test_facts_of_another_object_come_last(core: ModuleType) -> None:
    found = entries(
        core, {"@type": "Product", "name": "P", "author": "No"}, {"@type": "WebPage", "datePublished": "2026-11-21"}
    )
    assert found == {"jsonld:published": "2026-11-21"}
    assert entries(core, {"@type": "JobPosting", "datePosted": "2026-11-21", "author": {"name": "x"}}) == {}


@pytest.mark.parametrize(
    "script", ["", "no", "{", '{"author":', "[" * 10_000 + '"author"', '{"author": "a\\', '{"datePublished" 5}', "{}\0"]
)
def test_what_is_no_json_states_nothing(core: ModuleType, script: str) -> None:
    assert entries(core, script) == {}


@pytest.mark.parametrize(
    ("image", "url"),
    [
        ("/a.jpg", "/a.jpg"),
        (["/a.jpg", "/b.jpg"], "/a.jpg"),
        ({"@type": "ImageObject", "url": "/a.jpg"}, "/a.jpg"),
        ([{"name": "N", "url": "/a.jpg"}], "/a.jpg"),
        (5, None),
    ],
)
def test_description_and_image_of_the_article(core: ModuleType, image: Any, url: str | None) -> None:
    """The description only where no <meta> states one."""
    script = ARTICLE | {"description": " D ", "image": image}
    found = entries(core, {"@type": "Product", "description": "no", "image": "/no.jpg", "author": "x"}, script)
    assert (found["jsonld:article:description"], found.get("jsonld:article:image")) == ("D", url)
    described = "{}</script><meta name=description content=M><script>"
    assert "jsonld:article:description" not in entries(core, described, script)


def test_rows_have_them(core: ModuleType) -> None:
    meta = entries(core, ARTICLE)
    facts = row_facts(url="http://a.test/", title="T", lang="", meta=meta)
    assert (facts.published, facts.modified) == ("2026-11-21T10:00:00Z", "2026-11-22")
    assert facts.authors


def test_marked_dates_are_noted(core: ModuleType) -> None:
    """The first <time> that is not of a change, and <meta itemprop> of a date."""
    html = (
        "<meta itemprop=datePublished content=2026-11-21><p><time class=updated datetime=2026-11-23>x</time>"
        "<time datetime='2026-11-22'>y</time><time datetime=2026-11-20>z</time>"
    )
    meta = dict(core.page_pass(html.encode(), "http://a.test/", "utf-8").meta)
    assert meta == {"datepublished": "2026-11-21", "time": "2026-11-22"}
    facts = row_facts(url="http://a.test/", title="T", lang="", meta=meta)
    assert facts.published == "2026-11-21"
