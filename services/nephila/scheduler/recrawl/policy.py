"""When a page is fetched again. Pure: what was known, what a fetch brought and an instant in, what is known now out.

A `Policy` is one of three: adaptive within [min, max], a fixed interval, or the instants of a cron expression. Adaptive
intervals follow from the rate of change r (rates.py) as

    interval = sqrt(min² + 2 k min / r),  k = 0.4

which is, to a few per cent, the allocation that makes the 95th percentile of staleness smallest for a given number of
fetches (docs/adr/0011): a page that always changes is fetched every `min`, a slow one in proportion to the square root
of the time between its changes. Invariants: an adaptive or fixed `next_at` lies at most one `interval_s` after the
instant that set it, which bounds what a clock that jumped can do; a failure never loses what is known of the page.

Instants are seconds since 1970 UTC. What the other pages of the job have taught is kept in `Policy.prior`, a view of
their states.
"""

from __future__ import annotations

import math

import msgspec

from nephila.kernel.documents.cron import Schedule
from nephila.kernel.messages import Outcome, Receipt, Recrawl, UrlState
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.recrawl.change_rate import DAY_S, Prior, rate_of

PRICE = 0.4
"""k above: what a fetch is worth against time spent staler than min."""
MIN_S = 3_600.0
MAX_S = 30 * DAY_S
"""Bounds where only one is given."""
SHORTEST_S = 1.0
EARLY = 0.1
"""A run that fetches what is due takes what would be due within this share of its interval: of a daily interval and a
daily run, each would otherwise miss what the jitter has put a minute later."""
GONE_AFTER = 3
WINDOW = 64
"""Checks after which all evidence is halved: rates change, and 32 checks tell them to a fifth."""
JITTER = 0.1
"""Pages that were fetched together come back spread over this share of their interval, to either side."""
REPEAT_S = 7_200.0
"""A clock set back by less than this does not repeat a run of cron."""
SKEW_S = DAY_S
"""A lastmod further in the future than this is nonsense."""
MAX_ETAG_CHARS = 200
"""A longer validator is not kept: memory is worth more than its 304s."""

_GONE = (404, 410)
_MIX = 0x9E3779B97F4A7C15


