"""Shares of tenants and jobs: first between tenants and jobs without a tenant, then between the jobs of a tenant. Pure.

Each choice is charged; `refund` undoes it. Invariant: the shares hold among the candidates that one `Shares` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from nephila.scheduler.tenants.fair_share import FairShare
from nephila.scheduler.tenants.tenants import tenants

_TENANT = "\1"
"""Prefix of tenants among the keys; no name of a job begins with it."""
_SPARE = 64


class Sharer(Protocol):
    """The state of a job from which its share follows."""

    uid: str
    tenant: str
    weight: float


class Shares:
    """Deficit round-robin on two levels. `next` is O(candidates)."""

    def __init__(self, tenant_share: Callable[[str], float]) -> None:
        """`tenant_share` returns the share of a tenant in the settings."""
        self._tenant_share = tenant_share
        self._top: FairShare[str] = FairShare()
        self._inside: dict[str, FairShare[str]] = {}
        """Tenant → shares of its jobs in what the tenant gets."""

    def next(self, candidates: Iterable[Sharer]) -> str:
        """Choose one of the jobs that have work, at least one, and charge it one fetch; returns its uid."""
        tenants: dict[str, dict[str, float]] = {}
        weights: dict[str, float] = {}
        for job in candidates:
            if job.tenant:
                tenants.setdefault(_TENANT + job.tenant, {})[job.uid] = job.weight
            else:
                weights[job.uid] = job.weight
        for key in tenants:
            weights[key] = self._tenant_share(key.removeprefix(_TENANT))
        chosen = _charge(self._top, weights)
        if chosen in tenants:
            return _charge(self._inside.setdefault(chosen, FairShare()), tenants[chosen])
        return chosen

    def refund(self, job: Sharer) -> None:
        """Undo a charge of a job that used no fetch."""
        if job.tenant:
            self._top.refund(_TENANT + job.tenant)
            if (inside := self._inside.get(_TENANT + job.tenant)) is not None:
                inside.refund(job.uid)
        else:
            self._top.refund(job.uid)


def shares_of(entries: Iterable[str]) -> Shares:
    """By the tenants of the settings; any other has the share 1."""
    by_name = tenants(entries)
    return Shares(lambda tenant: by_name[tenant].share if tenant in by_name else 1.0)


def _charge(shares: FairShare[str], candidates: dict[str, float]) -> str:
    for key, weight in candidates.items():
        shares.add_changed(key, weight)
    if len(shares) > 2 * len(candidates) + _SPARE:
        for key in shares.jobs():
            if key not in candidates:
                shares.remove(key)
    chosen = shares.next(candidates)
    assert chosen is not None
    return chosen
