"""The partitions of one program: which takes a turn when, one timer for all, and the counters.

A partition takes a turn in the next pass of the event loop after an input, or when its wake-up time comes. An idle
partition costs nothing. The scheduler of one program has one partition, that of a cluster those that the bus assigns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol

from nephila.kernel.messages import RefusingHost
from nephila.kernel.process.disk import DiskSpace, disk_space
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.states import checked
from nephila.kernel.runtime.waits import OneTimer
from nephila.scheduler.config import LOOK_S, SchedulerConfig
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters
from nephila.scheduler.jobs.scope import anchored_in
from nephila.scheduler.partition.commit_pipeline import SchedulerCounters
from nephila.scheduler.partition.owner import PartitionOwner
from nephila.scheduler.partition.owner_state import OwnerState
from nephila.scheduler.partition.wakeups import WakeupHeap

REFUSING_S = 300.0
"""A host that has refused for so long needs a person."""
REFUSING = 20
"""Refusing hosts that are reported."""
BLOCKED_S = 0.1
"""Interval at which a blocked partition checks whether it may publish."""
SLICE_S = 0.05
"""Longest time that partitions take turns before the event loop runs other tasks."""
MAX_TURNS = 1000
"""Rounds of serving address queues in one pass of the loop."""


class SharedAddresses(Protocol):
    """Queues of server addresses that several partitions have in common."""

    def call(self, now: float) -> bool:
        """Call the partitions whose hosts are next where a slot is free; returns whether there was one."""

    def next_ready(self) -> float | None:
        """When the first host of a queue may be served; None when no queue waits for time."""


class MemberState(Enum):
    """A draining member dispatches nothing more; a dead one does nothing more."""

    RUNNING = "running"
    DRAINING = "draining"
    DEAD = "dead"


NEXT_STATES: dict[MemberState, tuple[MemberState, ...]] = {
    MemberState.RUNNING: (MemberState.DRAINING, MemberState.DEAD),
    # A drain, and then the end.
    MemberState.DRAINING: (MemberState.DRAINING, MemberState.DEAD),
    MemberState.DEAD: (MemberState.DEAD,),
}


class Member:
    """Base of both schedulers: an `OwnerHost`, and an `AnyScheduler` for metrics."""

    def __init__(
        self,
        config: SchedulerConfig,
        clock: Clock,
        counts: SchedulerCounters,
        addresses: SharedAddresses | None = None,
        on_fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        """`addresses`: queues that the partitions share; None: each has its own. `on_fatal` is called once, when a log
        can no longer be written."""
        self.config = config
        self.clock = clock
        self.counts = counts
        self.owners: dict[int, PartitionOwner] = {}
        self.on_fatal = on_fatal
        self.state = MemberState.RUNNING
        self._addresses = addresses
        self._due: list[PartitionOwner] = []
        self._pass_due = False
        """A pass is requested or runs."""
        self._wakeups = WakeupHeap()
        self._timer = OneTimer(clock, self._on_time)

    def enter(self, state: MemberState) -> None:
        """Change the state. Raises `RuntimeError` where the table does not allow it."""
        self.state = checked(NEXT_STATES, self.state, state, "scheduler")

    @property
    def dead(self) -> bool:
        """The member has failed, or was closed."""
        return self.state is MemberState.DEAD

    @property
    def disk(self) -> DiskSpace:
        """Disk of its directory."""
        return disk_space(Path(self.config.directory))

    def refusing_hosts(self) -> list[RefusingHost]:
        """Hosts with queued URLs that have refused every request for `REFUSING_S`, the longest first."""
        now = self.clock.monotonic()
        hosts = [host for owner in self.owners.values() for host in owner.frontier.hosts.refusing(now, REFUSING_S)]
        return sorted(hosts, key=lambda host: host.since)[:REFUSING]

    async def drain(self, grace_s: float) -> None:
        """Dispatch nothing more; outcomes and receipts still come in."""
        self.stop_dispatch()

    def stop_dispatch(self) -> None:
        """Dispatch nothing more. No effect on a dead member."""
        if self.dead:
            return
        self.enter(MemberState.DRAINING)
        for owner in self.owners.values():
            owner.enter(OwnerState.DRAINING)

    # ---- turns

    def wake(self, owner: PartitionOwner) -> None:
        if owner.due or owner.state is OwnerState.LOST:
            return
        owner.due = True
        self._due.append(owner)
        if not self._pass_due:
            self._pass_due = True
            self.clock.call_soon(self._pass)

    def _pass(self) -> None:
        """Turns of every due partition, and of those whose server address has a free slot."""
        if self.state is MemberState.DEAD:
            return
        try:
            if self._timer.due is None:
                self._wake_due()
            if self._addresses is None:
                self._take_turns()
            else:
                self._serve_addresses(self._addresses, self.clock.monotonic())
        except Exception as error:
            self.fatal(error)
            return
        self._pass_due = False
        if self._due:
            self._pass_due = True
            self.clock.call_soon(self._pass)
        self._arm()
        self.after_turns()

    def _serve_addresses(self, addresses: SharedAddresses, now: float) -> None:
        for _ in range(MAX_TURNS):
            called = addresses.call(now)
            self._take_turns()
            if self._due or not called:
                return

    def _wake_due(self) -> None:
        """The timer has fired, or there was none."""
        for owner in self._wakeups.pop_due(self.clock.monotonic()):
            if owner.pipeline.blocked:
                owner.advance()
            self.wake(owner)

    def _take_turns(self) -> None:
        """Turns of due partitions, within the time slice: heartbeats wait meanwhile."""
        due, self._due = self._due, []
        until = self.clock.monotonic() + SLICE_S if len(due) > 1 else math.inf
        for done, owner in enumerate(due, 1):
            self.before_turn(owner)
            owner.turn()
            self._note_wake(owner)
            if done < len(due) and self.clock.monotonic() > until:
                self._due = due[done:] + self._due
                return

    def _note_wake(self, owner: PartitionOwner) -> None:
        if owner.state is OwnerState.LOST:
            return
        now = owner.frontier.time.now
        when = owner.dispatcher.next_event() if owner.state is OwnerState.SERVING else None
        if when is not None:
            when = now if when < now else self.turn_at(min(when, now + LOOK_S))
        if owner.pipeline.blocked:
            when = min(when, now + BLOCKED_S) if when is not None else now + BLOCKED_S
        self._wakeups.set(owner, when)

    def _arm(self) -> None:
        when = self._wakeups.first
        if self._addresses is not None and self.owners:
            ready = self._addresses.next_ready()
            when = min((at for at in (when, ready) if at is not None), default=None)
        if when is not None and self._timer.due != when:
            self._timer.move(when)

    def _on_time(self) -> None:
        if not self._pass_due:
            self._pass_due = True
            self._pass()

    def cancel_timer(self) -> None:
        """Wake no partition any more by time alone."""
        self._timer.cancel()

    def before_turn(self, owner: PartitionOwner) -> None:
        """Called before the turn of a partition."""

    def after_turns(self) -> None:
        """Called at the end of each pass."""

    def turn_at(self, when: float) -> float:
        """When a partition takes a turn for which time alone gives work from `when` on (monotonic)."""
        return when

    def anchored(self, owner: PartitionOwner, uid: str, anchors: Sequence[str]) -> None:
        """Partitions of this program need not wait for the message."""
        mode = owner.frontier.jobs[uid].scope.mode
        for number, part in anchored_in(mode, anchors, owner.layout).items():
            if number in self.owners and number != owner.number:
                self.owners[number].anchors(uid, part)

    def fatal(self, error: BaseException) -> None:
        self.enter(MemberState.DEAD)
        if self.on_fatal is None:
            raise error
        self.on_fatal(error)

    # ---- read by metrics and status: see `AnyScheduler`

    @property
    def requests(self) -> int:
        return self.counts.requests

    @property
    def errors(self) -> Counter[str]:
        return self.counts.errors

    @property
    def commits(self) -> int:
        return self.counts.commits

    @property
    def frontiers(self) -> list[Frontier]:
        return [owner.frontier for owner in self.owners.values()]

    @property
    def counters(self) -> FrontierCounters:
        return self.counts.frontier

    @property
    def snapshot_age_s(self) -> float:
        return max((owner.snapshots.age_s for owner in self.owners.values()), default=0.0)

    @property
    def log_bytes(self) -> int:
        return sum(owner.log.size for owner in self.owners.values())
