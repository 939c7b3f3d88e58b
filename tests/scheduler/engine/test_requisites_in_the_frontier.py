"""Requisites of pages: beyond scope, strategy and page budget, not excluded; the same after a restart."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Parse, Scope
from nephila.kernel.messages import Context, FetchRequest, LinkSource, Outcome, Record, Render
from nephila.kernel.topics import OUTLINKS, RECORDS

from tests.links import outlinks
from tests.scheduler.engine.test_order_of_urls import later
from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World

STYLES = ["http://cdn.test/site.css", "http://a.test/site.css", "http://a.test/private/site.css"]


class PageWorld(World):
    """Every page names the same requisites, before its links, as the parser does."""

    contexts: dict[str, tuple[Context | None, Render]]

    def _parse(self, request: FetchRequest, answer: Answer) -> list:
        self.contexts = {**getattr(self, "contexts", {}), request.url: (request.context, request.render)}
        if request.url.endswith(".css"):
            record = Record(request.job, request.url_key, request.url, request.fetch_no, request.attempt)
            record.outcome, record.reason = Outcome.DROPPED, "requisite"
            return [self.bus.publish(RECORDS, 0, record)]
        links = outlinks(*STYLES, job=request.job, depth=request.depth, parent_key=request.url_key)
        links.source, links.context = LinkSource.REQUISITE, Context(requisite=1)
        return [self.bus.publish(OUTLINKS, 0, links), *super()._parse(request, answer)]


def web(request: FetchRequest) -> Answer:
    """Pages with links; the style of the other host moves to a third one."""
    if request.url == "http://cdn.test/site.css":
        return Answer(location="http://moved.test/site.css")
    return Answer(["http://a.test/1", "http://a.test/2", "http://b.test/"])


@pytest.mark.parametrize("strategy", ["bfs", "dfs"])
async def test_requisites_come_on_any_host_right_after_their_page(tmp_path, strategy):
    """Their redirects too. No browser renders them; an exclude pattern holds; links of pages stay in the scope."""
    world = await PageWorld(tmp_path, web).start()
    scope = Scope(exclude=["/private/"], max_depth=0)
    world.crawl("http://a.test/", scope=scope, strategy=strategy, render="auto", parse=Parse(requisites=200))
    world.run()
    assert [one.url for one in world.fetched if one.url.startswith("http://a.test")] == [
        "http://a.test/",
        "http://a.test/site.css",
    ]
    assert {one.url for one in world.fetched} == {
        "http://a.test/",
        "http://a.test/site.css",
        "http://cdn.test/site.css",
        "http://moved.test/site.css",
    }
    assert world.contexts["http://moved.test/site.css"] == (Context(requisite=1), Render.NEVER)
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


@pytest.mark.parametrize("segment_bytes", [0, 1 << 26])
async def test_requisites_need_no_place_in_the_page_budget_also_after_a_restart(tmp_path, segment_bytes):
    """A crawl that is killed with queued requisites fetches those that an undisturbed one fetches, and no page more."""
    world = await PageWorld(tmp_path, web, segment_bytes=segment_bytes).start()
    world.hold_receipts = True
    world.crawl("http://a.test/", scope=Scope(max_depth=0, max_pages=1), parse=Parse(requisites=200))
    while len(world.fetched) < 2:
        world.clock.advance(0.1)
    world.kill()
    world = await later(world, tmp_path, segment_bytes=segment_bytes).start()
    (job,) = world.scheduler.frontier.jobs.values()
    assert job.budget.requisites
    assert not job.budget.is_spent
    check(world.scheduler.dispatcher)
    world.run()
    assert not job.budget.requisites
    assert {one.url for one in world.fetched} >= {"http://a.test/site.css", "http://moved.test/site.css"}
    assert not any(one.url.endswith(("/1", "/2")) for one in world.fetched)
    await world.scheduler.close()
