"""What a running program answers: jobs come, change, pause and go; bad requests are one line and change nothing."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields
from nephila.control import job_view
from nephila.control.api import Control, Request
from nephila.kernel.documents.job_document import load
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.yaml import parse
from nephila.kernel.messages import CrawlJob, Outcome, Quarantine, Record
from nephila.kernel.topics import JOBS
from nephila.native import parse_url
from nephila.scheduler.frontier.host_table import novelty_of

from tests.cli.crawled import store
from tests.scheduler.world import World, site

PAGES = {f"/{n}": [f"/{2 * n + 1}", f"/{2 * n + 2}"] for n in range(40)}


def document(name="news", **spec):
    """A job as a client sends it."""
    spec.setdefault("seeds", ["http://a.test/0"])
    return {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": name}, "spec": spec}


class Desk:
    """A control over a scripted web; `ask` lets the clock's due calls be made meanwhile."""

    def __init__(self, world, directory, *, once=False):
        self.world = world
        assembly = SimpleNamespace(bus=world.bus, clock=world.clock, scheduler=world.scheduler)
        self.directory = directory
        self.control = Control(assembly, directory, ("sqlite", "jsonl"), once=once)
        world.scheduler.on_turn = self.control.note
        self.session = {}

    async def line(self, line):
        task = asyncio.ensure_future(self.control.answer(line, self.session))
        while not task.done():
            self.world.clock.run_due()
            await asyncio.sleep(0)
        answer = task.result()
        assert answer.endswith(b"\n")
        assert answer.count(b"\n") == 1
        return json.loads(answer)

    async def ask(self, op, **values):
        return await self.line(json.dumps({"op": op, **values}).encode() + b"\n")

    async def refusal(self, op, **values):
        answer = await self.ask(op, **values)
        assert answer["ok"] is False
        return answer["error"]

    async def job(self, name="news"):
        return next((job for job in (await self.ask("jobs.list"))["jobs"] if job["name"] == name), None)

    def fetched(self, job="news"):
        return [f.url for f in self.world.fetched if f.job == job]


@pytest.fixture
async def desk(tmp_path):
    """Before any job."""
    return Desk(await World(tmp_path / "frontier", site(PAGES)).start(), tmp_path)


async def test_a_job_is_created_runs_and_is_listed(desk):
    """With its counts and its rate."""
    answer = await desk.ask("jobs.apply", job=document())
    assert (answer["ok"], answer["name"], answer["verdict"], answer["generation"]) == (True, "news", "created", 1)
    assert (await desk.job())["state"] == "running"
    desk.world.clock.advance(30.5)
    job = await desk.job()
    assert job["stored"] >= 20
    assert job["rate"] == pytest.approx(job["stored"] / 30.5, rel=0.2)
    desk.world.run()
    job = await desk.job()
    # The pages beyond the web's are 404s.
    assert (job["state"], job["queued"], job["leased"], job["stored"], job["failed"]) == ("idle", 0, 0, 40, 41)


async def test_the_same_again_changes_nothing_and_another_state_is_a_generation(desk):
    """apply is the whole desired state: what is left out goes back to its default."""
    await desk.ask("jobs.apply", job=document(scope={"maxDepth": 1}))
    again = await desk.ask("jobs.apply", job=document(scope={"maxDepth": 1}))
    assert (again["verdict"], again["generation"]) == ("unchanged", 1)
    changed = await desk.ask("jobs.apply", job=document())
    assert (changed["verdict"], changed["generation"]) == ("changed", 2)


async def test_paused_nothing_is_handed_out_and_resumed_it_goes_on(desk):
    """What is under way still ends; applying the file again resumes as well."""
    await desk.ask("jobs.apply", job=document())
    desk.world.clock.advance(5.0)
    answer = await desk.ask("jobs.pause", name="news")
    assert (answer["verdict"], answer["generation"]) == ("paused", 2)
    assert (await desk.ask("jobs.pause", name="news"))["verdict"] == "unchanged"
    desk.world.clock.advance(1.0)
    before = desk.fetched()
    desk.world.clock.advance(60.0)
    assert desk.fetched() == before
    assert (await desk.job())["state"] == "paused"
    assert desk.world.clock.next_due is None or desk.world.scheduler.idle
    assert (await desk.ask("jobs.resume", name="news"))["verdict"] == "resumed"
    desk.world.run()
    assert len(set(desk.fetched())) == 81
    await desk.ask("jobs.pause", name="news")
    assert (await desk.ask("jobs.apply", job=document()))["verdict"] == "changed"
    assert (await desk.job())["state"] == "idle"


