"""Leader election by a Lease (coordination.k8s.io/v1), as client-go does it.

One holder renews the Lease. The others wait until it has not changed for its duration, by their own clock: clocks of
machines are never compared. A leader that could not renew for two thirds of the duration leads no longer, before
another process can. `Election` is pure; `Leadership` is the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import sleep

from nephila_cluster.operator.cluster import Conflict, micro_timestamp

log = logging.getLogger(__name__)


class Leases(Protocol):
    """The part of `Cluster` that has Leases."""

    async def lease(self, name: str) -> dict[str, Any] | None: ...

    async def put_lease(self, name: str, spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]: ...


class Election:
    """The state of one candidate."""

    def __init__(self, identity: str, duration_s: float) -> None:
        self.identity = identity
        self.duration_s = duration_s
        self._seen: tuple[object, ...] = ()
        """Holder and time of the Lease when it was last different."""
        self._seen_at = 0.0
        self._renewed_at = float("-inf")

    @property
    def retry_s(self) -> float:
        """Interval of attempts and renewals."""
        return self.duration_s / 7

    def leads(self, monotonic: float) -> bool:
        """Whether this candidate may act as the leader."""
        return monotonic - self._renewed_at < self.duration_s * 2 / 3

    def next(self, lease: Mapping[str, Any] | None, monotonic: float, now: float) -> dict[str, Any] | None:
        """The spec to write; None: another candidate holds the Lease."""
        spec = (lease or {}).get("spec") or {}
        seen = (spec.get("holderIdentity"), spec.get("renewTime"))
        if lease is None or seen != self._seen:
            self._seen, self._seen_at = seen, monotonic
        holder = spec.get("holderIdentity") or ""
        expired = monotonic - self._seen_at >= float(spec.get("leaseDurationSeconds") or self.duration_s)
        if holder not in ("", self.identity) and not expired:
            return None
        taken = holder != self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self.duration_s)),
            "acquireTime": micro_timestamp(now) if taken else spec.get("acquireTime"),
            "renewTime": micro_timestamp(now),
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + bool(taken and lease is not None),
        }

    def wrote(self, lease: Mapping[str, Any], begun: float) -> None:
        """The Lease was written; `begun`: monotonic time before the request."""
        spec = lease["spec"]
        self._seen, self._seen_at = (spec.get("holderIdentity"), spec.get("renewTime")), begun
        self._renewed_at = begun


class Leadership:
    """One candidate while it runs."""

    def __init__(self, leases: Leases, name: str, identity: str, duration_s: float, clock: Clock) -> None:
        self._leases = leases
        self._name = name
        self._clock = clock
        self._election = Election(identity, duration_s)

    @property
    def leads(self) -> bool:
        """Whether this process may act as the leader."""
        return self._election.leads(self._clock.monotonic())

    async def acquire(self) -> None:
        """Return when this process leads."""
        while not await self._attempt():
            await sleep(self._clock, self._election.retry_s)
        log.info("this process leads", extra={"lease": self._name, "identity": self._election.identity})

    async def hold(self) -> None:
        """Renew until this process leads no longer."""
        while self.leads:
            await sleep(self._clock, self._election.retry_s)
            await self._attempt()

    async def release(self) -> None:
        """Let another candidate lead at once."""
        if not self.leads:
            return
        try:
            lease = await self._leases.lease(self._name)  # a renewal that was cancelled may have been written
            if lease is not None and lease["spec"].get("holderIdentity") == self._election.identity:
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._leases.put_lease(self._name, spec, lease)
        except UserError as error:
            log.warning("the Lease is not released: %s", error)

    async def _attempt(self) -> bool:
        try:
            lease = await self._leases.lease(self._name)
            begun = self._clock.monotonic()
            spec = self._election.next(lease, begun, self._clock.now())
            if spec is None:
                return False
            self._election.wrote(await self._leases.put_lease(self._name, spec, lease), begun)
            return True
        except Conflict:
            return False
        except UserError as error:
            log.warning("the Lease %s cannot be renewed: %s", self._name, error)
            return False
