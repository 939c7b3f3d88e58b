"""Quotas: what a job, a site and a tenant may spend in a period, and what they have spent. Pure.

Each quota has an account, "job:NAME", "site:NAME" or "tenant:NAME". A fetch is counted in all accounts of its job that
have a quota. The totals of this frontier are written to its log; `elsewhere` has those of other partitions, as far as
they have reported. Invariant: a total never falls within a period. A job without a quota has no accounts and costs
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from nephila.kernel.documents.field_types import instant_s
from nephila.kernel.documents.job_schema import JobSpec, Quota, QuotaPer
from nephila.kernel.messages import QuotaUse
from nephila.scheduler.tenants.tenants import Tenant


class Period(NamedTuple):
    """The current period of a quota, UTC seconds."""

    start: float
    end: float
    """Infinite for a run."""


def period(per: QuotaPer, utc: float, run: float = 0.0) -> Period:
    """The period at an instant. `run`: what tells one run of a job from the next."""
    if per == "month":
        first = datetime.fromtimestamp(utc, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return Period(first.timestamp(), (first + timedelta(days=32)).replace(day=1).timestamp())
    if per == "day":
        start = utc // 86_400 * 86_400
        return Period(start, start + 86_400)
    return Period(run, math.inf)


class _Account(NamedTuple):
    """A quota of a job, and where it is counted."""

    name: str
    quota: Quota
    run: float


class Room:
    """How many URLs may be without a receipt, so that few are beyond a quota. Owned by `Quotas`; the jobs of the
    account count what they lease."""

    __slots__ = ("ceiling", "in_flight", "places")

    def __init__(self) -> None:
        self.in_flight = 0
        self.ceiling = math.inf
        """Fetches of this frontier, counted ones included, until it knows more of other partitions."""
        self.places = math.inf
        """Largest `in_flight`."""


class UsedUp(NamedTuple):
    """A quota that is used up."""

    text: str
    until: float
    """UTC; infinite for a run."""


class Quotas:
    """The accounts of one frontier. `count` is O(quotas of a job)."""

    def __init__(self, tenants: Mapping[str, Tenant], partitions: int = 1) -> None:
        """`partitions` is the number of frontiers that fetch for the same jobs."""
        self._tenants = tenants
        self._partitions = partitions
        self._rooms: dict[str, Room] = {}
        """Account → its room."""
        self._accounts: dict[str, tuple[_Account, ...]] = {}
        """Job → its accounts; only jobs that have some."""
        self._uses: dict[str, QuotaUse] = {}
        self._elsewhere: dict[str, QuotaUse] = {}
        self.next_check = math.inf
        """UTC instant at which the jobs are compared with their quotas again: the end of a period for which a job
        waits, or at once after a change."""

    def put(self, uid: str, job: JobSpec) -> bool:
        """Take over the quotas of a job; returns whether it has any."""
        run = instant_s(job.recrawl.refresh_at) if job.recrawl is not None and job.recrawl.refresh_at else 0.0
        tenant = self._tenants.get(job.tenant)
        quotas = [(account_of(uid), job.quota)]
        if job.site is not None:
            quotas.append((f"site:{job.site.name}", job.site.quota))
        if tenant is not None:
            quotas.append((f"tenant:{job.tenant}", tenant.quota))
        accounts = tuple(_Account(name, quota, run) for name, quota in quotas if _limits(quota))
        self._accounts.pop(uid, None)
        if accounts:
            self._accounts[uid] = accounts
            for account in accounts:
                self._rooms.setdefault(account.name, Room())
            self.check_at(-math.inf)
        return bool(accounts)

    def rooms(self, uid: str) -> tuple[Room, ...]:
        """The rooms of a job's accounts; empty without a quota."""
        return tuple(self._rooms[account.name] for account in self._accounts.get(uid, ()))

    def renew(self, uid: str, utc: float) -> None:
        """Give this frontier its share of what the quotas of a job leave, as far as is known."""
        for account in self._accounts.get(uid, ()):
            self._renew(account, utc)

    def _renew(self, account: _Account, utc: float) -> None:
        room = self._rooms[account.name]
        total = self.total(account, utc)
        left = _fetches_left(account.quota, total)
        mine = self._current(self._uses, account, utc).pages
        if self._partitions > 1:
            left -= total.in_flight + room.in_flight
            mine += room.in_flight
        room.ceiling = mine + (max(left / self._partitions, 1.0) if left > 0 else 0.0)
        self._place(account, utc)

    def _place(self, account: _Account, utc: float) -> None:
        room = self._rooms[account.name]
        room.places = room.ceiling - self._current(self._uses, account, utc).pages

    def remove(self, uid: str) -> None:
        """A job was deleted. What it has spent still counts for its site and its tenant."""
        self._accounts.pop(uid, None)
        for account in own_accounts(uid):
            self._uses.pop(account, None)
            self._rooms.pop(account, None)

    def tenants(self) -> list[str]:
        """Names of the tenants in the settings."""
        return list(self._tenants)

    def used_shares(self, utc: float) -> dict[str, float]:
        """Tenant with a quota → share of it that is used up in this period, over all partitions as far as known; the
        largest of pages, bytes and browser time."""
        return {
            name: _used_share(tenant.quota, self.total(_Account(f"tenant:{name}", tenant.quota, 0.0), utc))
            for name, tenant in self._tenants.items()
            if _limits(tenant.quota)
        }

    def share(self, tenant: str) -> float:
        """Share of a tenant in the fetches."""
        tenant_of = self._tenants.get(tenant)
        return tenant_of.share if tenant_of is not None else 1.0

    def jobs(self) -> Iterable[str]:
        """Jobs that have quotas."""
        return self._accounts

    def count(self, uid: str, size_bytes: int, browser_s: float, utc: float) -> list[QuotaUse]:
        """Count one fetch of a page; returns the new totals, which the log takes over."""
        changed = []
        for account in self._accounts.get(uid, ()):
            use = self._current(self._uses, account, utc)
            use.pages += 1
            use.bytes += size_bytes
            use.browser_s += browser_s
            if self._partitions == 1:
                self._renew(account, utc)
            else:
                self._place(account, utc)
            changed.append(use)
        return changed

    def count_browser(self, uid: str, browser_s: float) -> QuotaUse:
        """Count the browser time of a fetch of a job, with or without a quota; returns the new total."""
        account = _browser_account(uid)
        use = self._uses.get(account)
        if use is None:
            use = self._uses[account] = QuotaUse(account)
        use.browser_s += browser_s
        return use

    def browser_s(self, uid: str) -> float:
        """Browser time of a job since it was created."""
        use = self._uses.get(_browser_account(uid))
        return use.browser_s if use is not None else 0.0

    def used_up(self, uid: str, utc: float) -> UsedUp | None:
        """The first quota of a job that is used up; of several the one that lasts longest."""
        longest: UsedUp | None = None
        for account in self._accounts.get(uid, ()):
            total = self.total(account, utc)
            words = _exceeded(account.quota, total)
            if words:
                end = period(account.quota.per, utc, account.run).end
                if longest is None or end > longest.until:
                    kind, _, name = account.name.partition(":")
                    until = "" if end == math.inf else f", until {datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}"
                    longest = UsedUp(
                        f"the quota of the {kind} {name}, {words} per {account.quota.per}, is used up{until}",
                        end,
                    )
        return longest

    def total(self, account: _Account, utc: float) -> QuotaUse:
        """The use of an account over all partitions, as far as known."""
        mine, others = self._uses.get(account.name), self._elsewhere.get(account.name)
        start = period(account.quota.per, utc, account.run).start
        total = QuotaUse(account.name, start)
        for use in (mine, others):
            if use is not None and use.since == start:
                add(total, use)
        return total

    def uses(self, uid: str, utc: float) -> list[QuotaUse]:
        """The use of the quotas of a job in this frontier, and the use in flight."""
        return [
            msgspec.structs.replace(
                self._current(self._uses, account, utc), in_flight=max(self._rooms[account.name].in_flight, 0)
            )
            for account in self._accounts.get(uid, ())
        ]

    def report(self) -> list[QuotaUse]:
        """All totals, with what is in flight."""
        totals = []
        for use in self._uses.values():
            room = self._rooms.get(use.account)
            totals.append(use if room is None else msgspec.structs.replace(use, in_flight=max(room.in_flight, 0)))
        return totals

    def set_elsewhere(self, uses: Mapping[str, QuotaUse]) -> bool:
        """Take over what other partitions have spent; returns whether anything is new."""
        changed = self._elsewhere != uses
        self._elsewhere = dict(uses)
        return changed

    def check_at(self, at: float) -> None:
        """Compare the jobs with their quotas at this instant, UTC."""
        self.next_check = min(self.next_check, at)

    def checked(self) -> None:
        """All jobs were compared with their quotas."""
        self.next_check = math.inf

    def restore(self, uses: Iterable[QuotaUse]) -> None:
        """Totals of the log or a snapshot; later ones replace earlier ones."""
        for use in uses:
            self._uses[use.account] = use

    def dump(self) -> list[QuotaUse]:
        """All totals, for a snapshot."""
        return list(self._uses.values())

    def forget_uses(self) -> None:
        """Another partition counts what was spent here."""
        self._uses.clear()

    @staticmethod
    def _current(uses: dict[str, QuotaUse], account: _Account, utc: float) -> QuotaUse:
        use = uses.get(account.name)
        start = period(account.quota.per, utc, account.run).start
        if use is None or use.since != start:
            use = uses[account.name] = QuotaUse(account.name, start)
        return use


