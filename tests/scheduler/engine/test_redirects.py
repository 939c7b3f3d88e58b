"""Redirects go back through the queue: every rule applies to the target."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import FetchKind
from nephila.scheduler import job_facts

from tests.scheduler.world import JOB, Answer, World, site


async def test_a_redirect_ends_as_dropped_and_its_target_is_fetched(tmp_path):
    """http://a.test/ → https://www.a.test/: one dropped row with final_url, one stored row, same scope."""

    def web(request):
        if request.url == "http://a.test/":
            return Answer(status=301, location="https://www.a.test/")
        return site({"https://www.a.test/": ["/about"], "https://www.a.test/about": []}, "https://www.a.test")(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.outcomes() == {
        "http://a.test/": "dropped(redirect)",
        "https://www.a.test/": "stored",
        "https://www.a.test/about": "stored",
    }
    assert next(r for r in world.rows.values() if r.reason).final_url == "https://www.a.test/"
    await world.scheduler.close()


@pytest.mark.parametrize("seeds", [("http://a.test/", "http://b.test/"), ("http://b.test/", "http://a.test/")])
async def test_the_host_of_a_redirect_is_noted_whether_or_not_it_is_a_seed_itself(tmp_path, seeds):
    """The summary names the same hosts however the partitions and the seeds are ordered; not the host of the seed."""

    def web(request):
        to = {"http://a.test/": "http://b.test/", "http://b.test/": "http://www.b.test/"}.get(request.url)
        return Answer(status=302, location=to) if to else site({"http://www.b.test/": []})(request)

    world = await World(tmp_path, web).start()
    world.crawl(*seeds)
    world.run()
    assert job_facts.redirect_anchors(world.scheduler, JOB) == ["b.test"]
    await world.scheduler.close()


async def test_a_seed_that_moves_to_another_host_takes_the_scope_along(tmp_path):
    """The host a seed redirects to counts as a seed host; a page's redirect does not open the scope."""

    def web(request):
        table = {"http://old.test/": "http://new.test/", "http://new.test/out": "http://far.test/"}
        if request.url in table:
            return Answer(status=302, location=table[request.url])
        return site({"http://new.test/": ["http://new.test/out"], "http://far.test/": []})(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://old.test/")
    world.run()
    assert world.outcomes() == {
        "http://old.test/": "dropped(redirect)",
        "http://new.test/": "stored",
        "http://new.test/out": "dropped(redirect)",
    }
    assert job_facts.redirect_anchors(world.scheduler, JOB) == ["new.test"]
    assert job_facts.anchors(world.scheduler, JOB) == ["new.test", "old.test"]
    await world.scheduler.close()


async def test_a_seed_takes_the_scope_along_for_five_hops(tmp_path):
    """The host after the sixth redirect is none that the user has named."""

    def web(request):
        return Answer(status=302, location=f"http://h{int(request.host[1]) + 1}.test/")

    world = await World(tmp_path, web).start()
    world.crawl("http://h0.test/")
    world.run()
    assert world.outcomes() == {f"http://h{number}.test/": "dropped(redirect)" for number in range(6)}
    assert world.scheduler.frontier.jobs["t"].scope.anchors == {f"h{number}.test" for number in range(6)}
    await world.scheduler.close()


async def test_a_loop_ends(tmp_path):
    """A → B → A: two dropped rows, two fetches."""

    def web(request):
        return Answer(status=302, location="http://a.test/b" if request.url.endswith("/a") else "http://a.test/a")

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/a")
    world.run()
    assert set(world.outcomes().values()) == {"dropped(redirect)"}
    assert len(world.fetched) == 2
    await world.scheduler.close()


async def test_an_endless_chain_ends_after_ten_hops(tmp_path):
    """/0 → /1 → …: ten rows dropped, the eleventh failed(too_many_redirects)."""

    def web(request):
        return Answer(status=302, location=f"http://a.test/{int(request.url.rsplit('/', 1)[1]) + 1}")

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/0")
    world.run()
    assert list(world.outcomes().values()).count("dropped(redirect)") == 10
    assert world.outcomes()["http://a.test/10"] == "failed(too_many_redirects)"
    await world.scheduler.close()


async def test_a_redirect_to_another_spelling_of_itself_is_followed(tmp_path):
    """?b=2&a=1 → ?a=1&b=2 has the same fingerprint: one stored row, not a URL lost as seen."""

    def web(request):
        if request.url.endswith("?b=2&a=1"):
            return Answer(status=301, location="http://a.test/?a=1&b=2")
        return Answer()

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/?b=2&a=1")
    world.run()
    assert world.outcomes() == {"http://a.test/?a=1&b=2": "stored"}
    assert [f.fetch_no for f in world.fetched] == [1, 2]
    await world.scheduler.close()


async def test_a_redirect_to_itself_ends(tmp_path):
    """A cookie wall that redirects to the same URL for ever fails after ten hops."""
    world = await World(tmp_path, lambda r: Answer(status=302, location=r.url)).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.outcomes() == {"http://a.test/": "failed(too_many_redirects)"}
    await world.scheduler.close()


async def test_the_target_is_held_against_robots(tmp_path):
    """A redirect is no way around robots.txt."""

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return Answer(body=b"User-agent: *\nDisallow: /secret")
        return Answer(status=302, location="http://a.test/secret")

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/", robots=True)
    world.run()
    assert world.outcomes()["http://a.test/secret"] == "denied(robots)"
    assert "http://a.test/secret" not in {f.url for f in world.fetched}
    await world.scheduler.close()


async def test_a_target_that_is_no_web_address_fails(tmp_path):
    """Location: mailto: is an end with a reason."""
    world = await World(tmp_path, lambda r: Answer(status=302, location="mailto:x@y")).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.outcomes() == {"http://a.test/": "failed(bad_redirect)"}
    await world.scheduler.close()


async def test_a_seed_does_not_lead_to_what_is_excluded(tmp_path):
    """A seed that redirects to an excluded URL ends there, and does not open the scope at its host."""
    web = site({"http://login.test/signin": ["http://login.test/help"]})

    def redirecting(request):
        if request.url == "http://a.test/":
            return Answer(status=302, location="http://login.test/signin")
        return web(request)

    world = await World(tmp_path, redirecting).start()
    world.crawl("http://a.test/", scope=Scope(exclude=["/signin"], max_depth=-1))
    world.run()
    assert world.outcomes() == {"http://a.test/": "dropped(redirect)"}
    assert world.scheduler.frontier.jobs["t"].scope.anchors == {"a.test"}
    await world.scheduler.close()
