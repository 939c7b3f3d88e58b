"""Recrawl policy: when a page is fetched again. Pure: state, event and instant in, new state out.

A `RecrawlPolicy` is adaptive within [min, max], or a fixed interval, or the instants of a cron expression. An instant
`refresh_at` makes pages due once that were last fetched before it; it may be all that there is. Adaptive intervals
follow from the page's rate of change r (`change_rate`):

    interval = sqrt(min² + 2 k min / r),  k = 0.4

Within a few per cent this allocation makes the 95th percentile of staleness smallest for a given number of fetches
(docs/adr/0011). A page that always changes is fetched every `min`; for a slow page the interval grows with the square
root of the time between its changes. Invariants: an adaptive or fixed `next_at` is at most one `interval_s` after the
instant that set it, which limits the harm of a clock that jumps; a failed fetch loses no state of the page.

Instants are seconds since 1970 UTC. `prior` is learned from the other pages of the job and is a view of their states.
"""

from __future__ import annotations

import math

import msgspec

from nephila.kernel.documents.cron import UTC, Schedule
from nephila.kernel.documents.field_types import instant_s, seconds
from nephila.kernel.documents.job_schema import Recrawl
from nephila.kernel.messages import Outcome, Receipt, UrlState
from nephila.scheduler.recrawl.change_rate import DAY_S, Prior, rate_of

PRICE = 0.4
"""k above: the price of a fetch against time spent staler than min."""
MIN_S = 3_600.0
MAX_S = 30 * DAY_S
"""Bounds of a policy that is not adaptive."""
EARLY = 0.1
"""A refresh run also takes pages that would be due within this share of their interval. Otherwise, with a daily
interval and a daily run, each run would miss the pages that jitter made due a minute later."""
WINDOW = 64
"""Checks after which all evidence is halved: rates change, and 32 checks determine one within a fifth."""
JITTER = 0.1
"""Pages fetched together are spread over this share of their interval, to either side."""
REPEAT_S = 7_200.0
"""A clock set back by less than this does not repeat a cron run."""
SKEW_S = DAY_S
"""A lastmod further in the future is ignored."""
MAX_ETAG_CHARS = 200
"""A longer validator is not stored: its memory costs more than its 304s save."""

GONE_STATUSES = (404, 410)
_REDIRECTED = 302
_MIX = 0x9E3779B97F4A7C15


