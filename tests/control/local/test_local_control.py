"""The control API of one program: jobs come, change, pause and go; a bad request is one line and changes nothing."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import fields
from nephila.kernel.documents.job_document import load
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.yaml import parse
from nephila.kernel.messages import Outcome, Quarantine, Record, StoreState, StoreStatus
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila.kernel.topics import JOBS
from nephila.native import parse_url
from nephila.parser.config import ParserConfig
from nephila.programs.control_port import Parts
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.jobs import held_links
from nephila_control import job_view
from nephila_control.api import OPERATIONS
from nephila_control.local.backend import HOLD_S, LocalBackend
from nephila_control.local.rule_store import RuleStore
from nephila_control.operations import Operations

from tests.cli.crawled import store
from tests.control.documents import document, rule
from tests.jobs import crawl_job
from tests.scheduler.world import Answer, World, site

PAGES = {f"/{n}": [f"/{2 * n + 1}", f"/{2 * n + 2}"] for n in range(40)}


class Desk:
    """The control API over a scripted web; due calls of the clock are made while a request is answered."""

    def __init__(
        self, world, directory, *, once=False, rules=True, no_browser="", formats=("sqlite", "jsonl"), parser=None
    ):
        self.world = world
        self.directory = directory
        self.row_store: StoreStatus | None = None
        parts = Parts(
            *(world.bus, world.clock, world.scheduler),
            no_browser=no_browser,
            configs={"parser": parser or ParserConfig()},
            store=lambda: self.row_store,
        )
        store = RuleStore(directory, world.bus) if rules and not once else None
        backend = LocalBackend(parts, directory, formats, rules=store, once=once)
        self.control = Operations(backend)
        world.scheduler.on_turn = backend.note

    async def ask(self, operation, **values):
        """The answer of an operation as JSON has it. Raises what the implementation raises."""
        route = OPERATIONS[operation]
        request = msgspec.convert(values, route.request)
        task = asyncio.ensure_future(getattr(self.control, operation)(request))
        while not task.done():
            self.world.clock.run_due()
            await asyncio.sleep(0)
        return msgspec.to_builtins(task.result())

    async def refusal(self, operation, **values):
        with pytest.raises(UserError) as error:
            await self.ask(operation, **values)
        return str(error.value)

    async def job(self, name="news"):
        return next((job for job in (await self.ask("list_jobs"))["jobs"] if job["name"] == name), None)

    def fetched(self, job="news"):
        return [f.url for f in self.world.fetched if f.job == job]


@pytest.fixture
async def desk(tmp_path):
    """Before any job."""
    return Desk(await World(tmp_path / "frontier", site(PAGES)).start(), tmp_path)


async def test_apply_states_what_a_wider_scope_does_not_bring_back(desk, monkeypatch):
    """A link beyond the limit of held ones is counted; a change of anything else says nothing of it."""
    monkeypatch.setattr(held_links, "LIMIT", 1)
    await desk.ask("apply_job", job=document(scope={"maxDepth": 1}))
    desk.world.run()
    job = await desk.job()
    assert (job["links_held"], job["links_lost"]) == (1, 3)
    answer = await desk.ask("apply_job", job=document(scope={"maxDepth": 1}, weight=2))
    assert answer["links_lost"] == 0
    answer = await desk.ask("apply_job", job=document(scope={"maxDepth": 2}, weight=2))
    assert answer["links_lost"] == 3
    desk.world.run()
    assert (await desk.job())["stored"] == 4


async def test_a_job_is_created_runs_and_is_listed(desk):
    """With its counts and its rate."""
    answer = await desk.ask("apply_job", job=document())
    assert (answer["name"], answer["verdict"], answer["generation"]) == ("news", "created", 1)
    assert (await desk.job())["state"] == "running"
    desk.world.clock.advance(30.5)
    job = await desk.job()
    assert job["stored"] >= 20
    assert job["rate"] == pytest.approx(job["stored"] / 30.5, rel=0.2)
    desk.world.run()
    job = await desk.job()
    # The pages beyond the web's are 404s.
    assert (job["state"], job["queued"], job["in_flight"], job["stored"], job["failed"]) == ("idle", 0, 0, 40, 41)


async def test_the_same_again_changes_nothing_and_another_state_is_a_generation(desk):
    """apply is the whole desired state: what is left out goes back to its default."""
    await desk.ask("apply_job", job=document(scope={"maxDepth": 1}))
    again = await desk.ask("apply_job", job=document(scope={"maxDepth": 1}))
    assert (again["verdict"], again["generation"]) == ("unchanged", 1)
    changed = await desk.ask("apply_job", job=document())
    assert (changed["verdict"], changed["generation"]) == ("changed", 2)


async def test_paused_nothing_is_handed_out_and_resumed_it_goes_on(desk):
    """What is under way still ends; applying the file again resumes as well."""
    await desk.ask("apply_job", job=document())
    desk.world.clock.advance(5.0)
    answer = await desk.ask("pause_job", name="news")
    assert (answer["verdict"], answer["generation"]) == ("paused", 2)
    assert (await desk.ask("pause_job", name="news"))["verdict"] == "unchanged"
    desk.world.clock.advance(1.0)
    before = desk.fetched()
    desk.world.clock.advance(60.0)
    assert desk.fetched() == before
    assert (await desk.job())["state"] == "paused"
    assert desk.world.clock.next_due is None or desk.world.scheduler.idle
    assert (await desk.ask("resume_job", name="news"))["verdict"] == "resumed"
    desk.world.run()
    assert len(set(desk.fetched())) == 81
    await desk.ask("pause_job", name="news")
    assert (await desk.ask("apply_job", job=document()))["verdict"] == "changed"
    assert (await desk.job())["state"] == "idle"


async def test_an_exclusion_applies_to_what_is_queued(desk):
    """Excluded URLs end as dropped, the others go on."""
    await desk.ask("apply_job", job=document())
    desk.world.clock.advance(10.0)
    queued = (await desk.job())["queued"]
    assert queued > 3
    await desk.ask("apply_job", job=document(scope={"exclude": ["/[0-9]*[02468]$"]}))
    before = len(desk.fetched())
    desk.world.run()
    assert all(int(url.rpartition("/")[2]) % 2 for url in desk.fetched()[before:])
    assert (await desk.job())["dropped"] > 0


async def test_a_new_seed_is_fetched_and_an_old_one_is_not_again(desk):
    """The list of seeds may be changed while the job runs."""
    await desk.ask("apply_job", job=document(scope={"maxDepth": 0}))
    desk.world.run()
    await desk.ask("apply_job", job=document(seeds=["http://a.test/0", "http://a.test/7"], scope={"maxDepth": 0}))
    desk.world.run()
    assert desk.fetched() == ["http://a.test/0", "http://a.test/7"]


async def test_seeds_of_files_come_after_the_job(desk):
    """In pieces; a URL that is none is told, and so is one that the job excludes."""
    await desk.ask("apply_job", job=document(scope={"maxDepth": 0, "exclude": ["/9"]}), seeds_follow=True)
    answer = await desk.ask("add_seeds", name="news", urls=["http://a.test/5", "no url", "http://a.test/9"])
    assert [one["url"] for one in answer["refused"]] == ["no url", "http://a.test/9"]
    assert answer["refused_count"] == 2
    await desk.ask("add_seeds", name="news", last=True)
    desk.world.run()
    assert sorted(desk.fetched()) == ["http://a.test/0", "http://a.test/5"]


@pytest.mark.parametrize("ending", ["last", "left"])
async def test_in_another_mode_the_job_waits_for_its_seeds(desk, ending):
    """What is queued must not be thrown out before the seeds have said where the new scope is anchored; a client that
    leaves in the middle does not leave the job waiting."""
    await desk.ask("apply_job", job=document(scope={"mode": "any"}, politeness={"delay": "1s"}))
    desk.world.clock.advance(3.0)
    held = await desk.ask("apply_job", job=document(seeds=["http://b.test/1"]), seeds_follow=True)
    assert held["held"]
    assert (await desk.job())["state"] == "paused"
    desk.world.clock.advance(30.0)
    await desk.ask("add_seeds", name="news", urls=["http://a.test/1"])
    if ending == "last":
        await desk.ask("add_seeds", name="news", last=True, held_generation=held["generation"])
    else:
        desk.world.clock.advance(HOLD_S - 1.0)
        assert (await desk.job())["state"] == "paused"
        desk.world.clock.advance(1.0)
    assert (await desk.job())["state"] == "running"
    desk.world.run()
    job = await desk.job()
    assert job["dropped"] == 0
    assert job["stored"] == 40


async def test_whoever_changes_a_waiting_job_has_the_word(desk):
    """A pause by somebody else is not undone when the seeds are in."""
    await desk.ask("apply_job", job=document(scope={"mode": "any"}))
    held = await desk.ask("apply_job", job=document(), seeds_follow=True)
    other = Desk(desk.world, desk.directory)
    await other.ask("resume_job", name="news")
    await other.ask("pause_job", name="news")
    await desk.ask("add_seeds", name="news", last=True, held_generation=held["generation"])
    desk.world.clock.advance(HOLD_S)
    assert (await desk.job())["state"] == "paused"


async def test_a_waiting_job_that_is_deleted_is_not_continued(desk):
    """Neither by a client that leaves in the middle nor by its last seed."""
    await desk.ask("apply_job", job=document(scope={"mode": "any"}))
    held = await desk.ask("apply_job", job=document(), seeds_follow=True)
    await desk.ask("delete_job", name="news")
    assert "news" in await desk.refusal("add_seeds", name="news", last=True, held_generation=held["generation"])
    desk.world.clock.advance(HOLD_S)
    assert await desk.job() is None


async def test_a_deleted_job_is_forgotten_and_may_come_again(desk):
    """Nothing more is fetched for it; under the same name it starts afresh."""
    await desk.ask("apply_job", job=document())
    desk.world.clock.advance(5.0)
    assert (await desk.ask("delete_job", name="news"))["verdict"] == "deleted"
    assert (await desk.ask("list_jobs"))["jobs"] == []
    desk.world.clock.advance(1.0)
    before = len(desk.fetched())
    desk.world.clock.advance(60.0)
    assert len(desk.fetched()) == before
    assert "there is no job 'news'" in await desk.refusal("pause_job", name="news")
    assert (await desk.ask("apply_job", job=document()))["verdict"] == "created"
    desk.world.run()
    assert (await desk.job())["stored"] == 40


async def test_what_is_answered_is_in_the_log(desk, tmp_path):
    """Killed right after the answer, another program knows the job, its pause and its seeds."""
    await desk.ask("apply_job", job=document())
    await desk.ask("apply_job", job=document("other", paused=True))
    again = Desk(await World(tmp_path / "frontier", site(PAGES), desk.world.clock).start(), tmp_path)
    jobs = (await again.ask("list_jobs"))["jobs"]
    assert [(job["name"], job["state"], job["generation"]) for job in jobs] == [
        ("news", "running", 1),
        ("other", "paused", 1),
    ]
    assert jobs[1]["queued"] == 1


async def test_a_sink_that_is_not_written_is_refused(desk):
    """The line says how the program has to be started."""
    await desk.ask("apply_job", job=document(sinks=[{"type": "jsonl"}]))
    reported = await desk.refusal("apply_job", job=document("b", sinks=[{"type": "warc"}]))
    assert "nephila up --format sqlite,jsonl,warc" in reported
    assert await desk.job("b") is None


@pytest.mark.parametrize("formats", [("postgres",), ("sqlite",), ("jsonl",)])
async def test_rows_may_go_into_any_database_of_the_program(tmp_path, formats):
    """A job that asks for sqlite runs where the rows go into PostgreSQL; a file is no database."""
    world = await World(tmp_path / "frontier", site(PAGES)).start()
    desk = Desk(world, tmp_path, formats=formats)
    job = document(sinks=[{"type": "sqlite"}])
    if formats == ("jsonl",):
        assert "nephila up --format jsonl,sqlite" in await desk.refusal("apply_job", job=job)
    else:
        assert (await desk.ask("apply_job", job=job))["verdict"] == "created"


async def test_a_tenant_that_the_settings_do_not_have_is_refused(tmp_path):
    """A typing error must not give a job without quota. Without a list of tenants any name is allowed."""
    world = await World(tmp_path / "frontier", site(PAGES), tenants=("news pages=100", "legal")).start()
    listed = Desk(world, tmp_path)
    reported = await listed.refusal("apply_job", job=document(tenant="newz"))
    assert "the setting scheduler.tenants has no tenant 'newz' (spec.tenant); did you mean 'news'?" in reported
    assert "\n" not in reported
    assert await listed.job() is None
    assert (await listed.ask("apply_job", job=document(tenant="legal")))["verdict"] == "created"
    assert (await listed.ask("apply_job", job=document("b")))["verdict"] == "created"


async def test_a_file_of_seeds_is_not_read_for_a_request(desk):
    """No file of the program is read, and the job is not created without its seeds; with its URLs behind it it is."""
    job = document(seeds=[{"file": "/etc/passwd"}])
    assert "the file '/etc/passwd' (spec.seeds) is not read here" in await desk.refusal("apply_job", job=job)
    assert await desk.job() is None
    assert (await desk.ask("apply_job", job=job, seeds_follow=True))["verdict"] == "created"


async def test_any_tenant_is_allowed_without_a_list(desk):
    assert (await desk.ask("apply_job", job=document(tenant="newz")))["verdict"] == "created"


async def test_explain_asks_the_jobs_that_there_are(desk):
    """One by name, or the one that knows the URL best."""
    assert "there is no job yet" in await desk.refusal("explain", url="http://a.test/0")
    await desk.ask("apply_job", job=document("far", seeds=["http://b.test/0"]))
    await desk.ask("apply_job", job=document("near", politeness={"delay": "60s"}))
    desk.world.clock.advance(62.0)  # robots.txt came first
    reported = (await desk.ask("explain", url="http://a.test/1"))["explanation"]
    assert (reported["job"], reported["seen"], reported["state"]) == ("near", True, "waiting")
    reported = (await desk.ask("explain", url="http://a.test/1", job="far"))["explanation"]
    assert (reported["job"], reported["seen"]) == ("far", False)
    assert "there is no job 'x'; there are far, near" in await desk.refusal("explain", url="http://a.test/1", job="x")
    assert "is not a URL" in await desk.refusal("explain", url="ftp://a.test/1")


async def test_explain_answers_for_a_program_with_very_many_jobs(desk, monkeypatch):
    """Those that have seen the URL are asked, some of them; then one that would take it; then any."""
    for name in ("a", "b", "c"):
        await desk.ask("apply_job", job=document(name, seeds=[f"http://{name}.test/0"], paused=True))
    jobs = desk.world.scheduler.frontier.jobs
    assert job_view.candidates(jobs, jobs, "http://b.test/0") == ["b"]
    assert job_view.candidates(jobs, jobs, "http://c.test/never") == ["c"]
    assert job_view.candidates(jobs, jobs, "http://d.test/") == ["a"]
    assert job_view.candidates({}, ["a"], "http://d.test/") == []
    for name in ("d", "e", "f"):
        await desk.ask("apply_job", job=document(name, seeds=["http://b.test/0"], paused=True))
    monkeypatch.setattr(job_view, "CANDIDATES", 2)
    assert job_view.candidates(jobs, jobs, "http://b.test/0") == ["b", "d"]


async def test_the_release_command_that_explain_shows_works(desk):
    """Host and place are those of the quarantine; afterwards the URL is no part of a trap."""
    await desk.ask("apply_job", job=document(seeds=["http://a.test/cal/0"], paused=True))
    frontier = desk.world.scheduler.frontier
    job, host = frontier.jobs["news"], frontier.hosts.get_or_create("a.test")
    closed = Quarantine("news", "a.test", "/cal/*?day", "nothing new in its last 100 fetches of 100", 1.8e9, 100)
    novelty_of(host, job).restore(closed)
    frontier.note_quarantine(job, host, closed)
    url = "http://a.test/cal/7?day=3"
    reported = (await desk.ask("explain", url=url))["explanation"]
    assert reported["kind"] == "trap_quarantine"
    words = shlex.split(reported["trap"]["release"])
    assert words == ["nephila", "jobs", "release", "news", "a.test", "/cal/*?day", "--out", str(desk.directory)]
    assert (await desk.ask("release_quarantine", name=words[3], host=words[4], pattern=words[5]))[
        "verdict"
    ] == "released"
    reported = (await desk.ask("explain", url=url))["explanation"]
    assert (reported["kind"], reported["trap"]["released"]) == ("unknown", True)


async def test_explain_tells_a_deleted_job_from_one_that_never_was(desk):
    """By its rows, which stay."""
    await desk.ask("apply_job", job=document())
    key = parse_url("http://a.test/0").fingerprint
    store(desk.directory, [Record("old", key, "http://a.test/0", 1, 1, Outcome.FAILED, "timeout", fetched_at=1.8e9)])
    reported = await desk.refusal("explain", url="http://a.test/0", job="old")
    assert reported == (
        "job 'old' was deleted, and all it knew but its rows; "
        "its row of this URL says failed(timeout) at 2027-01-15T08:00:00.000Z"
    )
    reported = await desk.refusal("explain", url="http://a.test/1", job="old")
    assert reported.endswith("; it has no row of this URL")
    assert "there is no job 'x'; there are news" in await desk.refusal("explain", url="http://a.test/0", job="x")


async def test_status_sums_up(desk):
    """What runs here, and how much of it."""
    await desk.ask("apply_job", job=document())
    status = await desk.ask("status")
    assert (status["jobs"], status["formats"]) == (1, ["sqlite", "jsonl"])
    assert (status["queued"], status["in_flight"]) == (1, 1)  # robots.txt comes first
    assert (status["storage"], status["problems"]) == ([], [])


async def test_status_speaks_of_the_database(desk):
    """Since when it is away, why, and what waits for it."""
    desk.row_store = StoreStatus("o/nephila.db", StoreState.WORKING, flushed_at=1.8e9, batch_rows=2048)
    status = await desk.ask("status")
    assert status["problems"] == []
    assert (status["storage"][0]["state"], status["storage"][0]["flushed_at"]) == ("working", 1.8e9)
    desk.row_store = StoreStatus("o/nephila.db", StoreState.AWAY, 1.8e9, "it is locked by another program", 7)
    status = await desk.ask("status")
    assert status["storage"][0]["rows_waiting"] == 7
    (problem,) = status["problems"]
    assert "away since 2027-01-15T08:00:00Z (it is locked by another program); 7 rows wait" in problem


async def test_a_change_is_answered_when_it_is_on_the_disk(desk, monkeypatch):
    """Everything in the log at the time of the answer had been synced, whatever was asked and whoever synced before."""
    log, synced = desk.world.scheduler.log, []
    del desk.world.scheduler.files.start_sync
    monkeypatch.setattr(log, "sync", lambda: synced.append(log.size))
    paused = document(paused=True)
    for op, values in (
        ("apply_job", {"job": paused}),
        ("resume_job", {"name": "news"}),
        ("pause_job", {"name": "news"}),
        ("delete_job", {"name": "news"}),
    ):
        before = log.size
        await desk.ask(op, **values)
        assert synced[-1] == log.size > before, op


async def test_a_release_is_answered_when_it_is_on_the_disk(desk, monkeypatch):
    """It goes past the bus: the answer waits for the turn that writes it all the same."""
    await desk.ask("apply_job", job=document(paused=True))
    scheduler, synced = desk.world.scheduler, []
    del scheduler.files.start_sync
    monkeypatch.setattr(scheduler.log, "sync", lambda: synced.append(scheduler.log.size))
    host = scheduler.frontier.hosts.get_or_create("a.test")
    closed = Quarantine(job="news", host="a.test", place="/x/")
    monkeypatch.setitem(host.novelty, "news", SimpleNamespace(release=lambda place: closed, dump=lambda: b""))
    before = scheduler.log.size
    assert (await desk.ask("release_quarantine", name="news", host="a.test", pattern="/x/"))["verdict"] == "released"
    assert synced[-1] == scheduler.log.size > before


async def test_a_disk_that_refuses_is_no_answer_that_all_is_well(desk, monkeypatch):
    """Who asked is told to ask again."""

    def full():
        raise OSError(28, "No space left on device")

    ended = []
    desk.world.scheduler.on_fatal = ended.append
    del desk.world.scheduler.files.start_sync
    monkeypatch.setattr(desk.world.scheduler.log, "sync", full)
    with pytest.raises(NotReadyError, match="the program ended before this was written; do it again"):
        await desk.ask("apply_job", job=document())
    assert "disk full" in str(ended[0])


async def test_a_single_crawl_answers_and_is_not_changed(tmp_path):
    """Its job is what its command line says; only quarantines are opened while it runs."""
    world = await World(tmp_path / "frontier", site(PAGES)).start()
    desk = Desk(world, tmp_path, once=True)
    world.bus.publish(JOBS, 0, crawl_job(uid="crawl", name="crawl", seeds=["http://a.test/0"]))
    before = await desk.job("crawl")
    requests = [("apply_job", {"job": document("crawl")}), ("add_seeds", {"name": "crawl", "urls": []})]
    requests += [(f"{what}_job", {"name": "crawl"}) for what in ("pause", "resume", "delete")]
    for op, values in requests:
        reported = await desk.refusal(op, **values)
        assert reported.startswith("one crawl runs here")
        assert f"nephila crawl --resume --out {tmp_path}" in reported
    assert await desk.job("crawl") == before
    assert (await desk.ask("list_quarantines", name="crawl"))["quarantines"] == []
    assert "is not in quarantine" in await desk.refusal(
        "release_quarantine", name="crawl", host="a.test", pattern="/x/"
    )
    assert (await desk.ask("explain", url="http://a.test/0"))["explanation"]["job"] == "crawl"


async def test_quarantines_are_listed_and_released_by_name(desk):
    """A place that is in none is told so."""
    await desk.ask("apply_job", job=document())
    assert (await desk.ask("list_quarantines", name="news"))["quarantines"] == []
    reported = await desk.refusal("release_quarantine", name="news", host="a.test", pattern="/x/")
    assert reported == "a.test/x/ is not in quarantine; see nephila jobs quarantines news"
    assert "there is no job" in await desk.refusal("list_quarantines", name="other")


def test_the_documented_job_is_a_job():
    """The document of docs/jobs.md is read as it stands there."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "jobs.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0].encode()
    assert load(text, "docs/jobs.md")[0].name == "news"
    (node,) = parse(text, "docs/jobs.md")
    assert set(node.value["spec"].value.value) == {field.encode_name for field in fields(JobSpec)}