async def test_an_exclusion_applies_to_what_is_queued(desk):
    """Excluded URLs end as dropped, the others go on."""
    await desk.ask("jobs.apply", job=document())
    desk.world.clock.advance(10.0)
    queued = (await desk.job())["queued"]
    assert queued > 3
    await desk.ask("jobs.apply", job=document(scope={"exclude": ["/[0-9]*[02468]$"]}))
    before = len(desk.fetched())
    desk.world.run()
    assert all(int(url.rpartition("/")[2]) % 2 for url in desk.fetched()[before:])
    assert (await desk.job())["dropped"] > 0


async def test_a_new_seed_is_fetched_and_an_old_one_is_not_again(desk):
    """The list of seeds may be changed while the job runs."""
    await desk.ask("jobs.apply", job=document(scope={"maxDepth": 0}))
    desk.world.run()
    await desk.ask("jobs.apply", job=document(seeds=["http://a.test/0", "http://a.test/7"], scope={"maxDepth": 0}))
    desk.world.run()
    assert desk.fetched() == ["http://a.test/0", "http://a.test/7"]


async def test_seeds_of_files_come_after_the_job(desk):
    """In pieces; a URL that is none is told, and so is one that the job excludes."""
    await desk.ask("jobs.apply", job=document(scope={"maxDepth": 0, "exclude": ["/9"]}), more=True)
    answer = await desk.ask("jobs.seeds", name="news", urls=["http://a.test/5", "no url", "http://a.test/9"])
    assert [url for url, _ in answer["refused"]] == ["no url", "http://a.test/9"]
    assert answer["refused_count"] == 2
    assert (await desk.ask("jobs.seeded", name="news"))["ok"]
    desk.world.run()
    assert sorted(desk.fetched()) == ["http://a.test/0", "http://a.test/5"]


@pytest.mark.parametrize("ending", ["seeded", "left"])
async def test_in_another_mode_the_job_waits_for_its_seeds(desk, ending):
    """What is queued must not be thrown out before the seeds have said where the new scope is anchored; a client that
    leaves in the middle does not leave the job waiting."""
    await desk.ask("jobs.apply", job=document(scope={"mode": "any"}, politeness={"delay": "1s"}))
    desk.world.clock.advance(3.0)
    await desk.ask("jobs.apply", job=document(seeds=["http://b.test/1"]), more=True)
    assert (await desk.job())["state"] == "paused"
    desk.world.clock.advance(30.0)
    await desk.ask("jobs.seeds", name="news", urls=["http://a.test/1"])
    if ending == "seeded":
        await desk.ask("jobs.seeded", name="news")
    else:
        desk.control.leave(desk.session)
        desk.world.clock.run_due()
    assert not desk.session
    assert (await desk.job())["state"] == "running"
    desk.world.run()
    job = await desk.job()
    assert job["dropped"] == 0
    assert job["stored"] == 40


async def test_whoever_changes_a_waiting_job_has_the_word(desk):
    """A pause by somebody else is not undone when the seeds are in."""
    await desk.ask("jobs.apply", job=document(scope={"mode": "any"}))
    await desk.ask("jobs.apply", job=document(), more=True)
    other = Desk(desk.world, desk.directory)
    await other.ask("jobs.resume", name="news")
    await other.ask("jobs.pause", name="news")
    await desk.ask("jobs.seeded", name="news")
    assert (await desk.job())["state"] == "paused"


