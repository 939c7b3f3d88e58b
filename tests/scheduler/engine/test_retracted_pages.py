"""Pages that did not come from their server are fetched again: ended ones, open ones, over a kill, under a budget."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult, Outcome
from nephila.kernel.outcomes import given_back
from nephila.kernel.topics import OUTCOMES
from nephila.native import parse_url

from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, site

PAGES = {"/": ["/a", "/b"], "/a": [], "/b": []}


def retract(world: World, path: str, fetch_no: int = 1, status: int = 200, depth: int = 1) -> None:
    """What the downloader publishes for a page of a proxy that lies."""
    parts = parse_url(f"http://a.test{path}")
    request = FetchRequest(JOB, parts.fingerprint, parts.href, "a.test", fetch_no=fetch_no, attempt=1, depth=depth)
    outcome: FetchOutcome = given_back(request)
    outcome.result, outcome.status, outcome.request = FetchResult.RETRACTED, status, request
    world.bus.publish(OUTCOMES, 0, outcome)
    world.clock.run_due()


def fetches(world: World, path: str) -> list[int]:
    """Numbers of the fetches of a URL."""
    return [one.fetch_no for one in world.fetched if one.url == f"http://a.test{path}"]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("max_pages", [0, 3])
async def test_an_ended_page_is_fetched_once_more(tmp_path: Path, killed: bool, max_pages: int) -> None:
    """It counts once, also when it is retracted twice."""
    world = await World(tmp_path, site(PAGES)).start()
    world.crawl("http://a.test/", scope=Scope(max_depth=-1, max_pages=max_pages))
    world.run()
    world.scheduler.hold(True)
    retract(world, "/a")
    retract(world, "/a")
    check(world.scheduler.dispatcher)
    assert world.scheduler.ended(JOB) == {Outcome.STORED: 2}
    if killed:
        rows = world.rows
        world.kill()
        world = await World(tmp_path, site(PAGES), world.clock).start()
        world.rows = rows
    world.scheduler.hold(False)
    world.run()
    check(world.scheduler.dispatcher)
    assert fetches(world, "/a")[-1] == 2
    assert len([one for one in world.fetched if one.fetch_no == 2]) == 1
    assert world.scheduler.ended(JOB)[Outcome.STORED] == 3
    retract(world, "/a")  # of the first fetch, which is over
    world.run()
    assert fetches(world, "/a")[-1] == 2


async def test_a_page_without_its_receipt_is_fetched_again(tmp_path: Path) -> None:
    """The receipt of the false page does not end the URL."""
    world = World(tmp_path, site(PAGES))
    world.hold_receipts = True
    await world.start()
    world.crawl("http://a.test/", scope=Scope(max_depth=0))
    world.clock.advance(0.2)
    assert fetches(world, "/") == [1]
    retract(world, "/", depth=0)
    world.hold_receipts = False
    world.release(1)
    world.run()
    check(world.scheduler.dispatcher)
    assert fetches(world, "/") == [1, 2]
    assert world.scheduler.ended(JOB) == {Outcome.STORED: 1}
    assert world.rows[parse_url("http://a.test/").fingerprint].fetch_no == 2


@pytest.mark.parametrize(("status", "first"), [(404, Outcome.FAILED), (302, Outcome.DROPPED)])
async def test_a_false_end_is_taken_back(tmp_path: Path, status: int, first: Outcome) -> None:
    """A proxy that answers 404 or redirects in the place of the server."""

    def web(request: FetchRequest) -> Answer:
        if request.kind is FetchKind.ROBOTS or request.fetch_no > 1:
            return Answer()
        return Answer(status=404) if status == 404 else Answer(status=302, location="http://elsewhere.test/")

    world = await World(
        tmp_path, lambda request: Answer(["http://a.test/a"]) if request.depth == 0 else web(request)
    ).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.scheduler.ended(JOB)[first] == 1
    retract(world, "/a", status=status)
    world.run()
    check(world.scheduler.dispatcher)
    assert {outcome: count for outcome, count in world.scheduler.ended(JOB).items() if count} == {Outcome.STORED: 2}


async def test_unknown_urls_and_jobs_are_left_alone(tmp_path: Path) -> None:
    """A page of a job that was deleted, or of an earlier program with another directory."""
    world = await World(tmp_path, site(PAGES)).start()
    retract(world, "/a")
    world.crawl("http://a.test/", scope=Scope(max_depth=0))
    world.run()
    retract(world, "/never-seen")
    world.run()
    check(world.scheduler.dispatcher)
    assert [one.url for one in world.fetched] == ["http://a.test/"]
