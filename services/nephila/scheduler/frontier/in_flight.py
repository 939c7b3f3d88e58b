"""URLs in flight: taken from their queue, without a receipt yet. One object owns all that such a URL counts for. Pure.

An event moves a URL from one state to the next by the table `MOVES`; an event that the table does not have in the
present state raises `ForbiddenMoveError`. Nothing else changes the state of a URL in flight, the leases, the fetches of
a host, the leases of a job and the fetches of an address.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Mapping
from enum import IntEnum

import msgspec

from nephila.kernel.messages import LeasedUrl, Receipt, Record, Render
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import Host, QueueSlot
from nephila.scheduler.frontier.pending_commit import PendingCommit
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.frontier.turn_time import TurnTime
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import Entry, pack
from nephila.scheduler.politeness.address_queue import AddressQueue

Key = tuple[str, bytes]
DELETED = "\0"
"""Prefix of the uid of a deleted job, on URLs of it that are still being fetched."""


class LifeState(IntEnum):
    """State of a URL in the scheduler. In the first two and the last two it is not in flight and has no object."""

    QUEUED = 0
    """In the queue of its host."""
    DELAYED = 1
    """Waits for an instant outside the queue."""
    LEASED = 2
    """Its request is published. An outcome or the end of the lease comes."""
    ANSWERED = 3
    """Its outcome is being applied. No URL is in this state between two turns."""
    FETCHED = 4
    """Its page is between downloader and storage."""
    ENDING = 5
    """Its terminal row is between scheduler and storage."""
    ENDED = 6
    """Its row is durable."""
    DROPPED = 7
    """It has no row: a robots.txt, or a URL of a deleted job."""


class LifeEvent(IntEnum):
    """What happens to a URL."""

    LEASE = 0
    """Its host is ready, and a request is made."""
    OUTCOME = 1
    """The fetch has ended, or the lease has expired."""
    PAGE = 2
    """The outcome has a page."""
    REQUEUE = 3
    """It is fetched again: another try, another spelling, a lost page."""
    DELAY = 4
    """It is fetched again later."""
    NO_PAGE = 5
    """It ends without a page: never dialled, failed, redirected, or its page was lost too often."""
    RECEIPT = 6
    """Its row is durable."""
    DROP = 7
    """It needs no row."""
    DUE = 8
    """Its instant has come: a delay is over, or a recrawl is due."""


# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
QUEUED, DELAYED, LEASED, ANSWERED, FETCHED, ENDING, ENDED, DROPPED = LifeState
LEASE, OUTCOME, PAGE, REQUEUE, DELAY, NO_PAGE, RECEIPT, DROP, DUE = LifeEvent


class ForbiddenMoveError(Exception):
    """An error of the program: the event cannot happen in that state."""


class _After(dict[LifeState, LifeState]):
    """State before an event → state after it. Any other state before raises `ForbiddenMoveError`."""

    def __init__(self, event: LifeEvent, after: Mapping[LifeState, LifeState]) -> None:
        super().__init__(after)
        self._event = event

    def __missing__(self, before: LifeState) -> LifeState:
        raise ForbiddenMoveError(f"{self._event.name} cannot happen to a URL that is {before.name}")


_TABLE: dict[LifeEvent, dict[LifeState, LifeState]] = {
    LEASE: {QUEUED: LEASED},
    OUTCOME: {LEASED: ANSWERED},
    PAGE: {ANSWERED: FETCHED},
    REQUEUE: {ANSWERED: QUEUED, FETCHED: QUEUED},
    DELAY: {ANSWERED: DELAYED},
    NO_PAGE: {QUEUED: ENDING, ANSWERED: ENDING, FETCHED: ENDING},
    # A receipt that comes before the outcome is kept.
    RECEIPT: {LEASED: LEASED, FETCHED: ENDED, ENDING: ENDED},
    DROP: {ANSWERED: DROPPED, FETCHED: DROPPED, ENDING: DROPPED},
    # Without an object: the heap of delayed URLs and the due tables.
    DUE: {DELAYED: QUEUED, ENDED: QUEUED},
}
MOVES = {event: _After(event, after) for event, after in _TABLE.items()}
"""Event → state before → state after. A look-up without a call: each page has four events."""
_AFTER_LEASE, _AFTER_OUTCOME, _AFTER_PAGE, _AFTER_RECEIPT = (MOVES[event] for event in (LEASE, OUTCOME, PAGE, RECEIPT))
PAGE_STATES = (LEASED, ANSWERED, FETCHED)
"""States that count as a lease of the job: the fetch may bring a page of its budget."""


class Outstanding(msgspec.Struct):
    job: str
    host: Host
    entry: Entry
    attempt: int
    address: str = ""
    """Server address that the fetch counts against; empty when it was not known."""
    state: LifeState = QUEUED
    lease_until: float = 0.0
    """`lease_until` of its request (UTC), which names the lease. A takeover may prolong the lease; the name stays."""
    receipted: Receipt | None = None
    """The receipt, when it came before the outcome."""
    record: Record | None = None
    """Its terminal row, where the log must hold it until the receipt."""
    slot: float = 1.0
    """Part of a slot of the downloaders that its lease counts for (`Lead.slot`)."""

    def move(self, event: LifeEvent) -> LifeState:
        """Change the state by an event; returns the state before. Raises `ForbiddenMoveError`."""
        before = self.state
        self.state = MOVES[event][before]
        return before


class InFlight:
    """The URLs in flight of one frontier. Each operation is O(1) unless stated."""

    def __init__(
        self,
        config: SchedulerConfig,
        jobs: Mapping[str, Job],
        addresses: AddressQueue[QueueSlot],
        pending: PendingCommit,
        time: TurnTime,
        *,
        restart: RestartPolicy,
        consumed_until: float,
    ) -> None:
        """Where leases continue after a restart, the log describes these URLs for the next owner."""
        self.urls: dict[Key, Outstanding] = {}
        self.leases: OrderedDict[Key, float] = OrderedDict()
        """When each lease expires, in that order: all leases have the same length. These are the requests without
        outcome."""
        self.slots = 0.0
        """Slots of the downloaders for which the leases count."""
        self.without_receipt: OrderedDict[Key, float] = OrderedDict()
        """When the outcome of each URL without receipt came, in that order."""
        self.consumed_until = [consumed_until, consumed_until]
        """Requests that were handed out up to this instant have been consumed, without and with a browser; infinite in
        one program."""
        self._config = config
        self._jobs = jobs
        self._addresses = addresses
        self._pending = pending
        self._time = time
        self._leases_continue = restart is RestartPolicy.LEASES_CONTINUE
        self.notes_consumed = consumed_until < math.inf
        """Whether `note_consumed` has an effect."""

    def __len__(self) -> int:
        """URLs without receipt."""
        return len(self.urls)

    def find(self, job: str, url_key: bytes) -> Outstanding | None:
        """The URL of a job, which may be deleted."""
        outstanding = self.urls.get((job, url_key))
        return outstanding if outstanding is not None or not job else self.urls.get((DELETED + job, url_key))

    # ---- events

    def lease(self, waiting: Outstanding, job: Job | None, until: float, now: float) -> float:
        """A request is made for a URL, or for a robots.txt where `job` is None. Returns the UTC instant at which it is
        to dial; 0.0: at once."""
        waiting.state = _AFTER_LEASE[waiting.state]
        key = (waiting.job, waiting.entry.url_key)
        self.urls[key] = waiting
        if job is not None:
            job.lease()
        dial_at = self._begin_fetch(key, waiting, until, now, waiting.host.pace.not_before)
        partition = self._pending.partitions[waiting.host.partition]
        commit = partition.pending or self._pending.of(partition)
        commit.leased.append(self.logged(waiting))
        return dial_at

    def restore(self, waiting: Outstanding) -> None:
        """A URL that was in flight at the owner before. `resume` follows for a leased one."""
        self.urls[waiting.job, waiting.entry.url_key] = waiting
        job = self._jobs.get(waiting.job)
        if job is not None and waiting.state in PAGE_STATES:
            job.restore_lease()
        if waiting.state is not LEASED:
            self.await_receipt(waiting)

    def resume(self, waiting: Outstanding, until: float, now: float) -> float:
        """A lease that another owner gave continues until then. Returns as `lease`."""
        return self._begin_fetch((waiting.job, waiting.entry.url_key), waiting, until, now)

    def _begin_fetch(self, key: Key, waiting: Outstanding, until: float, now: float, planned: float = 0.0) -> float:
        self.leases[key] = until
        self.slots += waiting.slot
        waiting.host.in_flight += 1
        if not waiting.lease_until:
            waiting.lease_until = until + self._time.utc_offset
        dial_at = self._addresses.start(waiting.address, now, planned) if waiting.address else 0.0
        return dial_at + self._time.utc_offset if dial_at else 0.0

    def answer(self, waiting: Outstanding, now: float, refused: bool = False) -> None:
        """The outcome has come. `refused`: see `AddressQueue.end`."""
        waiting.state = _AFTER_OUTCOME[waiting.state]
        del self.leases[waiting.job, waiting.entry.url_key]
        self.slots -= waiting.slot
        waiting.host.in_flight -= 1
        if waiting.address:
            self._addresses.end(waiting.address, now, refused)

    def page(self, waiting: Outstanding) -> None:
        """The outcome has a page."""
        waiting.state = _AFTER_PAGE[waiting.state]
        if waiting.receipted is None:
            if self._leases_continue:
                self._log(waiting)
            # A URL whose outcome came is not among them yet.
            self.without_receipt[waiting.job, waiting.entry.url_key] = self._time.now

    def requeue(self, waiting: Outstanding, job: Job, delayed: bool) -> None:
        """The caller queues the URL again, or delays it."""
        waiting.move(DELAY if delayed else REQUEUE)
        job.end_lease()
        self._remove(waiting)

    def no_page(self, waiting: Outstanding, job: Job, record: Record) -> None:
        """The URL ends without a page; the caller publishes its terminal row."""
        if waiting.move(NO_PAGE) is QUEUED:
            self.urls[waiting.job, waiting.entry.url_key] = waiting
            job.lease()
        job.end_lease()
        waiting.record = record
        self._log(waiting)
        self.await_receipt(waiting)

    def receipt(self, waiting: Outstanding, job: Job, receipt: Receipt) -> bool:
        """The row of a URL is durable. Returns whether the URL has ended; if not, its outcome comes first."""
        before = waiting.state
        waiting.state = _AFTER_RECEIPT[before]
        if before is LEASED:
            waiting.receipted = receipt
            self._log(waiting)
            return False
        key = (waiting.job, waiting.entry.url_key)
        del self.urls[key]
        self.without_receipt.pop(key, None)
        if before is FETCHED:
            job.end_lease()
        return True

    def drop(self, waiting: Outstanding) -> None:
        """The fetch of a robots.txt, or for a deleted job, is over."""
        waiting.move(DROP)
        self._log(waiting)
        self._remove(waiting)

    def drop_job(self, uid: str) -> None:
        """A job is deleted. Its fetches in flight free their hosts when they end. O(URLs in flight)."""
        renamed = {}
        for waiting in [waiting for waiting in self.urls.values() if waiting.job == uid]:
            if waiting.state is not LEASED:
                waiting.move(DROP)
                self._remove(waiting)
                continue
            # A name that no job can have: a new job of the same name may come before this fetch ends.
            url_key = waiting.entry.url_key
            del self.urls[uid, url_key]
            waiting.job = DELETED + uid
            self.urls[waiting.job, url_key] = waiting
            renamed[uid, url_key] = (waiting.job, url_key)
        if renamed:
            self.leases = OrderedDict((renamed.get(key, key), until) for key, until in self.leases.items())

    def start_late(self, key: Key, attempt: int, address: str, now: float) -> bool:
        """Whether a fetch that was leased before the address of its host was known may start there now. If so, it
        counts there, and the host has that address from now on.

        If not, the downloader gives it back with the address, and the host enters the queue of the address. All
        downloader processes use this pace: with a pace per process, the server would see their sum.
        """
        waiting = self.urls.get(key)
        if waiting is None or waiting.state is not LEASED or waiting.attempt != attempt:
            return False
        if waiting.address == address:
            return True
        if self._addresses.room(address, now) != 0.0:
            return False
        if waiting.address:
            self._addresses.end(waiting.address, now)
        self._addresses.start(address, now)
        waiting.address = waiting.host.address = address
        return True

    def addresses_in_use(self) -> list[str]:
        """The addresses of the fetches in flight, each once per fetch."""
        return [address for key in self.leases if (address := self.urls[key].address)]

    def await_receipt(self, waiting: Outstanding) -> None:
        """The receipt of a URL is missing from now on; also when its row was published again."""
        key = (waiting.job, waiting.entry.url_key)
        self.without_receipt[key] = self._time.now
        self.without_receipt.move_to_end(key)

    def _remove(self, waiting: Outstanding) -> None:
        key = (waiting.job, waiting.entry.url_key)
        del self.urls[key]
        self.without_receipt.pop(key, None)

    # ---- log

    def logged(self, waiting: Outstanding) -> LeasedUrl:
        """The logged form of a URL. It is longer where the next owner waits for the URL."""
        entry = waiting.entry
        leased = LeasedUrl(entry.url_key, waiting.job, waiting.host.key, waiting.attempt)
        if self._leases_continue:
            leased.lease_until = waiting.lease_until
            leased.address = waiting.address
            if waiting.job not in self._jobs:
                leased.entry = pack(entry)
            leased.landed = waiting.state is not LEASED
            leased.record = waiting.record
            leased.receipt = waiting.receipted
        return leased

    def _log(self, waiting: Outstanding) -> None:
        if self._leases_continue:
            partition = self._pending.partitions[waiting.host.partition]
            self._pending.of(partition).leased.append(self.logged(waiting))

    # ---- leases

    def first_expiry(self) -> float | None:
        """When the first lease expires; None without any."""
        return self.leases[next(iter(self.leases))] if self.leases else None

    def leased_at(self, waiting: Outstanding) -> float:
        """When the present lease of a URL was given, or taken over."""
        until = self.leases[waiting.job, waiting.entry.url_key]
        return until - self._config.start_by_s - self._config.lease_s

    def note_consumed(self, at: float, rendered: bool = False) -> None:
        """Requests that were handed out up to this instant have been consumed; `rendered`: those for a browser."""
        self.consumed_until[rendered] = max(self.consumed_until[rendered], at)

    def was_consumed(self, waiting: Outstanding) -> bool:
        """Whether a downloader has consumed the request of a leased URL."""
        return self.consumed_until[self.is_rendered(waiting)] >= self.leased_at(waiting)

    def waits_since(self, before: float) -> bool:
        """Whether a request of that time has no outcome, and nothing proves that it was consumed."""
        key = next(iter(self.leases), None)
        return key is not None and self.leased_at(self.urls[key]) <= before and not self.was_consumed(self.urls[key])

    def is_rendered(self, waiting: Outstanding) -> bool:
        """Whether the request went to the downloaders with a browser."""
        job = self._jobs.get(waiting.job)
        return job is not None and (waiting.entry.render or job.compiled.render) > Render.NEVER

    # ---- invariants

    def check(self, hot: Mapping[int, Host]) -> None:
        """Raise AssertionError when an invariant does not hold. `hot`: the active hosts. O(URLs in flight)."""
        leased = {key: waiting for key, waiting in self.urls.items() if waiting.state is LEASED}
        others = {key: waiting for key, waiting in self.urls.items() if waiting.state is not LEASED}
        assert all(key == (w.job, w.entry.url_key) for key, w in self.urls.items()), "a URL is under another key"
        assert all(w.state in (FETCHED, ENDING) for w in others.values()), "a URL is in flight in a state outside"
        assert set(self.leases) == set(leased), "leases and leased URLs differ"
        assert self.slots == sum(w.slot for w in leased.values()), f"leases count for {self.slots} slots"
        assert list(self.leases.values()) == sorted(self.leases.values()), "leases out of order"
        assert set(self.without_receipt) == set(others), "URLs without receipt and those with an outcome differ"
        instants = list(self.without_receipt.values())
        assert instants == sorted(instants), "URLs without receipt out of order"
        jobs = {"", *self._jobs}
        assert all(w.job in jobs or w.job.startswith(DELETED) for w in self.urls.values()), "a URL has no job"
        flying = Counter(id(w.host) for w in leased.values())
        for host in hot.values():
            assert host.in_flight == flying[id(host)], f"{host.key}: {host.in_flight} in flight"
        assert all(w.host is hot.get(w.host.number) for w in leased.values()), "an active host was evicted"
        taken = Counter(w.job for w in self.urls.values() if w.state in PAGE_STATES)
        in_rooms: Counter[int] = Counter()
        for uid, job in self._jobs.items():
            assert job.counts.leased == taken[uid], (
                f"{uid}: {job.counts.leased} leased, but {taken[uid]} in flight as pages"
            )
            in_rooms.update({id(room): job.counts.leased for room in job.holds.rooms})
        for uid, job in self._jobs.items():
            assert all(room.in_flight == in_rooms[id(room)] for room in job.holds.rooms), (
                f"{uid}: quotas count other leases"
            )
