"""One budget of memory for the large things of a process: bodies in flight, child processes, pages in a browser.

The memory of a thing is reserved before its bytes exist, and freed when the thing is gone. A body grows with the bytes
that arrive, by a small look-ahead: a length that a server claims costs no memory. A reservation is granted while the
memory in use, plus the part of all reservations whose bytes have not arrived, stays below a share of the container's
limit, and the bodies of its host below `HOST_SHARE` of that. Others wait. A reservation that fits is granted, however
long a larger one waits: a server that holds memory stops nobody who needs less. Invariants: what waits for memory
continues when memory is free; of each kind the oldest reservation is always granted, so that a thing larger than the
container allows cannot stop all others. Where it does not fit, bodies that wait with a part of their bytes are refused,
the youngest first.

The memory in use is read at most once per `READ_S`; what was granted after a reading counts in full. O(reservations)
per reading, else O(1). Things below `LARGE_BYTES` are too small for a reservation.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from enum import Enum
from functools import partial
from weakref import WeakValueDictionary

from nephila.kernel.process.container import UNLIMITED, Container, Usage
from nephila.kernel.process.process_setup import free_unused_memory
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.waits import OneTimer

LARGE_BYTES = 256 << 10
"""Size from which a body is reserved."""
BODY_FACTOR = 4
"""Memory of a body over its length: on the wire, decoded, joined or parsed, as a record."""
BROWSER_REQUEST_BYTES = 160 << 20
"""Memory of one page in a browser: its renderer process."""
CHILD_BYTES = 64 << 20
"""Memory of a child process at its start, with the libraries of its task."""
READ_S = 0.02
"""Age of a reading of the container; a reading takes 0.2 ms."""
POLL_S = 0.05
"""Between two tries while something waits: memory may become free without a release."""
FREE_UNUSED_S = 0.5
"""Least time between two calls of `free_unused`, which may take milliseconds."""
SHARE = 0.9
"""Share of the container's memory that may be used, by default."""
HOST_SHARE = 0.25
"""Share of that for the bodies of one host. A single body may be larger."""
GROWN_S = 5.0
"""Time after which a child process or a page in a browser has most of its memory, which is memory in use then."""
GROWTH_LEFT = 0.25
"""Part of their reservation that counts beside the memory in use from then on."""
STEP_BYTES = 256 << 10
"""Least step in which a body of unknown length is reserved."""