async def test_a_deleted_job_is_forgotten_and_may_come_again(desk):
    """Nothing more is fetched for it; under the same name it starts afresh."""
    await desk.ask("jobs.apply", job=document())
    desk.world.clock.advance(5.0)
    assert (await desk.ask("jobs.delete", name="news"))["verdict"] == "deleted"
    assert (await desk.ask("jobs.list"))["jobs"] == []
    desk.world.clock.advance(1.0)
    before = len(desk.fetched())
    desk.world.clock.advance(60.0)
    assert len(desk.fetched()) == before
    assert "there is no job 'news'" in await desk.refusal("jobs.pause", name="news")
    assert (await desk.ask("jobs.apply", job=document()))["verdict"] == "created"
    desk.world.run()
    assert (await desk.job())["stored"] == 40


async def test_what_is_answered_is_in_the_log(desk, tmp_path):
    """Killed right after the answer, another program knows the job, its pause and its seeds."""
    await desk.ask("jobs.apply", job=document())
    await desk.ask("jobs.apply", job=document("other", paused=True))
    again = Desk(await World(tmp_path / "frontier", site(PAGES), desk.world.clock).start(), tmp_path)
    jobs = (await again.ask("jobs.list"))["jobs"]
    assert [(job["name"], job["state"], job["generation"]) for job in jobs] == [
        ("news", "running", 1),
        ("other", "paused", 1),
    ]
    assert jobs[1]["queued"] == 1


async def test_a_sink_that_is_not_written_is_refused(desk):
    """The line says how the program has to be started."""
    assert (await desk.ask("jobs.apply", job=document(sinks=[{"type": "jsonl"}])))["ok"]
    told = await desk.refusal("jobs.apply", job=document("b", sinks=[{"type": "warc"}]))
    assert "nephila up --format sqlite,jsonl,warc" in told
    assert await desk.job("b") is None


async def test_explain_asks_the_jobs_that_there_are(desk):
    """One by name, or the one that knows the URL best."""
    assert "there is no job yet" in await desk.refusal("explain", url="http://a.test/0")
    await desk.ask("jobs.apply", job=document("far", seeds=["http://b.test/0"]))
    await desk.ask("jobs.apply", job=document("near", politeness={"delay": "60s"}))
    desk.world.clock.advance(62.0)  # robots.txt came first
    told = (await desk.ask("explain", url="http://a.test/1"))["explanation"]
    assert (told["job"], told["seen"], told["state"]) == ("near", True, "waiting")
    told = (await desk.ask("explain", url="http://a.test/1", job="far"))["explanation"]
    assert (told["job"], told["seen"]) == ("far", False)
    assert "there is no job 'x'; there are far, near" in await desk.refusal("explain", url="http://a.test/1", job="x")
    assert "is not a URL" in await desk.refusal("explain", url="ftp://a.test/1")


async def test_explain_answers_for_a_program_with_very_many_jobs(desk, monkeypatch):
    """Those that have seen the URL are asked, some of them; then one that would take it; then any."""
    for name in ("a", "b", "c"):
        await desk.ask("jobs.apply", job=document(name, seeds=[f"http://{name}.test/0"], paused=True))
    jobs = desk.world.scheduler.frontier.jobs
    assert job_view.candidates(jobs, jobs, "http://b.test/0") == ["b"]
    assert job_view.candidates(jobs, jobs, "http://c.test/never") == ["c"]
    assert job_view.candidates(jobs, jobs, "http://d.test/") == ["a"]
    assert job_view.candidates({}, ["a"], "http://d.test/") == []
    for name in ("d", "e", "f"):
        await desk.ask("jobs.apply", job=document(name, seeds=["http://b.test/0"], paused=True))
    monkeypatch.setattr(job_view, "CANDIDATES", 2)
    assert job_view.candidates(jobs, jobs, "http://b.test/0") == ["b", "d"]