class RecrawlPolicy:
    """When the pages of one job are fetched again."""

    def __init__(self, recrawl: Recrawl | None, schedule: str = "", time_zone: str = UTC) -> None:
        """`schedule` has five fields of cron in `time_zone`; empty: none."""
        recrawl = recrawl or Recrawl()
        self.prior = Prior()
        self.monitor = recrawl.monitor
        self.gone_after = recrawl.gone_after
        self.every_s = seconds(recrawl.every or "0")
        self.refresh_at = instant_s(recrawl.refresh_at) if recrawl.refresh_at else 0.0
        self.freshness_s = seconds(recrawl.freshness or "0")
        """Objective for the age of the last check; 0 = none."""
        self.schedule = Schedule(schedule, time_zone) if schedule else None
        self.adaptive = recrawl.min is not None and not self.schedule
        self.min_s = seconds(recrawl.min) if recrawl.min is not None else MIN_S
        self.max_s = seconds(recrawl.max) if recrawl.max is not None else MAX_S
        self.recurs = self.adaptive or bool(self.every_s) or self.schedule is not None
        """Whether there is a frequency, not only single instants of the job document."""
        self.active = self.recurs or self.refresh_at > 0
        """Whether anything is ever fetched again."""

    def watches(self, seed: bool) -> bool:
        """Whether this URL is fetched again."""
        return self.active and (seed or not self.monitor)

    def rate(self, state: UrlState) -> float:
        """Estimated changes per second, above 0."""
        return rate_of(state, self.prior)

    def interval(self, state: UrlState) -> float:
        """Seconds between fetches for the page's rate, in [min_s, max_s]."""
        optimum_s = math.sqrt(self.min_s**2 + 2 * PRICE * self.min_s / self.rate(state))
        return min(max(optimum_s, self.min_s), self.max_s)

    def refresh_due(self, state: UrlState, now: float) -> bool:
        """Whether a one-time refresh run takes this URL; without a policy it takes every page that is not gone."""
        if self._gone(state) or not self.recurs:
            return not self._gone(state)
        return self.watches(state.seed) and 0 < state.next_at <= now + EARLY * state.interval_s

    def adopted(self, state: UrlState) -> UrlState:
        """The state of a URL whose last fetch was not watched, as if that had been its first watched fetch."""
        if not self.active:
            return state
        receipt = Receipt(state.url_key, state.fetch_no, state.outcome, state.text_hash, False, state.etag)
        receipt.last_modified = state.last_modified
        receipt.status = GONE_STATUSES[0] if state.missing else _REDIRECTED if state.fetched_at else 0
        new = self.after(msgspec.structs.replace(state, fetch_no=0, fetched_at=0.0), receipt, state.fetched_at)
        new.missing = state.missing
        return new

    # ---- events

    def after(self, old: UrlState, receipt: Receipt, at: float) -> UrlState:
        """The state after a fetch that ended `at` this instant; fetch_no 0 means never fetched.

        Only for watched URLs. A receipt of an earlier fetch changes nothing. O(1), about 5 µs.
        """
        if receipt.fetch_no < old.fetch_no:
            return old
        new = msgspec.structs.replace(
            old, fetch_no=receipt.fetch_no, outcome=receipt.outcome, first_at=old.first_at or at
        )
        if receipt.outcome is Outcome.STORED:
            self._stored(new, old, receipt, at)
            return self._due(new, old, at, self.interval(new) if self.adaptive else 0.0)
        if receipt.status in GONE_STATUSES:
            new.missing += 1
            if new.missing >= self.gone_after:
                new.next_at = 0.0
                return new
        elif receipt.outcome is Outcome.DROPPED:
            if not receipt.status:
                # Excluded, or part of a trap: decided without a fetch.
                new.next_at = new.fetched_at = 0.0
                return new
            # A redirect, or another content type: the server answered, so that the next run asks again.
            new.fetched_at = at
        before = old.interval_s or (self.interval(old) if self.adaptive else 0.0)
        return self._due(new, old, at, min(max(2 * before, self.min_s), self.max_s))

    def gone_pending(self, state: UrlState | None) -> bool:
        """Whether a watched page that answers 404 or 410 now is fetched again and does not count as gone yet."""
        return state is not None and self.watches(state.seed) and state.missing + 1 < self.gone_after

    def after_lastmod(self, old: UrlState, lastmod: float, now: float) -> UrlState | None:
        """A sitemap or feed names the last change of the page; returns the new state, or None without effect.

        A change since the last fetch makes the page due, at least min_s after that fetch. "No change" delays the next
        fetch. Sites are not always right: see `_lastmod_reliable`.
        """
        if not self.adaptive or not 0 < lastmod <= now + SKEW_S or not old.fetch_no:
            return None
        if not old.next_at and not self._gone(old):
            return None
        lastmod = min(lastmod, now)
        if lastmod <= old.fetched_at:
            return self._unchanged(old, lastmod, now)
        if lastmod <= old.lastmod or _lastmod_wrong(old):
            return None
        due = max(now, old.fetched_at + self.min_s)
        if old.next_at and old.next_at <= due:
            due = old.next_at
        new = msgspec.structs.replace(old, lastmod=lastmod, next_at=due)
        if self._gone(old):
            new.missing = self.gone_after - 1
        return new

    def reapplied(self, old: UrlState, now: float) -> UrlState:
        """The state under the current policy and clock. Call it for every state that is loaded, and for all when the
        job changes. An overdue page stays due, and no page waits longer than its interval."""
        over = self._gone(old) or (old.outcome is Outcome.DROPPED and not old.fetched_at)
        if over or not self.watches(old.seed) or not old.fetch_no:
            next_at = 0.0
        elif self.schedule is not None:
            following = self.schedule.after(now)
            next_at = min(old.next_at, following) if old.next_at else following
        elif not self.recurs:
            next_at = 0.0
        else:
            longest = self.every_s * (1 + JITTER / 2) if self.every_s else self.max_s
            reach = min(old.interval_s or longest, longest)
            next_at = min(old.next_at, now + reach) if old.next_at else now
        fetched_at = min(old.fetched_at, now)
        if not over and self.watches(old.seed) and old.fetch_no and fetched_at < self.refresh_at:
            next_at = min(next_at or self.refresh_at, self.refresh_at)
        if self.adaptive and old.checks:
            self.prior.learn(self.rate(old), old.quiet_s + old.changed_s)
        if (next_at, fetched_at) == (old.next_at, old.fetched_at):
            return old
        return msgspec.structs.replace(old, next_at=next_at, fetched_at=fetched_at)

    # ---- parts

    def _stored(self, new: UrlState, old: UrlState, receipt: Receipt, at: float) -> None:
        """The fetch brought a copy, or confirmed the last one."""
        new.missing = 0
        new.fetched_at = at
        if receipt.etag or receipt.last_modified or not receipt.not_modified:
            new.etag = receipt.etag if len(receipt.etag) <= MAX_ETAG_CHARS else ""
            # A server ignores the date when an ETag is sent (RFC 9110, 13.1.3).
            new.last_modified = "" if new.etag else receipt.last_modified[:MAX_ETAG_CHARS]
        if not receipt.not_modified:
            new.text_hash = receipt.text_hash
        if not old.fetched_at or not (receipt.not_modified or (old.text_hash and receipt.text_hash)):
            return
        changed = not receipt.not_modified and receipt.text_hash != old.text_hash
        if changed:
            new.changed_at = at
            if old.lastmod <= old.fetched_at:
                # An unannounced change: the announcements of this page are not reliable.
                new.lastmod = 0.0
        self._count(new, changed, min(at - old.fetched_at, 2 * self.max_s))

    def _count(self, state: UrlState, changed: bool, elapsed_s: float) -> None:
        """Add a check to the evidence; a clock that was set back in between makes the check worthless."""
        if elapsed_s <= 0:
            return
        if state.checks >= WINDOW:
            _halve(state)
        state.checks += 1
        if changed:
            state.changes += 1
            state.changed_s += elapsed_s
        else:
            state.quiet_s += elapsed_s
        if self.adaptive:
            self.prior.learn(self.rate(state), elapsed_s)

    def _due(self, state: UrlState, old: UrlState, at: float, interval_s: float) -> UrlState:
        """Set the next fetch; `interval_s` is the adaptive interval."""
        if not self.recurs:
            state.next_at, state.interval_s = self.refresh_at if at < self.refresh_at else 0.0, 0.0
            return state
        if self.schedule is not None:
            served = old.next_at if old.next_at <= at + REPEAT_S else 0.0
            state.next_at = self.schedule.after(max(at, served))
            state.interval_s = state.next_at - at
            return state
        if self.every_s:
            low, high = self.every_s * (1 - JITTER / 2), self.every_s * (1 + JITTER / 2)
        else:
            low, high = interval_s * (1 - JITTER), interval_s * (1 + JITTER)
            low, high = max(low, self.min_s), min(high, self.max_s)
        state.interval_s = low + (high - low) * _chance(state)
        state.next_at = at + state.interval_s
        return state

    def _unchanged(self, old: UrlState, lastmod: float, now: float) -> UrlState | None:
        """The site declares the copy current. If reliable, that counts like a 304, until max_s have passed."""
        # A date without a time covers the whole day.
        until = lastmod + DAY_S if lastmod % DAY_S == 0 else lastmod
        if until > old.fetched_at or not old.next_at or not _lastmod_reliable(old):
            return None
        due = min(now + old.interval_s, old.fetched_at + self.max_s)
        return msgspec.structs.replace(old, next_at=due) if due > old.next_at else None

    def _gone(self, state: UrlState) -> bool:
        return state.missing >= self.gone_after


def _lastmod_reliable(state: UrlState) -> bool:
    """The last change was announced and found, and no change was found unannounced."""
    return state.first_at < state.lastmod <= state.changed_at


def _lastmod_wrong(state: UrlState) -> bool:
    """A change was announced, and a later fetch found none. (Sitemaps made on request say "now" for every page.) Until
    a change is found, announcements make nothing due."""
    return state.first_at < state.lastmod <= state.fetched_at and state.changed_at < state.lastmod


def _halve(state: UrlState) -> None:
    half = state.changes // 2
    state.changed_s = state.changed_s * half / state.changes if state.changes else 0.0
    state.quiet_s /= 2
    state.changes, state.checks = half, state.checks // 2


def _chance(state: UrlState) -> float:
    """A number in [0, 1): different for each fetch of each page, the same in each run."""
    mixed = (int.from_bytes(state.url_key[8:], "big") ^ (state.fetch_no * _MIX)) * _MIX
    return (mixed >> 11 & (1 << 53) - 1) / (1 << 53)
