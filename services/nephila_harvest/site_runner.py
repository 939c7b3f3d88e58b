"""Starts the runs of directories when they are due, and records how they end.

A run is a new version of the directory's CrawlJob, applied over the control API; the scheduler fetches its pages. The
store holds sites, progress and open runs, so that a restart continues: an open run whose job was not applied is applied
with the same instant. Invariant: a run is in the store before its job is applied.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nephila.kernel.documents.job_document import urls_of
from nephila.kernel.reasons.row import ListVerdict
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila.kernel.runtime.waits import wait
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.rows import iso
from nephila.storage.source import Source
from nephila_control import api, job_types, job_view, screen_types
from nephila_control.api import Control
from nephila_control.sites import list_answer, list_line

from nephila_harvest.sites import resolve
from nephila_harvest.sites.planner import Planner, Start, plan_of
from nephila_harvest.sites.site_documents import Sites
from nephila_harvest.sites.store import DirectoryRun, RunEnd, SiteStore
from nephila_harvest.sites.surt import is_below
from nephila_harvest.sites.verdicts import ListState, of_row

POLL_S = 1.0
"""Between two looks at the jobs while a run is open."""
IDLE_S = 5.0
"""Between two looks at the store for changed sites."""
SETTLE_S = 3.0
"""A job is idle for an instant after its change, before the scheduler has queued its due pages."""
MAX_RUN_S = 86_400.0
"""A run that is not over after this time gives its place to others; its job continues."""
MAX_LISTS = 100
"""Lists of a directory whose state is looked up after a run; further ones have none."""
SKEW_S = 2.0
"""A list counts as fetched in a run if its fetch began at most so long before it, by the clock of the downloader."""
PICKING = ("recordLinks", "scope.linksPerPage", "scope.linksPerLevel")
"""Settings by which not every new link is fetched."""
MAX_ANSWERS = 1000
"""Answers with rows that are read for the counts of a run, where the rows are those of the control API."""
NOT_FETCHED = (Reason.LINK_RECORDED, Reason.TOP_OF_PAGE, Reason.TOP_OF_LEVEL)
"""Reasons of new links that are not fetched."""
MAX_HOPS = 10
"""Redirects that are followed from a list to its page."""
_ENDS = {"idle": RunEnd.DONE, "limit": RunEnd.PAGES, "quota": RunEnd.QUOTA}


_FETCHED = {"outcome": "stored", "reason": "", "status": 200, "final_url": "", "meta": ""}


class PageRows(Protocol):
    """Reads rows of the table `pages`."""

    async def row(self, job: str, url: str) -> Mapping[str, Any] | None:
        """The row of a URL; None where there is none or it cannot be read here."""

    async def unfetched_links(self, job: str, since: str) -> Counter[str]:
        """Reason → rows since an instant of links that were recorded or left out. Raises `UserError` where the rows
        cannot be read here."""

    @property
    def readable(self) -> bool:
        """Whether the table can be read."""


class StoredRows:
    """The rows of a directory or of a database. One look-up by key each."""

    readable = True

    def __init__(self, source: Source) -> None:
        self._source = source

    async def row(self, job: str, url: str) -> Mapping[str, Any] | None:
        return await asyncio.get_running_loop().run_in_executor(None, job_view.row_with_meta, self._source, job, url)

    async def unfetched_links(self, job: str, since: str) -> Counter[str]:
        def count() -> Counter[str]:
            with open_for_reading(self._source) as connection:
                query = (
                    "SELECT reason, count(*) FROM pages WHERE job = :job AND fetched_at >= :since"
                    " AND reason IN (:recorded, :page, :level) GROUP BY reason"
                )
                words = dict(zip(("recorded", "page", "level"), NOT_FETCHED, strict=True))
                return Counter(dict(connection.execute(query, {"job": job, "since": since, **words})))

        return await asyncio.to_thread(count)


class ExplainedRows:
    """What the control API shows: rows, or over Kafka only whether a page was fetched."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.readable = False

    async def row(self, job: str, url: str) -> Mapping[str, Any] | None:
        explanation = (await self._control.explain(job_types.ExplainUrl(url=url, job=job))).explanation
        if explanation.row is not None:
            self.readable = True
            return explanation.row
        if explanation.recrawl is None or not explanation.recrawl.fetched_at or explanation.recrawl.missing:
            return None
        # A scheduler has no rows, but knows the last fetch that brought the page.
        return {**_FETCHED, "fetched_at": iso(explanation.recrawl.fetched_at)}

    async def unfetched_links(self, job: str, since: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for reason in NOT_FETCHED:
            before = 0
            for _ in range(MAX_ANSWERS):
                request = screen_types.ListPages(job=job, reason=reason, before=before, limit=200)
                answer = await self._control.list_pages(request)
                new = sum(row.fetched_at >= since for row in answer.pages)
                counts[reason] += new
                before = answer.next
                if not before or new < len(answer.pages):
                    break
        return counts


class SiteRunner:
    """The program between the sites and the control API."""

    def __init__(
        self,
        store: SiteStore,
        control: Control,
        clock: Clock,
        planner: Planner,
        on_line: Callable[[str], None] = lambda _: None,
        rows: PageRows | None = None,
    ) -> None:
        """`on_line`: called with one line for each run that begins or ends. `rows`: by default those that the control
        API shows."""
        self._rows = rows or ExplainedRows(control)
        self._store = store
        self._control = control
        self._clock = clock
        self._planner = planner
        self._on_line = on_line
        self._sites = Sites({})
        self._version = -1
        self._open: dict[str, DirectoryRun] = {}
        self._ended_once: set[str] = set()
        """Runs whose job had ended at the last look; at the next one they are over."""
        self._loaded = False
        self._states: dict[str, list[ListState]] = {}
        """Directory → its lists after its last run."""

    async def run(self, stop: asyncio.Event) -> None:
        """Turn after turn until `stop` is set."""
        while not stop.is_set():
            wait_s = await self.turn()
            await wait(self._clock, wait_s, stop)

    async def turn(self) -> float:
        """End what is over, start what is due; returns the seconds to wait. While the system cannot be reached,
        nothing changes."""
        try:
            await self._load()
            if self._open:
                await self._watch()
            await self._start()
        except NotReadyError as error:
            self._on_line(f"waiting: {error}")
            return IDLE_S
        if self._open:
            return POLL_S
        return min(max(self._planner.next_event(self._clock.now()) - self._clock.now(), 0.0), IDLE_S)

    # ---- parts

    async def _load(self) -> None:
        """Take the sites of the store when they have changed."""
        version = self._store.version
        if version == self._version:
            return
        self._version = version
        now, old = self._clock.now(), self._sites
        self._sites = self._store.sites()
        progress = {} if self._loaded else self._store.progress()
        for name, (site, directory) in self._sites.directories.items():
            if not self._loaded or old.directories.get(name) != (site, directory) or old.sites != self._sites.sites:
                self._planner.put(plan_of(self._sites, name), now, progress.pop(name, None))
        if not self._loaded:
            self._loaded = True
            self._states = {
                name: states for name, states in self._store.lists().items() if name in self._sites.directories
            }
            for run in self._store.open_runs():
                self._open[run.name] = run
                if run.name in self._sites.directories:
                    self._planner.resume(run.name)
        removed = [*(name for name in old.directories if name not in self._sites.directories)]
        for name in [*removed, *(name for name in progress if name not in self._sites.directories)]:
            await self._withdraw(name, planned=name in old.directories)

    async def _withdraw(self, name: str, *, planned: bool) -> None:
        if planned:
            self._planner.remove(name)
        run = self._open.pop(name, None)
        if run is not None:
            self._store.end(run._replace(ended_at=self._clock.now(), ended_by=RunEnd.REMOVED), None)
        try:
            await self._control.delete_job(job_types.JobName(name=name))
        except api.NotFound:
            pass
        self._store.forget(name)
        self._states.pop(name, None)
        self._on_line(f"{name}: removed")

    async def _watch(self) -> None:
        jobs = {job.name: job for job in (await self._control.list_jobs(job_types.ListJobs())).jobs}
        for run in list(self._open.values()):
            job, age_s = jobs.get(run.name), self._clock.now() - run.started_at
            paused = job is not None and job.state == "paused"
            if not run.generation:
                await self._apply(run, paused=paused)
                continue
            if run.name in self._sites.directories:
                self._planner.hold(run.name, held=paused or (job is not None and job.state == "window"))
            if job is None:
                await self._end(run, RunEnd.DELETED, run.stored_before)
            elif job.observed_generation >= run.generation and job.state in _ENDS and age_s >= SETTLE_S:
                if run.name in self._ended_once:
                    await self._end(run, _ENDS[job.state], job.stored)
                else:
                    self._ended_once.add(run.name)
            elif age_s >= MAX_RUN_S and not paused:
                await self._end(run, RunEnd.TIME, job.stored)
            else:
                self._ended_once.discard(run.name)

    async def _start(self) -> None:
        now = self._clock.now()
        jobs: dict[str, job_types.Job] | None = None
        while True:
            if jobs is None and self._planner.next_event(now) <= now:
                jobs = {job.name: job for job in (await self._control.list_jobs(job_types.ListJobs())).jobs}
            start = self._planner.take(now)
            if start is None:
                return
            await self._begin(start, jobs or {})

    async def _begin(self, start: Start, jobs: dict[str, job_types.Job]) -> None:
        stored = jobs[start.name].stored if start.name in jobs else 0
        # A list that is fetched for the first time is stored, too, and is no new page.
        seeds = len(self._not_fetched(start.name)) if start.pages else 0
        run = DirectoryRun(
            start.name,
            self._clock.now(),
            start.due_at,
            0,
            stored,
            stored + seeds + start.pages if start.pages else 0,
        )
        self._store.begin(run, self._planner.progress(start.name))
        self._open[run.name] = run
        paused = start.name in jobs and jobs[start.name].state == "paused"
        if paused:
            self._on_line(f"{run.name}: its job is paused; resume it with: nephila jobs resume {run.name}")
        await self._apply(run, paused=paused)

    async def _apply(self, run: DirectoryRun, *, paused: bool = False) -> None:
        try:
            document = resolve.job(self._sites, run.name, run.started_at, run.max_pages, paused=paused)
            answer = await self._control.apply_job(job_types.ApplyJob(job=document.content))
        except NotReadyError:
            raise
        except UserError as error:
            await self._end(run, RunEnd.REFUSED, run.stored_before, str(error))
            return
        self._open[run.name] = self._store.applied(run, answer.generation)
        late_s = max(run.started_at - run.due_at, 0.0)
        self._on_line(f"{run.name}: started, {late_s:,.0f} s after its time")

    async def _end(self, run: DirectoryRun, ended_by: RunEnd, stored: int, why: str = "") -> None:
        """A run is over; `stored`: pages of its job that are stored now."""
        first = self._not_fetched(run.name)
        urls = self._lists(run.name) if ended_by is not RunEnd.DELETED else ()
        states = [await self._state(run, url, ended_by) for url in urls]
        now = self._clock.now()
        new_lists = sum(state.url in first and not state.is_fault for state in states)
        new_pages = max(stored - run.stored_before - new_lists, 0)
        counts = await self._unfetched_links(run)
        recorded = counts.pop(Reason.LINK_RECORDED, 0)
        news = new_pages + recorded
        lists = [self._with_history(run, state, news) for state in states]
        failed = ended_by.is_failure or bool(lists and all(state.is_fault for state in lists))
        del self._open[run.name]
        self._ended_once.discard(run.name)
        watched = sum(not state.is_fault for state in lists)
        progress = self._planner.ended(run.name, run.started_at, watched + new_pages, news, failed=failed)
        ended = run._replace(
            ended_at=now,
            ended_by=ended_by,
            new_pages=new_pages,
            why=why,
            recorded=recorded,
            left_out=counts.total(),
        )
        self._store.end(ended, progress, lists)
        self._put_lists(run.name, lists)
        links = f", {recorded:,} links recorded" if recorded else ""
        links += f", {ended.left_out:,} new links left out" if ended.left_out else ""
        self._on_line(f"{run.name}: {why or ended_by}, {new_pages:,} new pages{links} in {now - run.started_at:,.0f} s")
        for state in lists:
            if state.is_fault:
                self._on_line(f"{run.name}: {list_line(list_answer(state))}")

    async def _unfetched_links(self, run: DirectoryRun) -> Counter[str]:
        """Links of a run that were recorded or left out, by reason. Raises `NotReadyError`."""
        part = self._sites.directories.get(run.name)
        settings = resolve.values(self._sites, *part) if part is not None else {}
        if not any(path in settings and settings[path].value for path in PICKING):
            return Counter()
        try:
            return await self._rows.unfetched_links(run.name, iso(run.started_at - SKEW_S))
        except NotReadyError:
            raise
        except UserError as error:
            self._on_line(f"{run.name}: links that were recorded or left out are not counted: {error}")
            return Counter()

    def _lists(self, name: str) -> list[str]:
        """URLs of the lists of a directory whose state is looked up."""
        try:
            seeds = urls_of(resolve.job(self._sites, name, 0.0).spec)
        except UserError:
            # The settings that made the job refuse its document.
            seeds = [self._sites.directories[name][1].url]
        return list(dict.fromkeys(seeds))[:MAX_LISTS]

    def _not_fetched(self, name: str) -> set[str]:
        """Lists that no run has fetched yet."""
        return set(self._lists(name)) - self._store.fetched_lists(name)

    async def _state(self, run: DirectoryRun, url: str, ended_by: RunEnd) -> ListState:
        """How a list stands after a run. Raises `NotReadyError`."""
        if ended_by is RunEnd.REFUSED:
            return ListState(url, ListVerdict.NOT_STARTED)
        first_state: ListState | None = None
        at = url
        for _ in range(MAX_HOPS):
            row = await self._row(run.name, at)
            if row is None or (first_state is None and str(row["fetched_at"]) < iso(run.started_at - SKEW_S)):
                # The target of a redirect that the scope does not admit has no row.
                return first_state or ListState(
                    url, ListVerdict.WAITING if self._rows.readable else ListVerdict.UNKNOWN
                )
            now = of_row(url, row)
            if now.verdict is not ListVerdict.MOVED:
                if first_state is not None and not now.is_fault:
                    return now._replace(target=at, reason=first_state.reason, status=first_state.status)
                return now._replace(target=at if at != url else "")
            first_state, at = now, now.target
        return first_state or ListState(url, ListVerdict.FAILED)

    async def _row(self, job: str, url: str) -> Mapping[str, Any] | None:
        try:
            return await self._rows.row(job, url)
        except NotReadyError:
            raise
        except UserError:
            # No database, or no URL.
            return None

    def _with_history(self, run: DirectoryRun, state: ListState, new_pages: int) -> ListState:
        """The state with the begin of its fault. A fetched list is `NEW` in a run with new pages; in one without, it is
        `MOVED` if it was fetched from another directory."""
        if not state.is_fault and new_pages:
            return state._replace(verdict=ListVerdict.NEW)
        if not state.is_fault and state.target and not is_below(state.target, state.url):
            # The links below the new address are out of the scope.
            state = state._replace(verdict=ListVerdict.MOVED)
        if not state.is_fault:
            return state
        before = self._store.lists_of(run.name).get(state.url)
        return state._replace(since=before.since if before is not None and before.is_fault else run.started_at)

    # ---- state for metrics

    def _put_lists(self, name: str, lists: list[ListState]) -> None:
        self._states[name] = lists

    @property
    def verdicts(self) -> dict[str, int]:
        """Lists by their verdict after the last run."""
        numbers = dict.fromkeys(map(str, ListVerdict), 0)
        for lists in self._states.values():
            for state in lists:
                numbers[state.verdict] += 1
        return numbers

    @property
    def faulty_for(self) -> dict[str, float]:
        """Directory with a fault → seconds since the oldest fault of its lists."""
        now = self._clock.now()
        faults = {name: [state.since for state in lists if state.is_fault] for name, lists in self._states.items()}
        return {name: max(now - min(since), 0.0) for name, since in faults.items() if since}