async def test_the_release_command_that_explain_shows_works(desk):
    """Host and place are those of the quarantine; afterwards the URL is no part of a trap."""
    await desk.ask("jobs.apply", job=document(seeds=["http://a.test/cal/0"], paused=True))
    frontier = desk.world.scheduler.frontier
    job, host = frontier.jobs["news"], frontier.hosts.get_or_create("a.test")
    closed = Quarantine("news", "a.test", "/cal/*?day", "nothing new in its last 100 fetches of 100", 1.8e9, 100)
    novelty_of(host, job).restore(closed)
    frontier.note_quarantine(job, host, closed)
    url = "http://a.test/cal/7?day=3"
    told = (await desk.ask("explain", url=url))["explanation"]
    assert told["kind"] == "trap_quarantine"
    words = shlex.split(told["trap"]["release"])
    assert words == ["nephila", "jobs", "release", "news", "a.test", "/cal/*?day", "--out", str(desk.directory)]
    assert (await desk.ask("traps.release", name=words[3], host=words[4], place=words[5]))["verdict"] == "released"
    told = (await desk.ask("explain", url=url))["explanation"]
    assert (told["kind"], told["trap"]["released"]) == ("unknown", True)


async def test_explain_tells_a_deleted_job_from_one_that_never_was(desk):
    """By its rows, which stay."""
    await desk.ask("jobs.apply", job=document())
    key = parse_url("http://a.test/0").fingerprint
    store(desk.directory, [Record("old", key, "http://a.test/0", 1, 1, Outcome.FAILED, "timeout", fetched_at=1.8e9)])
    told = await desk.refusal("explain", url="http://a.test/0", job="old")
    assert told == (
        "job 'old' was deleted, and all it knew but its rows; "
        "its row of this URL says failed(timeout) at 2027-01-15T08:00:00.000Z"
    )
    told = await desk.refusal("explain", url="http://a.test/1", job="old")
    assert told.endswith("; it has no row of this URL")
    assert "there is no job 'x'; there are news" in await desk.refusal("explain", url="http://a.test/0", job="x")


async def test_status_sums_up(desk):
    """What runs here, and how much of it."""
    await desk.ask("jobs.apply", job=document())
    status = await desk.ask("status")
    assert (status["jobs"], status["formats"]) == (1, ["sqlite", "jsonl"])
    assert (status["queued"], status["in_flight"]) == (1, 1)  # robots.txt comes first


async def test_a_change_is_answered_when_it_is_on_the_disk(desk, monkeypatch):
    """Everything in the log at the time of the answer had been synced, whatever was asked and whoever synced before."""
    log, synced = desk.world.scheduler.log, []
    del desk.world.scheduler._start_sync
    monkeypatch.setattr(log, "sync", lambda: synced.append(log.size))
    paused = document(paused=True)
    for op, values in (
        ("jobs.apply", {"job": paused}),
        ("jobs.resume", {"name": "news"}),
        ("jobs.pause", {"name": "news"}),
        ("jobs.delete", {"name": "news"}),
    ):
        before = log.size
        assert (await desk.ask(op, **values))["ok"], op
        assert synced[-1] == log.size > before, op


async def test_a_release_is_answered_when_it_is_on_the_disk(desk, monkeypatch):
    """It goes past the bus: the answer waits for the turn that writes it all the same."""
    await desk.ask("jobs.apply", job=document(paused=True))
    scheduler, synced = desk.world.scheduler, []
    del scheduler._start_sync
    monkeypatch.setattr(scheduler.log, "sync", lambda: synced.append(scheduler.log.size))
    host = scheduler.frontier.hosts.get_or_create("a.test")
    closed = Quarantine(job="news", host="a.test", place="/x/")
    monkeypatch.setitem(host.novelty, "news", SimpleNamespace(release=lambda place: closed, dump=lambda: b""))
    before = scheduler.log.size
    assert (await desk.ask("traps.release", name="news", host="a.test", place="/x/"))["verdict"] == "released"
    assert synced[-1] == scheduler.log.size > before


async def test_a_disk_that_refuses_is_no_answer_that_all_is_well(desk, monkeypatch):
    """Who asked is told to ask again."""

    def full():
        raise OSError(28, "No space left on device")

    ended = []
    desk.world.scheduler.on_fatal = ended.append
    del desk.world.scheduler._start_sync
    monkeypatch.setattr(desk.world.scheduler.log, "sync", full)
    assert await desk.refusal("jobs.apply", job=document()) == "the program ended before this was written; do it again"
    assert "disk full" in str(ended[0])


