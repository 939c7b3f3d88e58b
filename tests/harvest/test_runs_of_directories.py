"""The runner: runs begin when they are due, end with their job, and continue after a restart."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from nephila.kernel.reasons.row import ListVerdict
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila.storage.rows import iso
from nephila_control import api, job_types
from nephila_harvest.site_runner import MAX_RUN_S, POLL_S, SETTLE_S, SiteRunner
from nephila_harvest.sites.planner import Planner
from nephila_harvest.sites.site_documents import load
from nephila_harvest.sites.store import RunEnd, open_store

DOCUMENT = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: a}
spec:
  directories:
    - {name: x, url: "http://a.test/x/", frequency: 1h, topPages: 5}
    - {name: y, url: "http://a.test/y/", frequency: 1d, score: 9}
"""


class System:
    """A control API whose jobs end when the test says so."""

    def __init__(self):
        self.jobs: dict[str, job_types.Job] = {}
        self.documents: dict[str, dict] = {}
        self.away = False
        self.refuses = ""

    async def apply_job(self, request):
        name, document = request.job["metadata"]["name"], request.job
        if self.away:
            raise NotReadyError("no broker")
        if self.refuses:
            raise UserError(self.refuses)
        same = self.documents.get(name) == document
        old = self.jobs.get(name)
        generation = (old.generation if old else 0) + (not same)
        self.documents[name] = document
        counts = {"stored": old.stored if old else 0, "denied": 0, "failed": 0, "dropped": 0}
        self.jobs[name] = job_types.Job(
            name=name,
            state="running",
            generation=generation,
            observed_generation=generation,
            queued=1,
            in_flight=0,
            **counts,
        )
        return job_types.JobApplied(
            name=name, generation=generation, refused=[], refused_count=0, verdict="unchanged" if same else "changed"
        )

    async def list_jobs(self, _):
        if self.away:
            raise NotReadyError("no broker")
        return job_types.JobList(jobs=list(self.jobs.values()))

    async def delete_job(self, request):
        if self.jobs.pop(request.name, None) is None:
            raise api.NotFound(request.name)

    def end(self, name, stored, state="idle"):
        """The job has fetched everything."""
        self.jobs[name].state, self.jobs[name].stored = state, stored


class Rows:
    """The rows of lists, by default all stored now; `ends` has others by URL: outcome, reason, status, final_url."""

    readable = True

    def __init__(self, clock):
        self.clock, self.ends, self.none = clock, {}, set()
        self.unfetched = Counter()

    async def unfetched_links(self, job, since):
        assert since <= iso(self.clock.now())
        if isinstance(self.unfetched, Exception):
            raise self.unfetched
        return Counter(self.unfetched)

    async def row(self, job, url):
        if url in self.none:
            return None
        outcome, reason, status, final_url = self.ends.get(url, ("stored", "", 200, ""))
        row = {"outcome": outcome, "reason": reason, "status": status, "final_url": final_url}
        return {**row, "fetched_at": iso(self.clock.now()), "meta": '{"links": "42"}'}


@pytest.fixture
def rig(tmp_path):
    """Store, system and clock; `runner()` starts the program, again after a kill."""
    with open_store(tmp_path / "s.db", create=True) as store, open_store(tmp_path / "s.db") as other:
        other.apply(load(DOCUMENT.encode(), "d.yaml"))

        class Rig:
            system, clock, lines = System(), ManualClock(), []
            rows = Rows(clock)

            def runner(self):
                return SiteRunner(self.store, self.system, self.clock, Planner(), self.lines.append, self.rows)

        Rig.store, Rig.other = store, other
        yield Rig()


async def settle(rig, runner):
    """Two looks at the jobs after they have settled."""
    rig.clock.advance(SETTLE_S)
    for _ in range(2):
        await runner.turn()
        rig.clock.advance(POLL_S)


