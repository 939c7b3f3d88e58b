"""Lets a plan of faults happen to a system, and starts again what ended: the supervisor that a cluster would have.

Invariant: a fault strikes a member that stands and is not frozen; one that finds none waits for its turn and the next
goes first. Everything that happened is noted with its time. Nothing is judged here.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable

from tests.chaos.chaos_plan import BROKER, FREEZE, KILL, Fault
from tests.chaos.chaos_verdict import Happened
from tools.system import Member, System

RESTART_S = 2.0
"""Between the end of a member and its next start."""
STANDING_S = 5.0
"""A member that was started later than this is not struck: it has not begun to work."""
BROKER_DOWN_S = 5.0
DRAIN_S = 30.0
"""What a member may take to end after SIGTERM."""


class Conductor:
    """One show. `tick` is called again and again."""

    def __init__(
        self,
        system: System,
        sizes: dict[str, int],
        plan: Iterable[Fault],
        *,
        freeze_s: float,
        standing_s: float = STANDING_S,
    ) -> None:
        """`sizes`: members of each service, the scheduler first; it is started last."""
        self.system = system
        self.happened: list[Happened] = []
        self.strangers: list[str] = []
        self._sizes = dict(sizes)
        self._plan = list(plan)
        self._freeze_s = freeze_s
        self._standing_s = standing_s
        self._began = time.monotonic()
        self._started: dict[str, float] = {}
        self._frozen: dict[str, float] = {}
        self._killed: set[str] = set()
        self._leaving: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._broker: threading.Thread | None = None

    def begin(self) -> None:
        """Start all members, and wait until they are ready. Raises `NotReady`."""
        for service in reversed(self._sizes):
            for number in range(self._sizes[service]):
                self._start(self.system.add(service, number))
        self.system.wait_ready(*self.system.members.values())
        self._began = time.monotonic()

    @property
    def left(self) -> int:
        """Faults that have not struck yet."""
        return len(self._plan)

    def tick(self) -> None:
        """Strike what is due, thaw, start again."""
        now = time.monotonic()
        for name, until in list(self._frozen.items()):
            if now >= until:
                del self._frozen[name]
                self.system.members[name].send(signal.SIGCONT)
        for member in self.system.members.values():
            self._supervise(member, now)
        for fault in [fault for fault in self._plan if now - self._began >= fault.at_s]:
            if self._strike(fault, now):
                self._plan.remove(fault)

    def _start(self, member: Member) -> None:
        self.system.start(member)
        self._started[member.name] = time.monotonic()

    def _supervise(self, member: Member, now: float) -> None:
        name = member.name
        if name in self._leaving:
            self._see_off(member, now)
        elif member.process is None or member.alive:
            return
        elif name not in self._ended:
            self._ended[name] = now
            if name not in self._killed:
                assert member.process is not None
                self.strangers.append(f"{name} ended with {member.process.returncode} at {now - self._began:.0f} s")
            self._killed.discard(name)
        elif now >= self._ended[name] + RESTART_S:
            del self._ended[name]
            self._start(member)

    def _see_off(self, member: Member, now: float) -> None:
        """A member that was scaled away."""
        assert member.process is not None
        if member.alive and now < self._leaving[member.name] + DRAIN_S:
            return
        if member.alive:
            self.strangers.append(f"{member.name} did not end within {DRAIN_S:g} s of SIGTERM")
            member.send(signal.SIGKILL)
            member.process.wait()
        elif member.process.returncode != 0:
            self.strangers.append(f"{member.name} ended with {member.process.returncode} after SIGTERM")
        del self._leaving[member.name]
        member.process = None

    def _strike(self, fault: Fault, now: float) -> bool:
        if fault.what == BROKER:
            return self._strike_broker(fault, now)
        standing = [m for m in self._of(fault.service) if self._stands(m, now)]
        if fault.what in (KILL, FREEZE):
            if not standing:
                return False
            member = standing[int(fault.draw * len(standing))]
            if fault.what == KILL:
                self._killed.add(member.name)
                member.send(signal.SIGKILL)
            else:
                self._frozen[member.name] = now + self._freeze_s
                member.send(signal.SIGSTOP)
            self._note(fault, member.name)
            return True
        return self._scale(fault, now)

    def _of(self, service: str) -> list[Member]:
        return [member for member in self.system.members.values() if member.service == service]

    def _stands(self, member: Member, now: float) -> bool:
        known = member.name in self._frozen or member.name in self._leaving or member.name in self._killed
        return member.alive and not known and now >= self._started[member.name] + self._standing_s

    def _scale(self, fault: Fault, now: float) -> bool:
        """Members above the size end as a cluster ends them; those that lack are begun."""
        if self._leaving or any(name.startswith(fault.service) for name in (*self._frozen, *self._ended)):
            return False
        for number in range(fault.size, self._sizes[fault.service]):
            member = self.system.add(fault.service, number)
            self._leaving[member.name] = now
            member.send(signal.SIGTERM)
        for number in range(self._sizes[fault.service], fault.size):
            self._start(self.system.add(fault.service, number))
        self._sizes[fault.service] = fault.size
        self._note(fault, f"{fault.service} to {fault.size}")
        return True

    def _strike_broker(self, fault: Fault, now: float) -> bool:
        if self._broker is not None and self._broker.is_alive():
            return False
        self._note(fault, "broker")
        self.system.broker.crash()
        self._broker = threading.Thread(target=self._broker_again)
        self._broker.start()
        return True

    def _broker_again(self) -> None:
        time.sleep(BROKER_DOWN_S)
        self.system.broker.start()

    def _note(self, fault: Fault, member: str) -> None:
        self.happened.append(Happened(time.monotonic(), fault.what, member))

    def close(self) -> None:
        """Wait for what is under way."""
        if self._broker is not None:
            self._broker.join()
