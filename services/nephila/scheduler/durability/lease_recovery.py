"""Lease recovery: leases continue when another scheduler takes the partition over. Pure.

A leased URL stays leased until an outcome, a receipt or the end of its lease. Its host stays in flight, and its page or
row is waited for. So a takeover causes neither two requests to a server at once nor a gap that is too short. Messages
that the previous owner may have committed and not published are published again: rows always (a repeated row changes
nothing), requests where the log of requests does not have them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nephila.kernel.messages import LeasedUrl
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.frontier.in_flight import ENDING, FETCHED, LEASED, Key, Outstanding
from nephila.scheduler.frontier.queue_entry import Entry, unpack

CATCH_UP_S = 30.0
"""Least remaining time of a lease at a takeover."""


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
            out.requests.append((frontier.partitions[0].number, request))
        if frontier.store.ready_at(waiting.host.number) is not None:
            # It was in the heap when the snapshot was taken.
            frontier.store.unschedule(waiting.host.number)
    return out


def _waiting(frontier: Frontier, key: Key, leased: LeasedUrl, urls: Mapping[Key, tuple[int, bytes]]) -> Outstanding:
    packed = urls.get(key)
    if packed is not None:
        host, entry = frontier.hosts.get(packed[0]), unpack(packed[1])
    else:
        host = frontier.hosts.get_or_create(leased.host)
        entry = Entry(leased.url_key, fetch_no=leased.fetch_no, attempts=leased.attempt - 1, url=leased.url)
    state = LEASED
    if leased.record is not None:
        state = ENDING
    elif leased.landed:
        state = FETCHED
    return Outstanding(
        key[0], host, entry, leased.attempt, leased.address, state, leased.lease_until, leased.receipt, leased.record
    )
