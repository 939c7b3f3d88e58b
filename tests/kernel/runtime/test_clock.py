"""The manual clock moves only by calls; both scales move together."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.clock import ManualClock, SystemClock


def test_calls_are_made_in_order_and_at_their_instants():
    """Calls due earlier are made earlier, and see their own time."""
    clock = ManualClock(monotonic=0.0)
    seen: list[tuple[str, float]] = []
    clock.call_at(2.0, lambda: seen.append(("b", clock.monotonic())))
    clock.call_at(1.0, lambda: seen.append(("a", clock.monotonic())))
    clock.call_at(9.0, lambda: seen.append(("never", clock.monotonic())))
    clock.advance(5.0)
    assert seen == [("a", 1.0), ("b", 2.0)]
    assert clock.next_due == 9.0


def test_a_cancelled_call_is_not_made():
    """Cancelling twice is harmless."""
    clock = ManualClock()
    timer = clock.call_at(clock.monotonic() + 1, lambda: pytest.fail("was made"))
    timer.cancel()
    timer.cancel()
    clock.advance(2)
    assert clock.next_due is None


def test_a_timer_that_spins_is_found():
    """A call that schedules itself for now would hang a program; here it is an error."""
    clock = ManualClock()

    def again() -> None:
        clock.call_soon(again)

    again()
    with pytest.raises(RuntimeError, match="schedules itself again"):
        clock.run_due()


def test_due_calls_are_counted_and_made_one_by_one():
    """A call that is made adds another one, which is made too; cancelled ones do not count."""
    clock, seen = ManualClock(), []
    assert (clock.run_due(), clock.run_one()) == (0, False)
    clock.call_soon(lambda: (seen.append("a"), clock.call_soon(lambda: seen.append("b"))))
    clock.call_at(clock.monotonic(), lambda: seen.append("cancelled")).cancel()
    clock.call_at(clock.monotonic() + 1, lambda: seen.append("later"))
    assert clock.run_due() == 2
    clock.call_at(clock.monotonic(), lambda: seen.append("cancelled")).cancel()
    clock.call_soon(lambda: seen.append("c"))
    assert [clock.run_one(), clock.run_one()] == [True, False]
    assert seen == ["a", "b", "c"]


def test_jump_moves_utc_only():
    """NTP moves the wall clock, not waits."""
    clock = ManualClock()
    before = clock.monotonic()
    utc = clock.now()
    clock.jump(-3600)
    assert clock.monotonic() == before
    assert clock.now() == utc - 3600


async def test_the_system_clock_calls_back():
    """A call that is already due is made in the next turn of the loop."""
    import asyncio

    clock, done = SystemClock(), asyncio.Event()
    clock.call_at(clock.monotonic() - 1, done.set)
    await asyncio.wait_for(done.wait(), 60)