def account_of(uid: str) -> str:
    """The account of a job's own quota."""
    return f"job:{uid}"


def _browser_account(uid: str) -> str:
    return f"browser:{uid}"


def own_accounts(uid: str) -> tuple[str, str]:
    """The accounts that end with the job."""
    return account_of(uid), _browser_account(uid)


def add(total: QuotaUse, use: QuotaUse) -> None:
    """Add the numbers of a use."""
    total.pages += use.pages
    total.bytes += use.bytes
    total.browser_s += use.browser_s
    total.in_flight += use.in_flight


def _limits(quota: Quota) -> bool:
    return bool(quota.pages or quota.bytes or quota.browser_seconds)


def _fetches_left(quota: Quota, use: QuotaUse) -> float:
    """Fetches that a quota leaves, where each costs what the ones before cost on average."""
    left = quota.pages - use.pages if quota.pages else math.inf
    for limit, used in ((quota.bytes, use.bytes), (quota.browser_seconds, use.browser_s)):
        if limit and used:
            left = min(left, (limit - used) * use.pages / used)
    return left


def _used_share(quota: Quota, use: QuotaUse) -> float:
    pairs = ((quota.pages, use.pages), (quota.bytes, use.bytes), (quota.browser_seconds, use.browser_s))
    return max(used / limit for limit, used in pairs if limit)


def _exceeded(quota: Quota, use: QuotaUse) -> str:
    if quota.pages and use.pages >= quota.pages:
        return f"{quota.pages:,} pages"
    if quota.bytes and use.bytes >= quota.bytes:
        return f"{quota.bytes:,} bytes"
    if quota.browser_seconds and use.browser_s >= quota.browser_seconds:
        return f"{quota.browser_seconds:g} browser-seconds"
    return ""