async def test_runs_begin_end_and_begin_again(rig):
    """The higher score first; new pages are those stored since the start; topPages is counted from there, without the
    seed of the first run."""
    runner = rig.runner()
    assert await runner.turn() == POLL_S
    assert list(rig.system.documents) == ["a.y", "a.x"]
    assert rig.system.documents["a.x"]["spec"]["scope"]["maxPages"] == 6
    rig.system.end("a.x", 6, "limit")
    await settle(rig, runner)
    runs = rig.store.last_runs()
    assert (runs["a.x"].ended_by, runs["a.x"].new_pages) == (RunEnd.PAGES, 5)
    assert runs["a.y"].ended_at is None
    rig.clock.advance(1.1 * 3_600)
    await runner.turn()
    assert rig.system.documents["a.x"]["spec"]["scope"]["maxPages"] == 11
    assert rig.system.jobs["a.x"].generation == 2
    assert rig.system.jobs["a.y"].generation == 1


async def test_a_job_that_is_idle_for_an_instant_has_not_ended(rig):
    """Before the scheduler has queued what is due, the job may look idle."""
    runner = rig.runner()
    await runner.turn()
    rig.system.end("a.x", 0)
    await runner.turn()
    rig.clock.advance(SETTLE_S)
    await runner.turn()
    rig.system.jobs["a.x"].state = "running"
    await runner.turn()
    rig.system.end("a.x", 3)
    await runner.turn()
    assert rig.store.last_runs()["a.x"].ended_at is None
    await runner.turn()
    assert rig.store.last_runs()["a.x"].new_pages == 2


async def test_a_restart_continues_open_runs(rig):
    """A kill between the row of a run and its job, and one while jobs run: no run is lost or begun twice."""
    rig.system.away = True
    first = rig.runner()
    await first.turn()
    assert rig.store.last_runs() == {}
    rig.system.away = False
    apply_job = rig.system.apply_job

    async def killed(_):
        raise KeyboardInterrupt

    rig.system.apply_job = killed
    with pytest.raises(KeyboardInterrupt):
        await first.turn()
    (run,) = rig.store.open_runs()
    assert (run.name, run.generation) == ("a.y", 0)
    rig.system.apply_job = apply_job
    rig.clock.advance(60)
    second = rig.runner()
    await second.turn()
    assert {one.name: one.generation for one in rig.store.open_runs()} == {"a.x": 1, "a.y": 1}
    rig.system.end("a.x", 4)
    rig.system.end("a.y", 5)
    third = rig.runner()
    await settle(rig, third)
    assert {name: one.new_pages for name, one in rig.store.last_runs().items()} == {"a.x": 3, "a.y": 4}
    assert all(job.generation == 1 for job in rig.system.jobs.values())
    rig.clock.advance(1.1 * 3_600)
    await rig.runner().turn()
    assert [one.name for one in rig.store.open_runs()] == ["a.x"]


async def test_changed_and_removed_sites_are_taken_while_it_runs(rig):
    """A removed directory loses its job; a changed one has the new settings at its next run."""
    runner = rig.runner()
    await runner.turn()
    rig.other.apply(load(DOCUMENT.replace("a.test/x/", "a.test/z/").replace("- {name: y", "# ").encode(), "d.yaml"))
    await runner.turn()
    assert list(rig.system.jobs) == ["a.x"]
    assert rig.store.last_runs()["a.y"].ended_by is RunEnd.REMOVED
    rig.system.end("a.x", 1)
    await settle(rig, runner)
    rig.clock.advance(1.1 * 3_600)
    await runner.turn()
    assert rig.system.documents["a.x"]["spec"]["seeds"] == [{"url": "http://a.test/z/"}]


async def test_a_job_that_is_refused_is_a_failed_run(rig):
    """The reason is stored and the directory is tried again later; a run without end gives its place away."""
    rig.system.refuses = "a job of that name has another owner"
    runner = rig.runner()
    await runner.turn()
    assert {(one.ended_by, one.why) for one in rig.store.last_runs().values()} == {(RunEnd.REFUSED, rig.system.refuses)}
    assert {one.verdict for lists in rig.store.lists().values() for one in lists} == {ListVerdict.NOT_STARTED}
    rig.system.refuses = ""
    rig.clock.advance(2.2 * 86_400)
    await runner.turn()
    assert len(rig.store.open_runs()) == 2
    rig.clock.advance(MAX_RUN_S)
    await runner.turn()
    assert sum(": time, 0 new pages" in line for line in rig.lines) == 2


LIST = "http://a.test/x/"


