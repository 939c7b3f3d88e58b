"""Leases that continue when another scheduler takes the partition over. Pure.

A leased URL stays leased until an outcome, a receipt or the end of its lease. Its host stays in flight, and its page or
row is waited for. So a takeover causes neither two requests to a server at once nor a gap that is too short. Messages
that the previous owner may have committed and not published are published again: rows always (a repeated row changes
nothing), requests where the log of requests does not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nephila.kernel.messages import LeasedUrl
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.frontier.in_flight import ENDING, FETCHED, LEASED, Key, Outstanding
from nephila.scheduler.jobs.queue_entry import unpack

CATCH_UP_S = 30.0
"""Least remaining time of a lease at a takeover."""


class ContinuedLeases:
    def __init__(
        self, dispatcher: Dispatcher, restored: Restored, take: Callable[[Key, str], tuple[int, bytes] | None]
    ) -> None:
        self._dispatcher = dispatcher
        self._found = restored
        self._take = take

    def snapshot(self, leased: LeasedUrl) -> None:
        self._found.leases[leased.job, leased.url_key] = leased

    def commit(self, leased: LeasedUrl) -> None:
        """Returns the state of an outstanding URL; the owner waits for it from now on."""
        leases = self._found.leases
        key = (leased.job, leased.url_key)
        if leased.job not in self._dispatcher.frontier.jobs:
            if leased.landed:
                leases.pop(key, None)
            else:
                leases[key] = leased
            return
        later = (leased.landed and leased.record is None) or leased.receipt is not None
        if later and key not in self._found.outstanding:
            return  # it has ended in the meantime
        taken = self._take(key, leased.host)
        if taken is not None:
            self._found.outstanding[key] = taken
            leases[key] = leased

    def finish(self, now: float) -> TurnOutput:
        return recover_leases(self._dispatcher, self._found.leases, self._found.outstanding, now)


def recover_leases(
    dispatcher: Dispatcher, leased_urls: Mapping[Key, LeasedUrl], urls: Mapping[Key, tuple[int, bytes]], now: float
) -> TurnOutput:
    """Restore all outstanding URLs; returns the messages that may not have been published. O(outstanding URLs)."""
    frontier = dispatcher.frontier
    out = TurnOutput()
    leases = []
    for key, leased in leased_urls.items():
        waiting = _waiting(frontier, key, leased, urls)
        frontier.in_flight.restore(waiting)
        if waiting.state is LEASED:
            leases.append((leased.lease_until - frontier.time.utc_offset, key, waiting))
        elif waiting.record is not None:
            out.records.append((frontier.partitions[0].number, waiting.record))
    for until, key, waiting in sorted(leases, key=lambda lease: lease[0]):
        # Outcomes that arrived while the partition had no owner are read before the lease ends. A wrong clock of the
        # previous owner cannot make it longer than a new lease.
        until = min(max(until, now + CATCH_UP_S), now + frontier.config.start_by_s + frontier.config.lease_s)
        request = dispatcher.resume(waiting, until, now)
        if not key[0] or key[0] in frontier.jobs:
            out.requests.append((frontier.partitions[waiting.host.partition].number, request))
        if frontier.store.ready_at(waiting.host.number) is not None:
            # It was in the heap when the snapshot was taken.
            frontier.store.unschedule(waiting.host.number)
    return out


def _waiting(frontier: Frontier, key: Key, leased: LeasedUrl, urls: Mapping[Key, tuple[int, bytes]]) -> Outstanding:
    number, packed = urls.get(key, (-1, leased.entry))
    host = frontier.hosts.get(number) if number >= 0 else frontier.hosts.get_or_create(leased.host)
    entry = unpack(packed)
    state = LEASED
    if leased.record is not None:
        state = ENDING
    elif leased.landed:
        state = FETCHED
    return Outstanding(
        key[0], host, entry, leased.attempt, leased.address, state, leased.lease_until, leased.receipt, leased.record
    )