async def test_a_single_crawl_answers_and_is_not_changed(tmp_path):
    """Its job is what its command line says; only quarantines are opened while it runs."""
    world = await World(tmp_path / "frontier", site(PAGES)).start()
    desk = Desk(world, tmp_path, once=True)
    world.bus.publish(JOBS, 0, CrawlJob(uid="crawl", name="crawl", seeds=["http://a.test/0"]))
    before = await desk.job("crawl")
    requests = [("jobs.apply", {"job": document("crawl")}), ("jobs.seeds", {"name": "crawl", "urls": []})]
    requests += [(f"jobs.{what}", {"name": "crawl"}) for what in ("seeded", "pause", "resume", "delete")]
    for op, values in requests:
        told = await desk.refusal(op, **values)
        assert told.startswith("one crawl runs here")
        assert f"nephila crawl --resume --out {tmp_path}" in told
    assert await desk.job("crawl") == before
    assert (await desk.ask("traps.list", name="crawl"))["quarantines"] == []
    assert "is not in quarantine" in await desk.refusal("traps.release", name="crawl", host="a.test", place="/x/")
    assert (await desk.ask("explain", url="http://a.test/0"))["explanation"]["job"] == "crawl"


async def test_quarantines_are_listed_and_released_by_name(desk):
    """A place that is in none is told so."""
    await desk.ask("jobs.apply", job=document())
    assert (await desk.ask("traps.list", name="news"))["quarantines"] == []
    told = await desk.refusal("traps.release", name="news", host="a.test", place="/x/")
    assert told == "a.test/x/ is not in quarantine; see nephila jobs quarantines news"
    assert "there is no job" in await desk.refusal("traps.list", name="other")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"\n", "not a request"),
        (b"{}\n", "not a request"),
        (b"[]\n", "not a request"),
        (b"\xff\xfe\n", "not a request"),
        (b'{"op": "jobs.drop"}\n', "jobs.drop"),
        (b'{"op": "jobs.list", "nmae": 1}\n', "nmae"),
        (b'{"op": "jobs.pause"}\n', "name"),
        (b'{"op": "jobs.pause", "name": ""}\n', "a job has to be named"),
        (b'{"op": "jobs.pause", "name": 5}\n', "Expected `str`"),
        (b'{"op": "jobs.apply", "job": 5}\n', "job: the document has to be a map"),
        (b'{"op": "jobs.apply", "job": ' + b"[" * 100_000 + b"\n", "not a request"),
        (b'{"op": "jobs.seeds", "name": "x", "urls": ["' + b"u" * 200_000 + b'"]}\n', "not a request"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_bad_requests_are_one_line(desk, line, says):
    """And the next request is answered as if nothing had been."""
    answer = await desk.line(line)
    assert answer["ok"] is False
    assert says in answer["error"]
    assert (await desk.ask("jobs.list"))["jobs"] == []


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.binary(max_size=60).map(lambda data: data.replace(b"\n", b" ") + b"\n"))
def test_any_line_is_answered(tmp_path, line):
    """With a refusal, whatever the bytes."""

    async def ask():
        desk = Desk(
            SimpleNamespace(bus=None, clock=SimpleNamespace(monotonic=lambda: 0.0), scheduler=Scheduler()), tmp_path
        )
        return json.loads(await desk.control.answer(line, {}))

    assert asyncio.run(ask())["ok"] is False


def test_every_request_is_documented():
    """docs/jobs.md has a row for each."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "jobs.md").read_text()
    for request in get_args(Request):
        assert request.__struct_config__.tag in page


def test_the_documented_job_is_a_job():
    """The document of docs/jobs.md is read as it stands there."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "jobs.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0].encode()
    assert load(text, "docs/jobs.md")[0].name == "news"
    (node,) = parse(text, "docs/jobs.md")
    assert set(node.value["spec"].value.value) == {field.encode_name for field in fields(JobSpec)}


class Scheduler:
    """As far as a refused request needs one."""
