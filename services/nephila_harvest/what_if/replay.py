"""Replays the changes of pages against a frequency and a budget, by the policy that the scheduler uses. Pure.

A page's changes are instants. A fetch finds all changes since the fetch before; of several only the last version is
seen. Due pages are fetched in the order of their due instants; a budget spaces the fetches. O(fetches log pages), some
10 µs a fetch.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from nephila.kernel.documents.field_types import check_duration, seconds
from nephila.kernel.documents.job_schema import Recrawl
from nephila.kernel.messages import Outcome, Receipt, UrlState
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.recrawl.policy import RecrawlPolicy

from nephila_harvest.audit.precision import Interval, wilson

RECORDED: Final = "recorded"
MAX_FETCHES: Final = 3_000_000
"""Of one scenario; beyond it the replay ends. Half a minute of CPU."""
_DAY_S: Final = 86_400.0


class PageHistory(NamedTuple):
    """What is known of one page. Instants are seconds since 1970 UTC, rising."""

    url_key: bytes
    fetches: tuple[float, ...]
    """Fetches that brought or confirmed a copy; the first one is that of the new page."""
    changes: tuple[float, ...]
    """When the page changed, after the first fetch."""


class Scenario(NamedTuple):
    """A frequency and a budget."""

    name: str
    recrawl: Recrawl | None
    """None: the recorded fetches."""
    per_day: float = 0.0
    """Most fetches per day; 0: no limit."""


class Outcomes(NamedTuple):
    """What a scenario gives."""

    name: str
    requests: int
    """Fetches after the first one of each page."""
    per_day: float
    changes: int
    """Changes that were old enough at the end to be judged."""
    within: Interval | None
    """Share of them that was found in time, with 95 %; None without changes."""
    mean_delay_s: float
    """From change to fetch, of the changes that were found."""
    versions_lost: int
    """Changes that another one replaced before a fetch."""
    cut: bool
    """Only a part was replayed: there are more fetches than the limit."""


def scenario(text: str) -> Scenario:
    """`6h`, `1h..14d` (adaptive) or `recorded`, each with `@N` for at most N requests a day. Raises `UsageError`."""
    frequency, _, budget = text.strip().partition("@")
    try:
        per_day = float(budget) if budget else 0.0
        if budget and not 0 < per_day < 1e12:
            raise ValueError("the budget is not a number above 0")
        if frequency == RECORDED:
            if budget:
                raise ValueError("what was recorded has no other budget")
            return Scenario(RECORDED, None)
        least, dots, most = frequency.partition("..")
        for bound in (least, most) if dots else (least,):
            if not 60 <= seconds(check_duration(bound)) <= 366 * _DAY_S:
                raise ValueError("intervals are 1m to 366d")
        return Scenario(text.strip(), Recrawl(min=least, max=most) if dots else Recrawl(every=least), per_day)
    except ValueError as error:
        raise UsageError(f"{text!r} is no scenario such as 6h, 1h..14d or 1d@5000: {error}") from None


def replay(
    pages: Sequence[PageHistory], plan: Scenario, until: float, within_s: float, most: int = MAX_FETCHES
) -> Outcomes:
    """What would have been found by `until`, and how much of it within `within_s` of the change."""
    requests = in_time = judged = lost = 0
    delays = 0.0
    seen_until = [page.fetches[0] for page in pages]
    fetches = _recorded(pages) if plan.recrawl is None else _by_policy(pages, plan.recrawl, plan.per_day, until)
    count = 0
    for index, at in fetches:
        if at > until or requests >= most:
            break
        requests += 1
        changes = pages[index].changes
        first, last = bisect_right(changes, seen_until[index]), bisect_right(changes, at)
        seen_until[index] = at
        lost += max(last - first - 1, 0)
        for change in changes[first:last]:
            delays += at - change
            count += 1
            if change + within_s <= until:
                judged += 1
                in_time += at - change <= within_s
    for page, seen in zip(pages, seen_until, strict=True):
        judged += sum(seen < change <= until - within_s for change in page.changes)
    days = max(until - min((page.fetches[0] for page in pages), default=until), 1.0) / _DAY_S
    share = wilson(in_time / judged, judged) if judged else None
    mean = delays / count if count else 0.0
    return Outcomes(plan.name, requests, requests / days, judged, share, mean, lost, requests >= most)


def _recorded(pages: Sequence[PageHistory]) -> Iterator[tuple[int, float]]:
    of_pages = ([(at, index) for at in page.fetches[1:]] for index, page in enumerate(pages))
    yield from ((index, at) for at, index in heapq.merge(*of_pages))


def _by_policy(
    pages: Sequence[PageHistory], recrawl: Recrawl, per_day: float, until: float
) -> Iterator[tuple[int, float]]:
    """Fetches in the order of their instants, as number of the page and instant."""
    policy = RecrawlPolicy(recrawl)
    gap, free_at = (_DAY_S / per_day if per_day else 0.0), 0.0
    starts = ((page, page.fetches[0]) for page in pages)
    states = [policy.after(UrlState(url_key=page.url_key), _receipt(page, at, 1), at) for page, at in starts]
    queue = [(state.next_at, index) for index, state in enumerate(states) if state.next_at]
    heapq.heapify(queue)
    while queue and queue[0][0] <= until:
        due, index = heapq.heappop(queue)
        at = max(due, free_at)
        free_at = at + gap
        if at > until:
            return
        yield index, at
        state = policy.after(states[index], _receipt(pages[index], at, states[index].fetch_no + 1), at)
        states[index] = state
        if state.next_at:
            heapq.heappush(queue, (state.next_at, index))


def _receipt(page: PageHistory, at: float, number: int) -> Receipt:
    version = bisect_right(page.changes, at).to_bytes(8, "big")
    return Receipt(page.url_key, number, Outcome.STORED, version)
