"""A job takes the first new links of a page or of a level, or records them; the others have a row that says so."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nephila.kernel.documents.field_types import instant_text
from nephila.kernel.documents.job_schema import Recrawl, Scope
from nephila.kernel.messages import LinkSource
from nephila.scheduler.engine import admission

from tests.links import outlinks
from tests.scheduler.world import Answer, World, site

LIST = "http://a.test/"


def urls(*names):
    """URLs of the host of the list."""
    return [f"http://a.test/{name}" for name in names]


def with_texts(world):
    """The parser of the world gives the link /x the text "To x"."""
    from tests.scheduler import world as module

    plain = module.links_of

    def links_of(parent, links):
        made = plain(parent, links)
        texts = [f"To {link.rsplit('/', 1)[1]}" for link in links]
        return outlinks(
            *links,
            anchors=texts,
            **{name: getattr(made, name) for name in ("job", "depth", "parent_key", "parent_url", "context")},
        )

    return links_of


async def crawled(directory, web, *, scope, seeds=(LIST,), **spec):
    """A world in which the job has ended."""
    world = await World(directory, web).start()
    world.crawl(*seeds, scope=scope, **spec)
    return world.run()


def ends(world, reason):
    """Paths of the rows that ended with a reason."""
    return sorted(url.removeprefix("http://a.test/") for url, end in world.outcomes().items() if end == reason)


async def test_the_first_new_links_of_each_page_are_taken(tmp_path):
    """In the order of the page; the others have a row and no request."""
    web = site({"/": ["/3", "/1", "/2", "/4"], "/3": ["/1", "/5", "/6", "/7"], "/1": [], "/5": [], "/6": []})
    world = await crawled(tmp_path, web, scope=Scope(max_depth=-1, links_per_page=2))
    assert ends(world, "stored") == ["", "1", "3", "5", "6"]
    assert ends(world, "dropped(top_of_page)") == ["2", "4", "7"]
    assert {one.url for one in world.fetched} == {LIST, *urls("1", "3", "5", "6")}


async def test_links_of_a_level_are_limited_over_all_its_pages(tmp_path):
    """Level 1 are the links of the seeds."""
    web = site(
        {
            "/": ["/1", "/2"],
            "/1": ["/3", "/4"],
            "/2": ["/5", "/6"],
            "/3": ["/7"],
            "/4": [],
            "/5": ["/8"],
            "/7": [],
            "/8": [],
        }
    )
    world = await crawled(tmp_path, web, scope=Scope(max_depth=-1, links_per_level=3))
    assert ends(world, "dropped(top_of_level)") == ["6"]
    assert ends(world, "stored") == ["", "1", "2", "3", "4", "5", "7", "8"]


@pytest.mark.parametrize("limit", ["links_per_page", "links_per_level"])
async def test_a_later_run_takes_the_links_that_are_new_then(tmp_path, limit):
    """A link that was left out is not new: it stays left out."""
    links = ["/1", "/2", "/3"]
    world = await World(tmp_path, lambda request: Answer(links=urls_of(links) if request.url == LIST else [])).start()
    scope = Scope(max_depth=1, **{limit: 2})
    for new in ([], ["/5", "/4"]):
        links[:0] = new
        watch = Recrawl(monitor=True, refresh_at=instant_text(world.clock.now()))
        world.crawl(LIST, scope=scope, recrawl=watch)
        world.clock.advance(100.0)
        world.run()
    assert ends(world, "stored") == ["", "1", "2", "4", "5"]
    assert len(ends(world, f"dropped(top_of_{limit[10:]})")) == 1


def urls_of(paths):
    """URLs of paths."""
    return [f"http://a.test{path}" for path in paths]


@settings(max_examples=60, deadline=None)
@given(
    pages=st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=6),
    per_page=st.integers(0, 4),
    per_level=st.integers(0, 6),
    source=st.sampled_from([LinkSource.UNSPECIFIED, LinkSource.FEED, LinkSource.SITEMAP]),
)
def test_no_page_and_no_level_exceeds_its_limit(tmp_path_factory, pages, per_page, per_level, source):
    """Over random pages, feeds and sitemaps of one level, against a model."""

    async def work():
        world = await World(tmp_path_factory.mktemp("w"), site({})).start()
        world.crawl(LIST, scope=Scope(max_depth=-1, links_per_page=per_page, links_per_level=per_level))
        frontier = world.scheduler.frontier
        seen, taken, expected = {0}, 0, {}
        for page in pages:
            of_page = 0
            for number in page:
                if number in seen:
                    continue
                seen.add(number)
                if per_page and of_page >= per_page:
                    expected[number] = "top_of_page"
                elif per_level and taken >= per_level:
                    expected[number] = "top_of_level"
                else:
                    of_page, taken = of_page + 1, taken + 1
                    expected[number] = ""
            links = [f"http://a.test/{number or ''}" for number in dict.fromkeys(page)]
            admission.add_links(frontier, outlinks(*links, job="t", depth=1, parent_url=LIST, source=source))
        world.run()
        rows = world.outcomes()
        for number, reason in expected.items():
            end = rows[f"http://a.test/{number}"]
            assert (f"dropped({reason})" == end) if reason else not end.startswith("dropped"), (number, end)

    asyncio.run(work())


async def test_recorded_links_are_rows_with_text_and_page_and_no_request(tmp_path, monkeypatch):
    """A later run records only the new ones; links outside of the scope are no records."""
    links = ["/1", "/ads/2"]
    world = await World(tmp_path, lambda request: Answer(links=urls_of(links))).start()
    monkeypatch.setattr("tests.scheduler.world.links_of", with_texts(world))
    scope = Scope(max_depth=-1, exclude=["/ads/"])
    for new in ([], ["/3"]):
        links[:0] = new
        world.rows.clear()
        watch = Recrawl(monitor=True, refresh_at=instant_text(world.clock.now()))
        world.crawl(LIST, scope=scope, recrawl=watch, record_links=True)
        world.clock.advance(100.0)
        world.run()
        (row,) = [one for one in world.rows.values() if one.reason == "link_recorded"]
        name = (new or ["/1"])[0]
        assert (row.url, row.title, row.depth) == (f"http://a.test{name}", f"To {name[1:]}", 1)
        assert json.loads(row.meta) == {"found_on": LIST}
    assert {one.url for one in world.fetched} == {LIST}


async def test_turned_on_later_and_off_later_new_links_are_treated_by_the_present_document(tmp_path):
    """What was fetched or recorded before stays as it is."""
    links = ["/1"]
    world = await World(tmp_path, lambda request: Answer(links=urls_of(links) if request.url == LIST else [])).start()
    for name, record in (("1", False), ("2", True), ("3", False)):
        if f"/{name}" not in links:
            links.append(f"/{name}")
        watch = Recrawl(monitor=True, refresh_at=instant_text(world.clock.now()))
        world.crawl(LIST, recrawl=watch, record_links=record)
        world.clock.advance(100.0)
        world.run()
    assert ends(world, "dropped(link_recorded)") == ["2"]
    assert {one.url for one in world.fetched} == {LIST, *urls("1", "3")}


async def test_records_are_limited_as_fetches_are(tmp_path):
    """Of the two links of the page one is recorded; a restart changes nothing."""
    web = site({"/": ["/1", "/2"]})
    world = await crawled(tmp_path, web, scope=Scope(max_depth=-1, links_per_page=1), record_links=True)
    assert (ends(world, "dropped(link_recorded)"), ends(world, "dropped(top_of_page)")) == (["1"], ["2"])
