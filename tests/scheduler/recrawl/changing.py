"""A simulated web whose pages change at known random times, and what became of the copies that a crawler kept of it.

Staleness of a copy at an instant is the time since the first change that it has missed, 0 while it is fresh. Its
percentiles over (page, instant) are exact: between two fetches it is 0 until the first change and then grows with the
time, so that the share of time above s is the sum of max(0, peak - s) over the peaks reached at each fetch.
"""

import heapq
import math
import random
from bisect import bisect_right
from dataclasses import dataclass, field
from hashlib import md5

from nephila.kernel.messages import Outcome, Receipt, Recrawl, UrlState
from nephila.scheduler.recrawl.due_table import DueTable
from nephila.scheduler.recrawl.policy import RecrawlPolicy

HOUR_S = 3_600.0
DAY_S = 86_400.0
START = 1_800_000_000.0


@dataclass(slots=True)
class Page:
    """Its mean time between changes, and all instants at which it changes."""

    mean_s: float
    changes: list[float]


@dataclass(slots=True)
class Copies:
    """What a crawler had over the time: peaks of staleness in seconds, fetches."""

    pages: int
    length_s: float
    peaks: list[float] = field(default_factory=list)
    fetches: int = 0

    def between(self, page: Page, fetched: float, again: float) -> None:
        """The copy of one fetch stood until the next."""
        index = bisect_right(page.changes, fetched)
        if index < len(page.changes) and page.changes[index] < again:
            self.peaks.append(again - page.changes[index])

    def percentile(self, share: float) -> float:
        """Seconds of staleness not exceeded during this share of all (page, instant)."""
        allowed = (1 - share) * self.pages * self.length_s
        low, high = 0.0, max(self.peaks, default=0.0)
        if math.fsum(self.peaks) <= allowed:
            return 0.0
        for _ in range(50):
            middle = (low + high) / 2
            if math.fsum(peak - middle for peak in self.peaks if peak > middle) > allowed:
                low = middle
            else:
                high = middle
        return high

    @property
    def fresh(self) -> float:
        """Share of (page, instant) at which the copy was as the page."""
        return 1 - math.fsum(self.peaks) / (self.pages * self.length_s)


def web(pages: int, length_s: float, seed: int, fastest_s: float = HOUR_S, slowest_s: float = 30 * DAY_S) -> list[Page]:
    """Poisson processes whose mean times between changes are log-uniform."""
    rng = random.Random(seed)
    made = []
    for _ in range(pages):
        mean_s = fastest_s * (slowest_s / fastest_s) ** rng.random()
        changes, at = [], START
        while (at := at + rng.expovariate(1 / mean_s)) < START + length_s:
            changes.append(at)
        made.append(Page(mean_s, changes))
    return made


def fixed(pages: list[Page], length_s: float, fetches: int, seed: int) -> Copies:
    """Every page at one interval, each from another moment on, with as many fetches in all; the first is at START."""
    copies = Copies(len(pages), length_s)
    rng = random.Random(seed)
    interval = length_s * len(pages) / max(fetches - len(pages), 1)
    for page in pages:
        last, at = START, START + interval * rng.random()
        copies.fetches += 1
        while at < START + length_s:
            copies.between(page, last, at)
            copies.fetches += 1
            last, at = at, at + interval
        copies.between(page, last, START + length_s)
    return copies


def adaptive(
    pages: list[Page],
    length_s: float,
    recrawl: Recrawl,
    *,
    answers_304: bool = True,
    sitemap_s: float = 0.0,
    lying: bool = False,
) -> tuple[Copies, RecrawlPolicy, DueTable]:
    """The scheduler's policy and due_table on a virtual clock: pages are first crawled over an hour, then when due.

    Every other page answers 304. `sitemap_s`: how often a sitemap with the true lastmod of every page is read, 0 =
    never; a `lying` one says "now".
    """
    copies = Copies(len(pages), length_s)
    policy, due_table = RecrawlPolicy(recrawl), DueTable("bench")
    by_key = {md5(b"%d" % n, usedforsecurity=False).digest(): n for n in range(len(pages))}
    keys = list(by_key)
    events: list[tuple[float, int]] = [(START, -1)] if sitemap_s else []
    fetched = [START] * len(pages)
    state: UrlState | None
    for number, key in enumerate(keys):
        state = UrlState("bench", key, f"http://h.test/{number}", "h.test", first_at=START)
        state.next_at = START + HOUR_S * number / len(pages)
        due_table.put(state)
    now = START
    while True:
        now = max(min(due_table.next_due(), events[0][0] if events else math.inf), now)
        if now >= START + length_s:
            break
        if events and events[0][0] <= now:
            heapq.heapreplace(events, (now + sitemap_s, -1))
            for key, number in by_key.items():
                if (state := due_table.get(key)) is not None and (
                    new := policy.after_lastmod(state, _said(pages[number], now, lying), now)
                ):
                    due_table.put(new)
        for state in due_table.due(now + 1.0):
            number = by_key[state.url_key]
            at = max(state.next_at, START)
            copies.between(pages[number], fetched[number], at)
            copies.fetches += 1
            fetched[number] = at
            due_table.put(policy.after(state, _fetch(pages[number], state, at, answers_304 and number % 2 == 0), at))
        now += 1.0
    for number, page in enumerate(pages):
        copies.between(page, fetched[number], START + length_s)
    return copies, policy, due_table


def _said(page: Page, now: float, lying: bool) -> float:
    index = bisect_right(page.changes, now)
    return now if lying else (page.changes[index - 1] if index else START - DAY_S)


def _fetch(page: Page, state: UrlState, at: float, answers_304: bool) -> Receipt:
    version = bisect_right(page.changes, at)
    mark = version.to_bytes(8, "big")
    held = answers_304 and state.text_hash == mark
    return Receipt(
        state.url_key,
        state.fetch_no + 1,
        Outcome.STORED,
        text_hash=b"" if held else mark,
        not_modified=held,
        status=304 if held else 200,
    )
