"""A context goes from a seed to its request, from a page to its links, and outlives restarts and repeated fetches."""

from __future__ import annotations

from nephila.kernel.documents.job_schema import Recrawl
from nephila.kernel.messages import Context, FetchRequest, Render, Seed
from nephila.kernel.topics import SEEDS

from tests.scheduler.engine.test_order_of_urls import later, pass_time
from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World

LOGIN = Context(session="member", stage="list", proxy_class="residential")


def recording(asked: dict[str, tuple[Context | None, Render]]):
    """A web of three pages, one of them behind a redirect; `asked` takes what each request carried."""

    def web(request: FetchRequest) -> Answer:
        asked[request.url] = (request.context, request.render)
        if request.url.endswith("/moved"):
            return Answer(location="http://a.test/target")
        return Answer(["http://a.test/moved", "http://a.test/page"]) if request.url == "http://a.test/" else Answer()

    return web


async def test_links_and_redirect_targets_inherit_the_context_of_their_page(tmp_path):
    """The hint for rendering is that of one URL and of its redirects; links follow the job."""
    asked: dict[str, tuple[Context | None, Render]] = {}
    world = await World(tmp_path, recording(asked)).start()
    world.crawl(render="auto")
    world.bus.publish(SEEDS, 0, Seed(JOB, "http://a.test/", context=LOGIN, render=Render.ALWAYS))
    world.run()
    assert asked == {
        "http://a.test/": (LOGIN, Render.ALWAYS),
        "http://a.test/moved": (LOGIN, Render.AUTO),
        "http://a.test/page": (LOGIN, Render.AUTO),
        "http://a.test/target": (LOGIN, Render.AUTO),
    }
    await world.scheduler.close()


async def test_without_a_context_a_request_has_none_and_is_not_rendered(tmp_path):
    """Null and NEVER: nobody downstream has to know of either."""
    asked: dict[str, tuple[Context | None, Render]] = {}
    world = await World(tmp_path, recording(asked)).start()
    world.crawl("http://a.test/")
    world.run()
    assert set(asked.values()) == {(None, Render.NEVER)}
    await world.scheduler.close()


async def test_a_context_outlives_restarts_and_is_there_when_a_page_is_fetched_again(tmp_path):
    """From the log, from a snapshot, and from the state of a watched URL."""
    asked: dict[str, tuple[Context | None, Render]] = {}
    world = await World(tmp_path, recording(asked)).start()
    world.crawl(paused=True, recrawl=Recrawl(every="3600s"))
    world.bus.publish(SEEDS, 0, Seed(JOB, "http://a.test/", context=LOGIN, render=Render.ALWAYS))
    world.clock.run_due()
    for segment_bytes in (1 << 26, 0):  # the log alone, then a snapshot each turn
        await world.scheduler.close()
        world = await later(world, tmp_path, segment_bytes=segment_bytes).start()
        check(world.scheduler.dispatcher)
    world.web = recording(asked)
    world.crawl(recrawl=Recrawl(every="3600s"))
    pass_time(world, 600.0)
    assert asked["http://a.test/"] == (LOGIN, Render.ALWAYS)
    await world.scheduler.close()
    world = await later(world, tmp_path).start()
    asked.clear()
    pass_time(world, 2 * 3600.0)
    assert asked["http://a.test/"] == (LOGIN, Render.ALWAYS)
    assert asked["http://a.test/page"] == (LOGIN, Render.NEVER)
    await world.scheduler.close()


async def test_a_seed_with_a_context_that_is_too_large_is_refused(tmp_path):
    """With the limit and the size."""
    world = await World(tmp_path, recording({})).start()
    world.crawl()
    world.bus.publish(SEEDS, 0, Seed(JOB, "http://a.test/", context=Context(session="x" * 20_000)))
    world.run()
    [(url, reason)] = world.scheduler.refused_seeds
    assert url == "http://a.test/"
    assert reason.startswith("a context has at most 16,384 bytes, not 20,0")
    assert not world.fetched
    await world.scheduler.close()


async def test_a_frontier_has_no_last_job(tmp_path):
    """The hundred-thousandth job of a directory is crawled, restarted and deleted like the first."""
    world = await World(tmp_path, recording({})).start()
    world.scheduler.frontier.jobs.next_number = 100_000
    world.crawl("http://a.test/", paused=True)
    assert world.scheduler.frontier.jobs[JOB].number == 100_000
    await world.scheduler.close()
    world = await later(world, tmp_path, segment_bytes=0).start()
    world.web = recording({})
    world.crawl()
    world.run()
    check(world.scheduler.dispatcher)
    assert len({f.url for f in world.fetched}) == 4
    world.crawl(deleted=True)
    assert not world.scheduler.frontier.jobs
    await world.scheduler.close()
