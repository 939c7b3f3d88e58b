"""The plan of the day: which directory runs next. Pure.

A directory is due by its frequency: `RecrawlPolicy` of the scheduler, applied to the directory as if it were a page
that has changed when a run found new pages. Due directories are started by start-time fair queueing (Goyal, Vin and
Cheng, 1996): each run of a directory moves its tag on by 1 / score, and the lowest tag goes first. So of many that are
due at once the higher score goes first, and while more is due than can run, the numbers of runs are in proportion to
the scores, as far as the frequencies allow, and no directory starves.

`pages_per_day` limits the pages of all runs of a UTC day; a run is charged the expected pages, and the difference at
its end. While the directories together ask for more than that, the limit grows evenly over the day: otherwise the runs
of the morning would take all of it, and no run of a high score could go before one of a low score. Invariant: a
directory is waiting, due, running or paused. `take` and `ended` are O(log directories).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from hashlib import md5
from typing import NamedTuple

from nephila.kernel.documents import fetch_windows
from nephila.kernel.documents.field_types import instant_s
from nephila.kernel.messages import Outcome, Receipt, UrlState
from nephila.scheduler.recrawl.change_rate import DAY_S
from nephila.scheduler.recrawl.policy import RecrawlPolicy

from nephila_harvest.sites import resolve
from nephila_harvest.sites.site_documents import Sites
from nephila_harvest.sites.site_schema import frequency

USUAL_PAGES = 10.0
"""Pages of the first run of a directory, as long as it has not run."""
SMOOTHING = 0.3
"""Weight of the last run in the expected pages."""


class DirectoryPlan(NamedTuple):
    """What the planner has to know of a directory."""

    name: str
    score: float
    frequency: str
    start_at: float = 0.0
    """No run before this instant; runs at intervals are counted from it. 0: none."""
    top_pages: int = 0
    time_zone: str = ""
    """Of a frequency in cron, and of windows; empty: UTC."""
    windows: tuple[str, ...] = ()
    """Hours in which runs begin; empty: all."""
    paused: bool = False
    """No run begins."""

    def opens_at(self, at: float) -> float:
        """The instant, or the next one at which a window is open."""
        return fetch_windows.compiled(self.windows, self.time_zone).opens_at(at) if self.windows else at


def plan_of(sites: Sites, name: str) -> DirectoryPlan:
    """The plan of a directory by its settings."""
    settings = resolve.values(sites, *sites.directories[name])
    start = settings.get("start")
    return DirectoryPlan(
        name,
        settings["score"].value,
        settings["frequency"].value,
        instant_s(start.value) if start is not None else 0.0,
        settings["topPages"].value,
        settings["timeZone"].value if "timeZone" in settings else "",
        tuple(settings["windows"].value) if "windows" in settings else (),
        settings["paused"].value,
    )


class Start(NamedTuple):
    """A run that begins now."""

    name: str
    pages: int
    """New pages at most; 0 = no limit."""
    due_at: float


@dataclass(slots=True)
class DirectoryProgress:
    """What is stored of a directory between runs of the program."""

    state: UrlState
    """Frequency of change and due time, as of a page."""
    tag: float = 0.0
    """Virtual time before which no other run is due to the directory."""
    pages: float = USUAL_PAGES
    """Expected pages of a run."""


@dataclass(slots=True)
class _Entry:
    plan: DirectoryPlan
    policy: RecrawlPolicy
    progress: DirectoryProgress
    version: int
    running: bool = False
    demand: float = 0.0
    """Expected pages per day."""


class Planner:
    """The directories of all sites. The caller stores the `DirectoryProgress` that `ended` returns."""

    def __init__(self, parallel: int = 16, pages_per_day: int = 0) -> None:
        self.parallel = parallel
        self.pages_per_day = pages_per_day
        self._entries: dict[str, _Entry] = {}
        self._policies: dict[tuple[str, str], RecrawlPolicy] = {}
        self._waiting: list[tuple[float, str, int]] = []
        """Heap of due times."""
        self._due: list[tuple[float, float, float, str, int]] = []
        """Heap of (tag, -score, due time, name, version)."""
        self._clock = 0.0
        """Virtual time: the tag of the last start."""
        self._day = -1
        self._spent = 0.0
        self._demand = 0.0
        self._charged: dict[str, float] = {}
        self._held: set[str] = set()
        """Directories whose run waits for a window; they take no place of the parallel ones."""
        self._versions = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def running(self) -> list[str]:
        """Directories that run."""
        return list(self._charged)

    def put(self, plan: DirectoryPlan, now: float, progress: DirectoryProgress | None = None) -> None:
        """Add a directory or replace its plan; without progress one that is known keeps its own."""
        old = self._entries.get(plan.name)
        policy = self._policies.get((plan.frequency, plan.time_zone))
        if policy is None:
            policy = frequency(plan.frequency, plan.time_zone)
            self._policies[plan.frequency, plan.time_zone] = policy
        if progress is not None:
            self._clock = max(self._clock, progress.tag - 1 / plan.score)
        else:
            progress = old.progress if old is not None else DirectoryProgress(_new_state(plan.name))
        self._versions += 1
        entry = _Entry(plan, policy, progress, self._versions, old is not None and old.running)
        self._demand -= old.demand if old is not None else 0.0
        self._entries[plan.name] = entry
        self._estimate(entry, now)
        state = progress.state
        if not state.fetch_no:
            state.next_at = self._first(plan, policy, now)
        elif old is None or old.plan != plan:
            # The due time of another frequency, or from a clock that was set back.
            state.next_at = self._next(entry, policy.reapplied(state, now).next_at, state.fetched_at)
        if not entry.running:
            self._wait(entry, state.next_at)

    def remove(self, name: str) -> None:
        """Remove a directory; a run of it ends without `ended`."""
        entry = self._entries.pop(name)
        self._demand -= entry.demand
        if entry.running:
            self._release(name, 0.0)

    def resume(self, name: str) -> None:
        """A run that another run of the program started is in progress."""
        entry = self._entries[name]
        self._versions += 1
        entry.version = self._versions
        self._begin(entry)

    def hold(self, name: str, *, held: bool) -> None:
        """Whether a run waits for its window, or runs on. It gives its place meanwhile to others."""
        if held and name in self._charged:
            self._held.add(name)
        else:
            self._held.discard(name)

    def take(self, now: float) -> Start | None:
        """The next run, or None when nothing is due, too many run, or the pages of the day are used up."""
        self._turn_day(now)
        self._move_due(now)
        if self._places_taken >= self.parallel or self._next_allowance(now) > now:
            return None
        while self._due:
            tag, _, due_at, name, version = heapq.heappop(self._due)
            entry = self._entries.get(name)
            if entry is None or entry.version != version:
                continue
            if (opening := entry.plan.opens_at(now)) > now:
                # It was due in a window in which others had all places.
                self._wait(entry, opening)
                continue
            self._clock = max(self._clock, tag)
            entry.progress.tag = tag + 1 / entry.plan.score
            self._begin(entry)
            return Start(name, entry.plan.top_pages, due_at)
        return None

    def ended(
        self, name: str, started_at: float, pages: int, new_pages: int, *, failed: bool = False
    ) -> DirectoryProgress:
        """A run is over: `pages` were fetched, `new_pages` of them are new. Returns what is to be stored."""
        entry = self._entries[name]
        progress, policy = entry.progress, entry.policy
        self._release(name, float(pages))
        old = progress.state
        receipt = Receipt(old.url_key, old.fetch_no + 1, Outcome.FAILED if failed else Outcome.STORED)
        # Any other value counts as a change.
        receipt.text_hash = b"%d" % (old.fetch_no + 1) if new_pages or not old.text_hash else old.text_hash
        state = policy.after(old, receipt, started_at)
        state.next_at = self._next(entry, state.next_at, started_at)
        progress.state = state
        progress.pages += SMOOTHING * (pages - progress.pages)
        self._demand -= entry.demand
        self._estimate(entry, started_at)
        entry.running = False
        self._wait(entry, state.next_at)
        return progress

    def next_event(self, now: float) -> float:
        """The instant at which `take` may return something that it does not return now; infinity: after `ended`."""
        if self._places_taken >= self.parallel:
            return math.inf
        due_at = now if self._due else self._waiting[0][0] if self._waiting else math.inf
        return max(due_at, self._next_allowance(now)) if due_at < math.inf else due_at

    def due(self, now: float) -> list[str]:
        """Names of the directories that are due and not running, in the order of their starts. O(n log n)."""
        self._move_due(now)
        return [
            name
            for _, _, _, name, version in sorted(self._due)
            if (entry := self._entries.get(name)) is not None and entry.version == version
        ]

    def next_at(self, name: str) -> float:
        """The time at which a directory is due."""
        return self._entries[name].progress.state.next_at

    def progress(self, name: str) -> DirectoryProgress:
        """What is to be stored of a directory."""
        return self._entries[name].progress

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(n)."""
        waiting = {(name, version) for _, name, version in self._waiting}
        due = {(name, version) for _, _, _, name, version in self._due}
        for name, entry in self._entries.items():
            places = ((name, entry.version) in waiting) + ((name, entry.version) in due) + entry.running
            expected = int(entry.running or not entry.plan.paused)
            assert places == expected, f"{name} is in {places} places"
            assert entry.running == (name in self._charged), f"{name} is charged and does not run"
        demand = sum(entry.demand for entry in self._entries.values())
        assert math.isclose(self._demand, demand, rel_tol=1e-6, abs_tol=1e-6), f"demand is {self._demand}, not {demand}"
        assert self._held <= self._charged.keys(), "a directory is held and does not run"

    # ---- parts

    def _move_due(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            due_at, name, version = heapq.heappop(self._waiting)
            entry = self._entries.get(name)
            if entry is None or entry.version != version:
                continue
            plan = entry.plan
            tag = max(self._clock, entry.progress.tag)
            heapq.heappush(self._due, (tag, -plan.score, due_at, name, version))

    def _wait(self, entry: _Entry, at: float) -> None:
        if entry.plan.paused:
            return
        heapq.heappush(self._waiting, (entry.plan.opens_at(at), entry.plan.name, entry.version))

    @property
    def _places_taken(self) -> int:
        return len(self._charged) - len(self._held)

    def _begin(self, entry: _Entry) -> None:
        entry.running = True
        self._charged[entry.plan.name] = entry.progress.pages
        self._spent += entry.progress.pages

    def _release(self, name: str, pages: float) -> None:
        self._held.discard(name)
        self._spent = max(self._spent + pages - self._charged.pop(name), 0.0)

    def _next_allowance(self, now: float) -> float:
        """The instant from which on the limit of the day allows another run."""
        if not self.pages_per_day or now // DAY_S > self._day:
            return now
        midnight = (now // DAY_S + 1) * DAY_S
        if self._spent >= self.pages_per_day:
            return midnight
        if self._demand <= self.pages_per_day:
            return now
        return max(now, midnight - DAY_S + self._spent / self.pages_per_day * DAY_S)

    def _estimate(self, entry: _Entry, now: float) -> None:
        """Add the demand of a directory."""
        policy, interval_s = entry.policy, entry.progress.state.interval_s
        if policy.schedule is not None:
            first = policy.schedule.after(now)
            interval_s = policy.schedule.after(first) - first
        elif not interval_s or policy.every_s:
            interval_s = policy.every_s or policy.min_s
        entry.demand = 0.0 if entry.plan.paused else entry.progress.pages * DAY_S / interval_s
        self._demand += entry.demand

    def _turn_day(self, now: float) -> None:
        day = int(now // DAY_S)
        if day != self._day:
            self._day, self._spent = day, sum(self._charged.values())

    def _first(self, plan: DirectoryPlan, policy: RecrawlPolicy, now: float) -> float:
        if plan.start_at > now:
            return plan.start_at
        if policy.schedule is not None:
            return policy.schedule.after(now)
        return now

    def _next(self, entry: _Entry, policy_next: float, ran_at: float) -> float:
        """The next run: of the policy, or on the grid of intervals from the start instant."""
        start, every_s = entry.plan.start_at, entry.policy.every_s
        if start > ran_at:
            return start
        if start and every_s and policy_next - ran_at <= 2 * every_s:
            return start + (math.floor((ran_at - start) / every_s) + 1) * every_s
        return policy_next


def _new_state(name: str) -> UrlState:
    key = md5(name.encode(), usedforsecurity=False).digest()
    return UrlState("sites", key, seed=True)