def further(size_bytes: int) -> int:
    """The length to reserve next for a body that has reached this one and is not complete."""
    return size_bytes + max(STEP_BYTES, size_bytes // 4)


class ReservationKind(Enum):
    BODY = "body"
    """A response, from its head until its record is durable."""
    CHILD = "child"
    """A call of a child process."""
    BROWSER = "browser"
    """A page in a browser."""


class Reservation:
    """Memory of one thing. The owner calls `release`; one that is forgotten is released with its last reference."""

    __slots__ = (
        "__weakref__",
        "_budget",
        "arrived_bytes",
        "granted_at",
        "granted_bytes",
        "host",
        "kind",
        "number",
        "on_answer",
        "streams",
        "wanted_bytes",
    )

    def __init__(self, budget: MemoryBudget, kind: ReservationKind, number: int, host: str) -> None:
        self._budget: MemoryBudget | None = budget
        self.kind = kind
        self.number = number
        """Its place in the order of age."""
        self.host = host
        """The host of a body; empty: none."""
        self.granted_bytes = 0
        self.granted_at = 0.0
        self.arrived_bytes = 0
        """The part that exists already and is counted in the memory in use."""
        self.wanted_bytes = 0
        self.on_answer: Callable[[bool], None] | None = None
        """Set while it waits."""
        self.streams = False
        """Bytes are still arriving."""

    def ask(self, total_bytes: int, on_answer: Callable[[bool], None]) -> bool:
        """Raise the reservation to `total_bytes`. False: it has to wait, and `on_answer` is called later: whether it is
        granted. A body may be refused; it is released then."""
        budget = self._budget
        if budget is None or total_bytes <= self.granted_bytes:
            return True
        self.wanted_bytes = total_bytes
        return budget.ask(self, on_answer)

    def settle(self, total_bytes: int) -> None:
        """All bytes have arrived; from now on `total_bytes` are enough, or less if less was granted."""
        budget, less = self._budget, max(self.granted_bytes - total_bytes, 0)
        self.granted_bytes -= less
        if budget is not None:
            budget.streaming -= self.streams
            budget.count(self, -less)
        self.streams = False

    def release(self) -> None:
        """Free the memory, or stop waiting for it. A second call has no effect."""
        budget, self._budget = self._budget, None
        if budget is not None:
            budget.release(self)

    def __del__(self) -> None:
        self.release()


class MemoryBudget:
    def __init__(
        self,
        clock: Clock,
        read: Callable[[], Usage],
        *,
        share: float = SHARE,
        processes: int = 1,
        free_unused: Callable[[], None] = lambda: None,
    ) -> None:
        """`processes` share the container: each takes its part of what is left. `free_unused` returns memory that the
        allocator keeps to the system; it is called while something waits."""
        self._clock = clock
        self._read = read
        self._share = share
        self._processes = processes
        self._free_unused = free_unused
        self._numbers = itertools.count()
        # Weak: the owner of a reservation decides how long it lives.
        self._held: dict[ReservationKind, WeakValueDictionary[int, Reservation]] = {
            kind: WeakValueDictionary() for kind in ReservationKind
        }
        """Granted reservations, the oldest first."""
        self._waiting: WeakValueDictionary[int, Reservation] = WeakValueDictionary()
        """In order of their wait."""
        self._freed_at = float("-inf")
        self._timer = OneTimer(clock, self._on_timer)
        self._read_at = float("-inf")
        self._left_bytes = 0.0
        """Left for this process at the last reading, without the reservations of that time."""
        self._granted_since = 0
        self._host_limit_bytes = 0.0
        self._host_bytes: dict[str, int] = {}
        """Host → granted bytes of its bodies."""
        self.streaming = 0
        """Bodies that are reserved and still arrive."""
        self.waited = 0
        """Reservations that had to wait."""
        self.refused = 0
        """Bodies that were refused after a part of their bytes."""

    def open(self, kind: ReservationKind, host: str = "") -> Reservation:
        """A reservation of nothing yet; `host`: of a body."""
        return Reservation(self, kind, next(self._numbers), host)

    async def reserve(self, kind: ReservationKind, total_bytes: int) -> Reservation:
        """A reservation of so many bytes, when it is granted."""
        reservation = self.open(kind)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not reservation.ask(total_bytes, lambda _: None if granted.done() else granted.set_result(None)):
            try:
                await granted
            except BaseException:
                reservation.release()
                raise
        return reservation

    @property
    def waiting(self) -> int:
        """Reservations that wait for memory."""
        return len(self._waiting)

    @property
    def outstanding_bytes(self) -> float:
        """Memory that is reserved and not used yet."""
        grown = self._clock.monotonic() - GROWN_S
        held = (reservation for by_age in self._held.values() for reservation in by_age.values())
        return sum(_to_come(reservation, grown) for reservation in held)

    def left_bytes(self) -> float:
        """Memory that can be reserved now; negative: more is in use than should be."""
        now = self._clock.monotonic()
        if now - self._read_at >= READ_S:
            usage = self._read()
            allowed = self._share * usage.memory_limit_bytes
            free = allowed - usage.memory_bytes
            self._host_limit_bytes = HOST_SHARE * allowed / self._processes
            self._left_bytes = free / self._processes - self.outstanding_bytes
            self._read_at, self._granted_since = now, 0
        return self._left_bytes - self._granted_since

    def close(self) -> None:
        self._timer.cancel()

    # ---- calls of the reservations

    def ask(self, reservation: Reservation, on_answer: Callable[[bool], None]) -> bool:
        if self._is_exempt(reservation) or self._fits(reservation):
            self._grant(reservation)
            return True
        reservation.on_answer = on_answer
        self._waiting[reservation.number] = reservation
        self.waited += 1
        self._arm()
        return False

    def release(self, reservation: Reservation) -> None:
        self.streaming -= reservation.streams
        self.count(reservation, -reservation.granted_bytes)
        reservation.streams, reservation.granted_bytes, reservation.on_answer = False, 0, None
        self._held[reservation.kind].pop(reservation.number, None)
        self._waiting.pop(reservation.number, None)

    def count(self, reservation: Reservation, more_bytes: int) -> None:
        """The reservation of a body changes."""
        if reservation.host and more_bytes:
            total = self._host_bytes.get(reservation.host, 0) + more_bytes
            if total > 0:
                self._host_bytes[reservation.host] = total
            else:
                self._host_bytes.pop(reservation.host, None)

    # ---- decisions

    def _is_exempt(self, reservation: Reservation) -> bool:
        """Whether it is the oldest of its kind, which never waits."""
        return next(iter(self._held[reservation.kind].values()), reservation) is reservation

    def _fits(self, reservation: Reservation) -> bool:
        more = reservation.wanted_bytes - reservation.granted_bytes
        if more > self.left_bytes():
            return False
        of_host = self._host_bytes.get(reservation.host, 0)
        return of_host <= reservation.granted_bytes or of_host + more <= self._host_limit_bytes

    def _grant(self, reservation: Reservation) -> None:
        if not self._fits(reservation):
            self._refuse_for(reservation)
        held = self._held[reservation.kind]
        if reservation.number not in held:
            held[reservation.number] = reservation
            reservation.streams = reservation.kind is ReservationKind.BODY
            self.streaming += reservation.streams
        more = reservation.wanted_bytes - reservation.granted_bytes
        self._granted_since += more
        self.count(reservation, more)
        reservation.granted_bytes, reservation.granted_at = reservation.wanted_bytes, self._clock.monotonic()

    def _refuse_for(self, oldest: Reservation) -> None:
        """Make room for a reservation that is granted although it does not fit."""
        missing = oldest.wanted_bytes - oldest.granted_bytes - self.left_bytes()
        for reservation in sorted(self._waiting.values(), key=lambda reservation: reservation.number, reverse=True):
            if missing <= 0:
                return
            if (
                reservation.kind is ReservationKind.BODY
                and reservation.granted_bytes
                and reservation is not oldest
                and reservation.on_answer is not None
            ):
                missing -= reservation.granted_bytes
                self.refused += 1
                on_answer = reservation.on_answer
                reservation.release()
                # In a later turn: the end of a fetch starts others.
                self._clock.call_soon(partial(on_answer, False))

    def _arm(self) -> None:
        self._timer.start(POLL_S)

    def _on_timer(self) -> None:
        """Grant what fits now, those first that wait longest."""
        now = self._clock.monotonic()
        if now - self._freed_at >= FREE_UNUSED_S:
            self._freed_at = now
            self._free_unused()
        for reservation in list(self._waiting.values()):
            if reservation.on_answer is None:  # released by the call for an earlier one
                continue
            if self._is_exempt(reservation) or self._fits(reservation):
                on_answer, reservation.on_answer = reservation.on_answer, None
                del self._waiting[reservation.number]
                self._grant(reservation)
                on_answer(True)
        if self._waiting:
            self._arm()


def _to_come(reservation: Reservation, grown: float) -> float:
    """Reserved bytes that are not part of the memory in use; `grown`: see `GROWN_S`."""
    if reservation.kind is not ReservationKind.BODY and reservation.granted_at <= grown:
        return reservation.granted_bytes * GROWTH_LEFT
    return max(reservation.granted_bytes - reservation.arrived_bytes, 0)


def unlimited() -> MemoryBudget:
    """A budget that grants everything at once: no limit is known, or none is wanted."""
    return MemoryBudget(SystemClock(), lambda: Usage(0, UNLIMITED, 0.0, 1.0))


def container_budget(clock: Clock, *, share: float = SHARE, processes: int = 1) -> MemoryBudget:
    """The budget of a process in its container; `processes` share the container."""
    return MemoryBudget(clock, Container().read, share=share, processes=processes, free_unused=free_unused_memory)