class RecrawlPolicy:
    """When the pages of one job are fetched again."""

    def __init__(self, recrawl: Recrawl | None) -> None:
        """Raises `UsageError` that names the field."""
        recrawl = recrawl or Recrawl()
        for name in ("min_s", "max_s", "every_s"):
            value = getattr(recrawl, name)
            if not (value == 0 or (math.isfinite(value) and value >= SHORTEST_S)):
                raise UsageError(f"recrawl.{name[:-2]}: {value:g} s is not a time of at least {SHORTEST_S:g} s")
        if recrawl.every_s and recrawl.cron:
            raise UsageError("recrawl.every and recrawl.cron exclude each other; leave one out")
        self.prior = Prior()
        self.monitor = recrawl.monitor
        self.gone_after = recrawl.gone_after or GONE_AFTER
        self.every_s = recrawl.every_s
        try:
            self.schedule = Schedule(recrawl.cron) if recrawl.cron else None
        except ValueError as error:
            raise UsageError(f"recrawl.cron: {recrawl.cron[:50]!r} {error}") from None
        self.adaptive = bool((recrawl.min_s or recrawl.max_s) and not self.every_s and not self.schedule)
        self.min_s = recrawl.min_s or min(MIN_S, recrawl.max_s or MIN_S)
        self.max_s = recrawl.max_s or max(MAX_S, self.min_s)
        if self.min_s > self.max_s:
            raise UsageError(f"recrawl.min: {self.min_s:g} s is longer than recrawl.max, {self.max_s:g} s")

    @property
    def active(self) -> bool:
        """Whether anything is ever fetched again."""
        return self.adaptive or bool(self.every_s) or self.schedule is not None

    def watches(self, seed: bool) -> bool:
        """Whether a URL of this kind is fetched again."""
        return self.active and (seed or not self.monitor)

    def rate(self, state: UrlState) -> float:
        """Estimated changes per second, above 0."""
        return rate_of(state, self.prior)

    def interval(self, state: UrlState) -> float:
        """Seconds between fetches that the page's rate asks for, in [min_s, max_s]."""
        wanted = math.sqrt(self.min_s**2 + 2 * PRICE * self.min_s / self.rate(state))
        return min(max(wanted, self.min_s), self.max_s)

    def refresh_due(self, state: UrlState, now: float) -> bool:
        """Whether a run that fetches once what is due takes this URL: without a policy, all but what is gone."""
        if self._gone(state) or not self.active:
            return not self._gone(state)
        return self.watches(state.seed) and 0 < state.next_at <= now + EARLY * state.interval_s

    def adopted(self, state: UrlState) -> UrlState:
        """The state of a URL whose fetch was not watched: as if that fetch had been the first that was."""
        if not self.active:
            return state
        receipt = Receipt(state.url_key, state.fetch_no, state.outcome, state.text_hash, False, state.etag)
        receipt.last_modified, receipt.status = state.last_modified, _GONE[0] if state.missing else 0
        new = self.after(msgspec.structs.replace(state, fetch_no=0, fetched_at=0.0), receipt, state.fetched_at)
        new.missing = state.missing
        return new

    # ---- what happened

    def after(self, old: UrlState, receipt: Receipt, at: float) -> UrlState:
        """The state after a fetch that ended `at` this instant; a state with fetch_no 0 has never been fetched.

        Call it only for URLs that are watched. A receipt of an earlier fetch changes nothing. O(1), about 5 µs.
        """
        if receipt.fetch_no < old.fetch_no:
            return old
        new = msgspec.structs.replace(
            old, fetch_no=receipt.fetch_no, outcome=receipt.outcome, first_at=old.first_at or at
        )
        if receipt.outcome is Outcome.STORED:
            self._stored(new, old, receipt, at)
            return self._due(new, old, at, self.interval(new) if self.adaptive else 0.0)
        if receipt.status in _GONE:
            new.missing += 1
            if new.missing >= self.gone_after:
                new.next_at = 0.0
                return new
        elif receipt.outcome is Outcome.DROPPED and not receipt.status:
            # Excluded, or part of a trap: the decision was ours, and nobody was asked.
            new.next_at = 0.0
            return new
        before = old.interval_s or (self.interval(old) if self.adaptive else 0.0)
        return self._due(new, old, at, min(max(2 * before, self.min_s), self.max_s))

    def after_lastmod(self, old: UrlState, lastmod: float, now: float) -> UrlState | None:
        """A sitemap or feed says when the page changed last; the new state, or None when it makes no difference.

        A change since our last fetch makes the page due, min_s after that fetch at the earliest. That nothing has
        changed puts the next fetch off. Sites say all sorts of things: see `_lastmod_reliable`.
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
        """The state under this policy, which may have changed since, by a clock that may have been set: call it for
        every state that is loaded and when the job changes. What is overdue stays due; nothing is frozen."""
        over = self._gone(old) or (old.outcome is Outcome.DROPPED and not old.next_at)
        if over or not self.watches(old.seed) or not old.fetch_no:
            next_at = 0.0
        elif self.schedule is not None:
            following = self.schedule.after(now)
            next_at = min(old.next_at, following) if old.next_at else following
        else:
            longest = self.every_s * (1 + JITTER / 2) if self.every_s else self.max_s
            reach = min(old.interval_s or longest, longest)
            next_at = min(old.next_at, now + reach) if old.next_at else now
        fetched_at = min(old.fetched_at, now)
        if self.adaptive and old.checks:
            self.prior.learn(self.rate(old), old.quiet_s + old.changed_s)
        if (next_at, fetched_at) == (old.next_at, old.fetched_at):
            return old
        return msgspec.structs.replace(old, next_at=next_at, fetched_at=fetched_at)

    # ---- parts

    def _stored(self, new: UrlState, old: UrlState, receipt: Receipt, at: float) -> None:
        """A copy came, or the word that the last one holds."""
        new.missing = 0
        new.fetched_at = at
        if receipt.etag or receipt.last_modified or not receipt.not_modified:
            new.etag = receipt.etag if len(receipt.etag) <= MAX_ETAG_CHARS else ""
            # A server that has an ETag does not look at the date (RFC 9110, 13.1.3).
            new.last_modified = "" if new.etag else receipt.last_modified[:MAX_ETAG_CHARS]
        if not receipt.not_modified:
            new.text_hash = receipt.text_hash
        if not old.fetched_at or not (receipt.not_modified or (old.text_hash and receipt.text_hash)):
            return
        changed = not receipt.not_modified and receipt.text_hash != old.text_hash
        if changed:
            new.changed_at = at
            if old.lastmod <= old.fetched_at:
                # It changed, and its site has not said so: what it says of this page is worth nothing.
                new.lastmod = 0.0
        self._count(new, changed, min(at - old.fetched_at, 2 * self.max_s))

    def _count(self, state: UrlState, changed: bool, elapsed_s: float) -> None:
        """Add a check to the evidence; a clock that was set back in between makes it worthless."""
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
        """Set the next fetch; `interval_s` is what an adaptive policy wants."""
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
        """The site says that our copy is the last: believed, it is as good as a 304 until max_s have passed."""
        # A date without a time may mean any time of that day.
        until = lastmod + DAY_S if lastmod % DAY_S == 0 else lastmod
        if until > old.fetched_at or not old.next_at or not _lastmod_reliable(old):
            return None
        due = min(now + old.interval_s, old.fetched_at + self.max_s)
        return msgspec.structs.replace(old, next_at=due) if due > old.next_at else None

    def _gone(self, state: UrlState) -> bool:
        return state.missing >= self.gone_after


def _lastmod_reliable(state: UrlState) -> bool:
    """The last change was announced and found, and none was found that had not been announced."""
    return state.first_at < state.lastmod <= state.changed_at


def _lastmod_wrong(state: UrlState) -> bool:
    """A change was announced, the page was fetched after it, and there was none (sitemaps made at each request say
    "now" for every page). Until a change is found nobody is hurried any more."""
    return state.first_at < state.lastmod <= state.fetched_at and state.changed_at < state.lastmod


def _halve(state: UrlState) -> None:
    half = state.changes // 2
    state.changed_s = state.changed_s * half / state.changes if state.changes else 0.0
    state.quiet_s /= 2
    state.changes, state.checks = half, state.checks // 2


def _chance(state: UrlState) -> float:
    """In [0, 1), another for each fetch of each page, the same in each run."""
    mixed = (int.from_bytes(state.url_key[8:16], "big") ^ (state.fetch_no * _MIX)) * _MIX
    return (mixed >> 11 & (1 << 53) - 1) / (1 << 53)
