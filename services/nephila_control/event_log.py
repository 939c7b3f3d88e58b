"""What happened to a program or system: differences between two looks at its members, stores and jobs. Pure.

Screens show how things stand now; a member that was killed and came back at night has left no trace there. Members
report states, so events are found here, by comparison, and no service sends them. A look costs O(members + stores).
Invariants: the first look makes no event, since it tells nothing about the time before; at most `MAX_EVENTS` are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from nephila.kernel.runtime.clock import Clock

from nephila_control.event_types import MAX_EVENTS, Event, EventKind, EventList, ListEvents
from nephila_control.job_types import Job
from nephila_control.system_types import Member, MemberState, Store, StoreState

LOOK_S: Final = 5.0
"""Seconds between two looks."""
FIRST_S: Final = 15.0
"""Seconds from the start to the first look; members that run have reported by then."""
JOBS: Final = 10_000
"""Failed jobs that are remembered, so that each makes one event."""
STATE_EVENTS: Final[dict[MemberState, EventKind]] = {
    "draining": "member_draining",
    "ended": "member_left",
    "silent": "member_silent",
    "not_ready": "member_not_ready",
    "ready": "member_ready",
}
"""New state of a member → its event. A member that starts has none."""
BACK_FROM: Final = ("silent", "not_ready")
"""A member that becomes ready from another state has only started."""
AWAY: Final[frozenset[StoreState]] = frozenset({"away", "failed"})
WORKING: Final[frozenset[StoreState]] = frozenset({"working", "slow"})
LEFT: Final[frozenset[MemberState]] = frozenset({"ended", "silent"})


class EventLog:
    def __init__(self, clock: Clock, started: float | None = None, utc_started: float = 0.0) -> None:
        """The program starts now, or did so at these instants (monotonic, and seconds since 1970 UTC)."""
        self._clock = clock
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._members: dict[str, Member] | None = None
        self._owners: dict[tuple[str, int], str] = {}
        """(service, partition) → the last member that had it."""
        self._stores: dict[str, Store] = {}
        self._failed: dict[str, tuple[int, float]] = {}
        """Job → its generation that failed, and when that was seen."""
        self._next = (clock.monotonic() if started is None else started) + FIRST_S
        self._add("program_started", "", at=utc_started)

    def due(self) -> bool:
        return self._clock.monotonic() >= self._next

    def look(self, members: Sequence[Member], stores: Iterable[Store]) -> None:
        """A look that is not due may follow the first one only."""
        if self._members is None and not self.due():
            return
        self._next = self._clock.monotonic() + LOOK_S
        present = {_name(member): member for member in members}
        before, self._members = self._members, present
        if before is not None:
            for name, member in present.items():
                self._note_member(name, before.get(name), member)
            for name in before.keys() - present.keys():
                if before[name].state not in LEFT:
                    self._add("member_left", name)
        self._note_owners(members, first=before is None)
        for store in stores:
            self._note_store(store)

    def _note_member(self, name: str, before: Member | None, member: Member) -> None:
        if before is None:
            self._add("member_joined", name, member.host)
        elif member.started_at > before.started_at:
            self._add("member_restarted", name, before.problem, member.started_at)
        elif kind := _state_event(before.state, member.state):
            self._add(kind, name, member.problem, member.silent_since)

    def _note_owners(self, members: Sequence[Member], *, first: bool) -> None:
        for member in members:
            name = _name(member)
            taken: dict[str, int] = {}
            for partition in member.partitions:
                owner = self._owners.get((member.service, partition), name)
                self._owners[member.service, partition] = name
                if owner != name:
                    taken[owner] = taken.get(owner, 0) + 1
            for owner, partitions in taken.items() if not first else ():
                self._add("takeover", name, f"{partitions} partitions of {owner}")

    def _note_store(self, store: Store) -> None:
        before = self._stores.get(store.member)
        self._stores[store.member] = store
        subject = f"{store.member} {store.place}".strip()
        if store.state in AWAY and (before is None or before.state not in AWAY):
            self._add("store_away", subject, store.cause, store.since)
        elif store.state in WORKING and before is not None and before.state in AWAY:
            self._add("store_back", subject)

    def note_jobs(self, jobs: Iterable[Job], *, first: bool = False) -> None:
        """`first`: jobs that failed before the start make no event."""
        for job in jobs:
            if not job.has_failed:
                self._failed.pop(job.name, None)
            elif self.failed_since(job) is None and len(self._failed) < JOBS:
                self._failed[job.name] = job.generation, self._clock.now()
                if not first:
                    self._add("job_failed", job.name, job.outcome_counts)

    def failed_since(self, job: Job) -> float | None:
        """When this generation of a job was first seen failed, in seconds since 1970 UTC; None: it was not."""
        generation, at = self._failed.get(job.name, (0, 0.0))
        return at if generation == job.generation else None

    def _add(self, kind: EventKind, subject: str, text: str = "", at: float = 0.0) -> None:
        self._events.append(Event(at=at or self._clock.now(), kind=kind, subject=subject, text=text[:500]))

    def read(self, request: ListEvents) -> EventList:
        """The newest first."""
        events = [event for event in reversed(self._events) if event.kind.startswith(request.kind)]
        return EventList(events=sorted(events, key=lambda event: -event.at)[: request.limit])


def _state_event(before: MemberState, state: MemberState) -> EventKind | None:
    if state == before or (state == "ready" and before not in BACK_FROM):
        return None
    return STATE_EVENTS.get(state)


def _name(member: Member) -> str:
    return f"{member.service}/{member.name}"
