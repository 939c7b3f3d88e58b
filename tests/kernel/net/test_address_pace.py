"""Pace of one server address: the wait after refusals, reserved starts, and what is forgotten."""

from __future__ import annotations

import pytest
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import REFUSED_S, AddressPace

A = "192.0.2.1"


def made(connections: int = 4, gap_s: float = 0.25, restarted_at: float = float("-inf")) -> AddressPace:
    return AddressPace(AddressLimits(connections, gap_s, ()), restarted_at)


@pytest.mark.parametrize(("gap_s", "first_s"), [(0.25, 0.25), (0.0, REFUSED_S)], ids=["with a gap", "without a gap"])
def test_the_wait_doubles_with_each_refusal_in_a_row(gap_s: float, first_s: float) -> None:
    """Up to sixteen times the first; a fetch that ends without refusal makes the next refusal a first one."""
    pace = made(gap_s=gap_s)
    pace.pin(A)
    now, waits = 100.0, []
    for refused in (*[True] * 7, False, True, True):
        pace.start(A, now)
        now += gap_s
        if refused:
            pace.refuse(A, now)
            waits.append(pace.wait_s(A, now) / first_s)
        else:
            pace.end(A, now)
        now += pace.wait_s(A, now)
        pace.check()
    assert waits == pytest.approx([1, 2, 4, 8, 16, 16, 16, 1, 2])


def test_a_refusal_shortens_no_other_wait() -> None:
    """A gap or an instant set by another scheduler ends later."""
    pace = made()
    pace.start(A, 100.0)
    pace.delay_until(A, 130.0)
    pace.refuse(A, 100.0)
    assert pace.next_start(A, 100.0) == 130.0


def test_reserved_starts_keep_the_gap_after_a_blocked_event_loop() -> None:
    """Three starts were due meanwhile: the second and third get a later instant, each a gap after the one before."""
    pace = made()
    for at in (100.0, 100.25, 100.5):
        assert pace.start(A, 99.0, at) == at
    assert pace.confirm(A, 102.0) == 0.0
    pace.record_sent(A, 102.0)
    assert pace.confirm(A, 102.0) == 102.25
    assert pace.confirm(A, 102.25) == 0.0
    pace.record_sent(A, 102.25)
    assert pace.confirm(A, 102.4) == 102.5
    assert pace.next_start(A, 102.4) == 102.5


def test_a_reserved_start_waits_for_the_request_before() -> None:
    """Until it is written or its fetch has ended, a second at most."""
    pace = made()
    for at in (100.0, 100.25):
        pace.start(A, 99.0, at)
    assert pace.confirm(A, 100.0) == 0.0
    assert pace.confirm(A, 100.25) == 100.3
    assert pace.confirm(A, 100.97) == 101.0
    pace.end(A, 100.98)
    pace.end(A, 100.98)
    pace.start(A, 100.98)
    assert pace.confirm(A, 100.99) == 0.0


def test_after_a_restart_each_address_waits_for_one_gap() -> None:
    """Starts before it are unknown."""
    pace = made(restarted_at=50.0)
    assert (pace.next_start(A, 50.0), pace.next_start(A, 50.25)) == (50.25, 0.0)


def test_an_address_is_forgotten_when_its_gap_is_over_and_nothing_holds_it() -> None:
    """A pin or a fetch in flight keeps it; a late report of a forgotten one changes nothing."""
    pace = made()
    for address in ("pinned", "flying", "idle"):
        pace.start(address, 100.0)
    pace.pin("pinned")
    for address in ("pinned", "idle"):
        pace.end(address, 100.1)
    assert len(pace) == 3
    for second in range(4):
        pace.start("other", 101.0 + second)
        pace.end("other", 101.0 + second)
    pace.check()
    assert (len(pace), pace.in_flight("flying"), pace.in_flight("idle")) == (3, 1, 0)
    pace.record_sent("idle", 105.0)
    assert pace.wait_s("idle", 105.0) == 0.0
    pace.record_sent("flying", 105.0)
    assert pace.wait_s("flying", 105.0) == 0.25
    pace.unpin("pinned")
    pace.end("flying", 106.0)
    for second in range(4):
        pace.start("other", 110.0 + second)
        pace.end("other", 110.0 + second)
    assert len(pace) == 1
    pace.check()