async def test_applied_rules_outlive_the_program(desk, tmp_path):
    """They are in the directory, and published again."""
    assert (await desk.ask("apply_rules", rules=[rule()]))["rules"][0]["verdict"] == "created"
    again = Desk(await World(tmp_path / "frontier", site(PAGES), desk.world.clock).start(), tmp_path)
    assert [one["name"] for one in (await again.ask("list_rules"))["rules"]] == ["shop"]
    assert (await again.ask("apply_job", job=document(rules=["shop"])))["verdict"] == "created"


async def test_an_applied_rule_with_functions_is_answered_with_what_it_lacks(desk, tmp_path):
    """The directory is the operator's; with it there is nothing to say."""
    calling = rule()
    calling["spec"]["fields"]["title"] = {"css": "h1", "py": "titles:short"}
    (change,) = (await desk.ask("apply_rules", rules=[calling]))["rules"]
    assert change["verdict"] == "created"
    assert change["warning"].startswith("its Python functions are not called: there is no directory")
    assert (await desk.ask("apply_rules", rules=[rule("plain")]))["rules"][0]["warning"] == ""
    parser = ParserConfig(rule_functions_dir=str(tmp_path))
    again = Desk(await World(tmp_path / "again", site(PAGES)).start(), tmp_path, parser=parser)
    assert (await again.ask("apply_rules", rules=[calling]))["rules"][0]["warning"] == ""


