"""Which seeds and links are admitted, and when refused ones are judged again. Without bus, log and disk."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Recrawl, Scope, Traps
from nephila.kernel.messages import Context, CrawlJob, FetchResult, Outcome
from nephila.native import parse_url
from nephila.scheduler.engine.admission import add_links, add_seed, note_anchors
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.engine.recrawl_queue import next_due
from nephila.scheduler.engine.release_quarantine import release_quarantine
from nephila.scheduler.engine.unwanted import ODD_SHAPES_ALLOWED
from nephila.scheduler.jobs.queue_entry import unpack

from tests.links import outlinks
from tests.scheduler.engine.outcome_rig import JOB, OutcomeRig

URL = "http://a.test/0"


def links(rig: OutcomeRig, *urls: str, depth: int = 1) -> int:
    """The links of a page; returns how many are admitted."""
    return add_links(rig.frontier, outlinks(*urls, job=JOB, depth=depth, parent_url=URL))


def test_a_refused_link_is_judged_again_when_the_scope_has_a_new_anchor() -> None:
    """Until then it is refused without a look at the scope."""
    wider: list[str] = []
    rig = OutcomeRig()
    rig.frontier.on_wider = wider.append
    rig.job(URL)
    job = rig.frontier.jobs[JOB]
    wider.clear()
    assert [links(rig, "http://b.test/1") for _ in range(2)] == [0, 0]
    assert parse_url("http://b.test/1").fingerprint in job.refused.rejected
    rig.frontier.pending.commits()
    note_anchors(rig.frontier, job, ("b.test",))
    assert wider == [JOB]
    assert [anchor.place for commit in rig.frontier.pending.commits() for anchor in commit.anchors] == ["b.test"]
    assert links(rig, "http://b.test/1") == 1
    rig.check()


@pytest.mark.parametrize(
    ("seed", "context", "refused"),
    [
        (URL, None, ""),
        ("http://a.test/login", None, "excluded by '/login'"),
        (URL, Context("x" * 20_000), "a context has at most 16,384 bytes, not 20,0"),
    ],
)
def test_a_seed_is_refused_with_a_reason_and_leaves_no_anchor(seed: str, context: Context | None, refused: str) -> None:
    """The end of the text about a context is its size."""
    rig = OutcomeRig()
    rig.job(scope=Scope(exclude=["/login"], max_depth=0))
    parts, job = parse_url(seed), rig.frontier.jobs[JOB]
    found = add_seed(rig.frontier, job, parts.host_key, parts.path_query, parts.href, parts.fingerprint, context)
    assert found.startswith(refused)
    assert bool(found) == bool(refused)
    assert job.scope.anchors == (set() if refused else {"a.test"})
    assert job.queue.length == (not refused)


def test_links_beyond_the_depth_of_the_settings_are_not_admitted() -> None:
    """Whatever their job allows; at the limit they are."""
    rig = OutcomeRig()
    rig.job(URL)
    rig.frontier.depth_limit = 2
    assert [links(rig, f"http://a.test/{depth}", depth=depth) for depth in (2, 3)] == [1, 0]
    assert links(rig, "http://a.test/x") == 1
    assert add_links(rig.frontier, outlinks("http://a.test/y", job="other")) == 0


def test_a_changed_scope_admits_the_links_that_are_held() -> None:
    """Only where the scope has changed; what it still refuses stays held, and is counted as outside or too deep."""
    rig = OutcomeRig()
    rig.job(URL, scope=Scope(max_depth=1))
    job = rig.frontier.jobs[JOB]
    assert links(rig, "http://a.test/deep", "http://b.test/deep", depth=2) == 0
    assert links(rig, "http://b.test/", "http://c.test/", depth=1) == 0
    assert (len(job.refused.held), job.queue.length) == (4, 1)
    rig.job(scope=Scope(max_depth=1), weight=2.0)
    assert len(job.refused.held) == 4
    rig.job(scope=Scope(max_depth=2))
    assert (len(job.refused.held), job.queue.length) == (3, 2)
    assert not job.refused.held.has_room(True, 12), "three are outside"
    assert job.refused.held.has_room(True, 16)
    rig.job(scope=Scope(mode="any", max_depth=2))
    assert (len(job.refused.held), job.queue.length) == (0, 5)
    rig.check()
    assert put_job(rig.frontier, CrawlJob(JOB, JOB, 9, deleted=True)) is None


def test_only_odd_urls_count_among_the_odd_ones_that_are_let_through() -> None:
    """Three of a host; those of another host have their own."""
    rig = OutcomeRig(concurrency=9)
    rig.job(URL)
    normal = [f"http://a.test/page{number}" for number in range(9)]
    odd = [f"http://{host}.test/x{'/loop' * number}/" for host in "ab" for number in range(8, 13)]
    rig.job(scope=Scope(mode="any", max_depth=-1), traps=Traps())
    assert links(rig, *normal) == 9
    assert links(rig, *odd, depth=2) == 10
    fetched = []
    while rig.frontier.jobs[JOB].queue.length:
        for request in rig.dispatch():
            rig.end(request, result=FetchResult.FETCHED, status=200)
            fetched.append(request.url)
        rig.pass_time(2.0)
        for record in rig.records:
            rig.receipt(record.url, 1, record.outcome)
    assert sum("/loop" in url and "a.test" in url for url in fetched) == ODD_SHAPES_ALLOWED
    assert sum("/loop" in url and "b.test" in url for url in fetched) == ODD_SHAPES_ALLOWED
    assert set(normal) <= set(fetched)
    assert [record.reason for record in rig.records] == ["trap"] * 4


@pytest.mark.parametrize("recrawl", [True, False])
def test_nothing_is_due_in_a_program_whose_crawl_ends(recrawl: bool) -> None:
    """The setting is off there, and a page waits for a refresh."""
    rig = OutcomeRig(recrawl=recrawl)
    rig.job(URL, recrawl=Recrawl(every="600s"))
    rig.end(rig.next_request(), result=FetchResult.FETCHED, status=200)
    rig.receipt(URL, 1)
    assert (next_due(rig.frontier) is not None) == recrawl
    rig.pass_time(300.0)
    assert not rig.dispatch()
    rig.pass_time(400.0)
    assert [request.fetch_no for request in rig.dispatch()] == ([2] if recrawl else [])


def test_a_job_without_a_recrawl_fetches_nothing_again() -> None:
    """Also where it was watched before; what is open already is fetched."""
    rig = OutcomeRig()
    rig.job(URL, recrawl=Recrawl(every="600s"))
    rig.end(rig.next_request(), result=FetchResult.FETCHED, status=200)
    rig.receipt(URL, 1)
    rig.job()
    rig.pass_time(5000.0)
    assert not rig.dispatch()
    rig.job(recrawl=Recrawl(every="600s"), paused=True)
    assert not rig.dispatch()
    rig.job(recrawl=Recrawl(every="600s"))
    assert [request.fetch_no for request in rig.dispatch()] == [2]


@pytest.mark.parametrize(("uid", "host"), [("other", "a.test"), (JOB, "b.test"), (JOB, "a.test"), ("other", "b.test")])
def test_what_is_not_closed_cannot_be_released(uid: str, host: str) -> None:
    """An unknown job, an unknown host, a part that is open."""
    rig = OutcomeRig()
    rig.job(URL)
    rig.frontier.pending.commits()
    assert not release_quarantine(rig.frontier, uid, host, "/d/")
    assert rig.frontier.pending.commits() == []


def test_a_job_that_gets_a_page_budget_keeps_the_places_of_stored_pages_that_are_queued_again() -> None:
    """A page in flight has its place, and one that had failed has none; those with a place come first."""
    stored, failed, flying = (f"http://{host}.test/again" for host in "abc")
    rig = OutcomeRig(concurrency=3)
    rig.job(stored, failed, flying, recrawl=Recrawl(every="600s", gone_after=9))
    for _ in range(3):
        request = rig.next_request()
        found = {"result": FetchResult.FETCHED, "status": 200}
        if request.url == failed:
            found = {"result": FetchResult.FAILED, "reason": "http_404", "status": 404}
        rig.end(request, **found)
        rig.receipt(request.url, 1, Outcome.FAILED if request.url == failed else Outcome.STORED)
    links(rig, "http://a.test/new")
    for url in (stored, failed):
        rig.frontier.hosts.get_or_create(parse_url(url).host_key).pace.after_fetch(rig.now, 5000.0)
    rig.pass_time(700.0)
    assert [request.url for request in rig.dispatch()] == [flying]
    assert [rig.state(url) for url in (stored, failed)] == ["queued, fetch 2, tries 0"] * 2
    rig.job(recrawl=Recrawl(every="600s", gone_after=9), scope=Scope(max_depth=-1, max_pages=50))
    job = rig.frontier.jobs[JOB]
    assert job.budget.reserved == {parse_url(stored).fingerprint}
    items = rig.frontier.store.items(rig.frontier.store.find("a.test"), job.number)
    assert [(order, unpack(packed).url) for order, packed in items] == [(0, stored), (2, "http://a.test/new")]
    rig.check()
