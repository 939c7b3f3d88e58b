"""Waits on a clock: a pause, an event with a limit, one timer, growing waits."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.waits import Backoff, OneTimer, sleep, wait


async def turns() -> None:
    """Let waiting tasks run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_pause_ends_at_its_instant() -> None:
    """Not before it."""
    clock = ManualClock()
    pause = asyncio.ensure_future(sleep(clock, 2.0))
    await turns()
    clock.advance(1.9)
    await turns()
    assert not pause.done()
    clock.advance(0.1)
    await pause


@pytest.mark.parametrize("is_set", [True, False])
async def test_an_event_is_waited_for_within_a_limit(is_set: bool) -> None:
    """The answer says whether it came; no timer is left."""
    clock, event = ManualClock(), asyncio.Event()
    waiting = asyncio.ensure_future(wait(clock, 2.0, event))
    await turns()
    assert not waiting.done()
    if is_set:
        event.set()
    else:
        clock.advance(2.0)
    assert await waiting is is_set
    await turns()
    assert clock.next_due is None


def test_a_timer_is_armed_once_and_again_from_its_call() -> None:
    """The first instant stands; a cancelled call is not made."""
    clock, calls = ManualClock(), []

    def call() -> None:
        calls.append(clock.monotonic())
        if len(calls) == 1:
            timer.start(3.0)

    timer = OneTimer(clock, call)
    timer.start(1.0)
    timer.start(0.5)
    clock.advance(10.0)
    assert calls == [1001.0, 1004.0]
    assert not timer.armed
    timer.start(1.0)
    timer.cancel()
    clock.advance(10.0)
    assert len(calls) == 2


def test_a_timer_that_is_moved_calls_at_the_new_instant_only() -> None:
    """Earlier or later; `due` is None after the call and after `cancel`."""
    clock, calls = ManualClock(), []
    timer = OneTimer(clock, lambda: calls.append(clock.monotonic()))
    for when in (1005.0, 1002.0, 1003.0):
        timer.move(when)
        assert timer.due == when
    clock.advance(10.0)
    assert calls == [1003.0]
    assert timer.due is None
    timer.move(1020.0)
    timer.cancel()
    assert timer.due is None
    clock.advance(20.0)
    assert calls == [1003.0]


def test_waits_double_up_to_the_longest() -> None:
    """After any number of failures."""
    backoff = Backoff(0.5, 5.0)
    assert [backoff.after(failures) for failures in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 4.0, 5.0]
    assert backoff.after(10**6) == 5.0