@pytest.mark.parametrize(
    ("end", "verdict", "proposal"),
    [
        (("failed", "dns", 0, ""), ListVerdict.UNKNOWN_HOST, "host name"),
        (("failed", "connect", 0, ""), ListVerdict.REFUSED, "port"),
        (("failed", "http_404", 404, ""), ListVerdict.NOT_FOUND, "new address"),
        (("failed", "http_403", 403, ""), ListVerdict.HTTP_ERROR, "browser"),
        (("failed", "http_500", 500, ""), ListVerdict.SERVER_ERROR, "next run"),
        (("denied", "robots", 0, ""), ListVerdict.ROBOTS, "respectRobots"),
        (("failed", "no_browser", 0, ""), ListVerdict.NO_BROWSER, "render"),
        (("dropped", "redirect", 301, "http://a.test/new-x/"), ListVerdict.MOVED, "http://a.test/new-x/"),
    ],
)
async def test_a_list_that_fails_is_a_fault_with_its_begin_and_a_proposal(rig, end, verdict, proposal):
    """In the store, the line, and the metrics; the begin is that of the first such run, until the list is fetched."""
    rig.rows.ends[LIST] = end
    rig.rows.none.add("http://a.test/new-x/")
    runner = rig.runner()
    begun = rig.clock.now()
    for _ in range(2):
        await runner.turn()
        rig.system.end("a.x", 0)
        await settle(rig, runner)
        (state,) = rig.store.lists()["a.x"]
        assert (state.verdict, state.status, state.since) == (verdict, end[2], begun)
        assert proposal in state.proposal
        assert any(LIST in line and state.proposal in line and "since" in line for line in rig.lines)
        assert rig.store.last_runs()["a.x"].new_pages == 0
        assert runner.verdicts[verdict] == 1
        assert runner.faulty_for["a.x"] == pytest.approx(rig.clock.now() - begun, abs=1)
        rig.clock.advance(2.2 * 86_400)
    # A restart has the same state.
    again = rig.runner()
    rig.rows.ends.clear()
    await again.turn()
    assert again.verdicts[verdict] == 1
    rig.system.end("a.x", 3)
    await settle(rig, again)
    (state,) = rig.store.lists()["a.x"]
    assert (state.verdict, state.links, state.since) == (ListVerdict.NEW, 42, 0.0)
    # The page of the list itself is not new.
    assert rig.store.last_runs()["a.x"].new_pages == 2
    assert again.faulty_for == {}


async def test_a_list_that_moved_within_the_scope_is_fetched(rig):
    rig.rows.ends[LIST] = ("dropped", "redirect", 301, "http://a.test/x/new/")
    runner = rig.runner()
    await runner.turn()
    rig.system.end("a.x", 1)
    await settle(rig, runner)
    (state,) = rig.store.lists()["a.x"]
    assert (state.verdict, state.status, state.target) == (ListVerdict.SAME, 301, "http://a.test/x/new/")


@pytest.mark.parametrize(("readable", "verdict"), [(True, ListVerdict.WAITING), (False, ListVerdict.UNKNOWN)])
async def test_a_list_without_a_row_is_no_success(rig, readable, verdict):
    """Not fetched in the run; or rows that the runner cannot read."""
    rig.rows.none.add(LIST)
    rig.rows.readable = readable
    runner = rig.runner()
    await runner.turn()
    rig.system.end("a.x", 0)
    await settle(rig, runner)
    assert rig.store.lists()["a.x"][0].verdict is verdict
    assert rig.store.lists()["a.x"][0].is_fault


async def test_the_end_of_a_run_that_only_a_later_program_knows_is_refused(tmp_path):
    """In one line, with the remedy."""
    with open_store(tmp_path / "sites.db", create=True):
        pass
    with closing(sqlite3.connect(tmp_path / "sites.db")) as later, later:
        later.execute("INSERT INTO runs VALUES ('a.x', 1, 1, 1, 0, 0, 2, 'holiday', 0, '', 0, 0)")
    words = "the end 'holiday' of a run of a.x, which this program does not know; use"
    with open_store(tmp_path / "sites.db") as store, pytest.raises(UserError, match=words):
        store.last_runs()


WINDOWS = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: a}
spec:
  timeZone: Europe/Paris
  windows: ["22:00-06:00"]
  directories:
    - {name: x, url: "http://a.test/x/", frequency: 1h}
    - {name: y, url: "http://a.test/y/", frequency: 1d, windows: []}