async def test_a_damaged_file_of_rules_is_one_line(desk, tmp_path):
    """Not read as no rules."""
    (tmp_path / "applied-rules.json").write_text("[{")
    with pytest.raises(UserError, match=r"applied-rules.json is damaged .*; move it away"):
        RuleStore(tmp_path, desk.world.bus)


async def test_rules_that_cannot_be_written_are_not_published(desk, tmp_path, monkeypatch):
    """The answer is the disk's."""
    (tmp_path / "applied-rules.tmp").mkdir()
    assert "cannot write" in await desk.refusal("apply_rules", rules=[rule()])
    assert (await desk.ask("list_rules"))["rules"] == []


@pytest.mark.parametrize("mode", ["auto", "always"])
async def test_a_job_that_needs_a_browser_is_refused_at_once_where_there_is_none(tmp_path, mode):
    """One line with the place and the remedy; nothing is created. With a browser the job is taken."""
    world = await World(tmp_path / "frontier", site(PAGES)).start()
    wanted = document("news", render=mode)
    line = await Desk(world, tmp_path, no_browser="start it with --browser").refusal("apply_job", job=wanted)
    assert line.endswith(f"spec.render: {mode} needs a browser: start it with --browser")
    assert "\n" not in line
    desk = Desk(world, tmp_path)
    assert (await desk.ask("list_jobs"))["jobs"] == []
    assert (await desk.ask("apply_job", job=wanted))["verdict"] == "created"


async def test_a_job_that_fails_is_an_event_and_one_that_had_failed_before_is_none(tmp_path):
    """Its cause is in the list of jobs, since when too."""
    world = await World(tmp_path / "frontier", lambda request: Answer(status=404)).start()
    desk = Desk(world, tmp_path)
    await desk.ask("apply_job", job=document())
    world.run()
    (event, _) = (await desk.ask("list_events"))["events"]
    assert (event["kind"], event["subject"]) == ("job_failed", "news")
    failure = (await desk.job())["failure"]
    assert failure["cause"].startswith("nothing was stored: 1 failed")
    assert failure["since"] == event["at"]
    await world.scheduler.close()
    again = await World(tmp_path / "frontier", lambda request: Answer(status=404), world.clock).start()
    desk = Desk(again, tmp_path)
    again.scheduler.on_turn()
    assert [event["kind"] for event in (await desk.ask("list_events"))["events"]] == ["program_started"]
    assert (await desk.job())["failure"]["cause"] == failure["cause"]
    await again.scheduler.close()
