"""Leader election: one holder at a time, taken over only after silence by the candidate's own clock."""

from __future__ import annotations

from typing import Any

from nephila_cluster.operator.election import Election


def write(candidate: Election, lease: dict[str, Any] | None, at: float) -> dict[str, Any] | None:
    """One attempt at a time of the candidate's clock; the new Lease, or the old one."""
    spec = candidate.next(lease, at, at)
    if spec is None:
        return lease
    found = {"spec": spec}
    candidate.wrote(found, at)
    return found


def test_the_first_candidate_leads_and_renews() -> None:
    a = Election("a", 15)
    lease = write(a, None, 0)
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "a"
    assert a.leads(9.9)
    assert not a.leads(10)
    renewed = write(a, lease, 5)
    assert renewed is not None
    assert renewed["spec"]["acquireTime"] == lease["spec"]["acquireTime"]
    assert a.leads(14.9)


def test_another_candidate_leads_only_after_the_duration_without_a_change() -> None:
    a, b = Election("a", 15), Election("b", 15)
    lease = write(a, None, 0)
    for at in (100.0, 107.0, 114.9):
        assert b.next(lease, at, at) is None  # the clock of b is another one
    lease = write(a, lease, 8)
    for at in (115.0, 129.9):
        assert b.next(lease, at, at) is None  # it has changed at 115
    taken = write(b, lease, 130)
    assert taken is not None
    assert (taken["spec"]["holderIdentity"], taken["spec"]["leaseTransitions"]) == ("b", 1)
    assert a.next(taken, 20, 20) is None
    assert not a.leads(20)


def test_a_leader_leads_no_longer_before_another_can() -> None:
    a, b = Election("a", 15), Election("b", 15)
    lease = write(a, None, 0)
    b.next(lease, 0, 0)
    first = next(at for at in range(100) if b.next(lease, at, at) is not None)
    assert not a.leads(first - 1)


def test_a_released_lease_is_taken_at_once() -> None:
    b = Election("b", 15)
    taken = write(b, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}, 0)
    assert taken is not None
    assert (taken["spec"]["holderIdentity"], taken["spec"]["leaseDurationSeconds"]) == ("b", 15)
    assert b.leads(1)


def test_a_restarted_holder_takes_its_own_lease_at_once() -> None:
    a = Election("a", 15)
    lease = write(a, None, 0)
    again = Election("a", 15).next(lease, 1, 1)
    assert again is not None
    assert again["leaseTransitions"] == 0
