"""Starts the runs of directories when they are due, and records how they end.

A run is a new version of the directory's CrawlJob, applied over the control API; the scheduler fetches its pages. The
store holds sites, progress and open runs, so that a restart continues: an open run whose job was not applied is applied
with the same instant. Invariant: a run is in the store before its job is applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nephila.control import api
from nephila.control.api import Control
from nephila.harvest.sites import resolve
from nephila.harvest.sites.planner import Plan, Planner, Start
from nephila.harvest.sites.site_documents import Sites
from nephila.harvest.sites.store import Run, SiteStore
from nephila.kernel.documents.field_types import instant_s
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UserError

POLL_S = 1.0
"""Between two looks at the jobs while a run is open."""
IDLE_S = 5.0
"""Between two looks at the store for changed sites."""
SETTLE_S = 3.0
"""A job is idle for an instant after its change, before the scheduler has queued its due pages."""
MAX_RUN_S = 86_400.0
"""A run that is not over after this time gives its place to others; its job continues."""
_ENDS = {"idle": "done", "limit": "pages", "quota": "quota"}


class SiteRunner:
    """The program between the sites and the control API."""

    def __init__(
        self,
        store: SiteStore,
        control: Control,
        clock: Clock,
        planner: Planner,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_line`: called with one line for each run that begins or ends."""
        self._store = store
        self._control = control
        self._clock = clock
        self._planner = planner
        self._on_line = on_line
        self._sites = Sites({})
        self._version = -1
        self._open: dict[str, Run] = {}
        self._ended_once: set[str] = set()
        """Runs whose job had ended at the last look; at the next one they are over."""
        self._loaded = False

    async def run(self, stop: asyncio.Event) -> None:
        """Turn after turn until `stop` is set."""
        while not stop.is_set():
            wait_s = await self.turn()
            waited = asyncio.Event()
            timer = self._clock.call_at(self._clock.monotonic() + wait_s, waited.set)
            tasks = [asyncio.ensure_future(one.wait()) for one in (stop, waited)]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                for task in tasks:
                    task.cancel()

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
                self._planner.put(_plan(self._sites, name), now, progress.pop(name, None))
        if not self._loaded:
            self._loaded = True
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
            self._store.end(run._replace(ended_at=self._clock.now(), ended_by="removed"), None)
        try:
            await self._control.delete_job(api.JobName(name=name))
        except api.NotFound:
            pass
        self._store.forget(name)
        self._on_line(f"{name}: removed")

    async def _watch(self) -> None:
        jobs = {job.name: job for job in (await self._control.list_jobs(api.Empty())).jobs}
        for run in list(self._open.values()):
            if not run.generation:
                await self._apply(run)
                continue
            job, age_s = jobs.get(run.name), self._clock.now() - run.started_at
            if job is None:
                self._end(run, "its job was deleted", 0)
            elif job.observed_generation >= run.generation and job.state in _ENDS and age_s >= SETTLE_S:
                if run.name in self._ended_once:
                    self._end(run, _ENDS[job.state], job.stored - run.stored_before)
                else:
                    self._ended_once.add(run.name)
            elif age_s >= MAX_RUN_S:
                self._end(run, "time", job.stored - run.stored_before)
            else:
                self._ended_once.discard(run.name)

    async def _start(self) -> None:
        now = self._clock.now()
        jobs: dict[str, api.Job] | None = None
        while True:
            if jobs is None and self._planner.next_event(now) <= now:
                jobs = {job.name: job for job in (await self._control.list_jobs(api.Empty())).jobs}
            start = self._planner.take(now)
            if start is None:
                return
            await self._begin(start, jobs or {})

    async def _begin(self, start: Start, jobs: dict[str, api.Job]) -> None:
        stored = jobs[start.name].stored if start.name in jobs else 0
        # The first run stores the seeds, too.
        seeds = 0 if start.name in jobs else len(resolve.job(self._sites, start.name, 0.0).job.seeds)
        run = Run(
            start.name,
            self._clock.now(),
            start.due_at,
            0,
            stored,
            stored + seeds + start.pages if start.pages else 0,
        )
        self._store.begin(run, self._planner.progress(start.name))
        self._open[run.name] = run
        await self._apply(run)

    async def _apply(self, run: Run) -> None:
        try:
            document = resolve.job(self._sites, run.name, run.started_at, run.max_pages)
            answer = await self._control.apply_job(api.ApplyJob(job=document.content))
        except NotReadyError:
            raise
        except UserError as error:
            self._end(run, str(error), 0, failed=True)
            return
        self._open[run.name] = self._store.applied(run, answer.generation)
        late_s = max(run.started_at - run.due_at, 0.0)
        self._on_line(f"{run.name}: started, {late_s:,.0f} s after its time")

    def _end(self, run: Run, ended_by: str, new_pages: int, *, failed: bool = False) -> None:
        now, new_pages = self._clock.now(), max(new_pages, 0)
        del self._open[run.name]
        self._ended_once.discard(run.name)
        watched = len(resolve.job(self._sites, run.name, 0.0).job.seeds) if not failed else 0
        progress = self._planner.ended(run.name, run.started_at, watched + new_pages, new_pages, failed=failed)
        self._store.end(run._replace(ended_at=now, ended_by=ended_by, new_pages=new_pages), progress)
        self._on_line(f"{run.name}: {ended_by}, {new_pages:,} new pages in {now - run.started_at:,.0f} s")


def _plan(sites: Sites, name: str) -> Plan:
    found = resolve.values(sites, *sites.directories[name])
    start = found.get("start")
    return Plan(
        name,
        found["score"].value,
        found["frequency"].value,
        instant_s(start.value) if start is not None else 0.0,
        found["topPages"].value,
    )