"""


async def test_a_run_begins_in_its_window_and_does_not_end_outside_of_it(rig):
    """The window is inherited, and an empty list takes it back. A held run gives its place to others, and its job is
    the same after the window as before."""
    rig.other.apply(load(WINDOWS.encode(), "d.yaml"))
    noon = 43_200.0 - rig.clock.now() % 86_400.0
    rig.clock.jump(noon if noon > 0 else noon + 86_400.0)
    runner = rig.runner()
    await runner.turn()
    assert list(rig.system.documents) == ["a.y"]
    assert "windows" not in rig.system.documents["a.y"]["spec"] or not rig.system.documents["a.y"]["spec"]["windows"]
    rig.system.end("a.y", 1)
    await settle(rig, runner)
    rig.clock.advance(10 * 3_600.0)
    await runner.turn()
    spec = rig.system.documents["a.x"]["spec"]
    assert (spec["windows"], spec["timeZone"]) == (["22:00-06:00"], "Europe/Paris")
    rig.system.end("a.x", 3, "window")
    for _ in range(5):
        await settle(rig, runner)
    assert rig.store.last_runs()["a.x"].ended_at is None
    rig.system.end("a.x", 9)
    await settle(rig, runner)
    assert rig.store.last_runs()["a.x"].ended_by == RunEnd.DONE


async def test_a_job_that_a_person_has_paused_stays_paused(rig):
    """Its run is begun and held, however long it takes, and ends after the job was resumed."""
    runner = rig.runner()
    await runner.turn()
    rig.system.end("a.x", 3)
    await settle(rig, runner)
    rig.system.jobs["a.x"].state = "paused"
    rig.clock.advance(3_600.0 * 1.1)
    await runner.turn()
    assert rig.system.documents["a.x"]["spec"]["paused"] is True
    assert any("a.x: its job is paused; resume it with: nephila jobs resume a.x" in line for line in rig.lines)
    rig.system.jobs["a.x"].state = "paused"
    rig.clock.advance(2 * MAX_RUN_S)
    await runner.turn()
    (held,) = [run.started_at for run in rig.store.open_runs() if run.name == "a.x"]
    rig.system.end("a.x", 3)
    await settle(rig, runner)
    assert held not in {run.started_at for run in rig.store.open_runs() if run.name == "a.x"}


RECORDING = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: a}
spec:
  directories:
    - {name: x, url: "http://a.test/x/", frequency: adaptive 1h 1d, recordLinks: true, scope: {linksPerPage: 3}}
"""


async def test_recorded_links_are_the_news_of_a_run(rig):
    """They decide the verdict on the list and the adaptive frequency; what is left out is counted apart."""
    rig.other.apply(load(RECORDING.encode(), "d.yaml"))
    runner = rig.runner()
    await runner.turn()
    assert rig.system.documents["a.x"]["spec"]["recordLinks"] is True
    rig.rows.unfetched = {"link_recorded": 3, "top_of_page": 2}
    rig.system.end("a.x", 1)
    await settle(rig, runner)
    run = rig.store.last_runs()["a.x"]
    assert (run.new_pages, run.recorded, run.left_out) == (0, 3, 2)
    assert rig.store.lists()["a.x"][0].verdict == ListVerdict.NEW
    assert any("0 new pages, 3 links recorded, 2 new links left out" in line for line in rig.lines)
    rig.rows.unfetched = Counter()
    rig.clock.advance(86_400.0)
    await runner.turn()
    rig.system.end("a.x", 1)
    await settle(rig, runner)
    run = rig.store.last_runs()["a.x"]
    assert (run.recorded, run.left_out, rig.store.lists()["a.x"][0].verdict) == (0, 0, ListVerdict.SAME)


async def test_links_that_cannot_be_counted_are_said(rig):
    """A run ends although the rows cannot be read here."""
    rig.other.apply(load(RECORDING.encode(), "d.yaml"))
    runner = rig.runner()
    await runner.turn()
    rig.rows.unfetched = UserError("no database")
    rig.system.end("a.x", 1)
    await settle(rig, runner)
    assert rig.store.last_runs()["a.x"].ended_by is RunEnd.DONE
    assert "a.x: links that were recorded or left out are not counted: no database" in rig.lines
