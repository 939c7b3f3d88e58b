"""Prepared hosts and held links against small models."""

from __future__ import annotations

import random

import pytest
from nephila.scheduler.frontier.prepared_hosts import VALID_S, PreparedHosts
from nephila.scheduler.jobs.held_links import LIMIT, HeldLinks, limit_of
from nephila.scheduler.jobs.queue_entry import Entry, pack


def test_prepared_hosts_against_a_model() -> None:
    """Each is taken once per `schedule`, at its last instant, the earliest first, and counts for its job."""
    rng, prepared = random.Random(3), PreparedHosts()
    jobs: dict[int, int] = {}
    due: dict[int, float] = {}
    now = 0.0
    for step in range(20_000):
        host, job, action = rng.randrange(30), rng.randrange(4), rng.random()
        if action < 0.2:
            prepared.requested(host, job, "http://a.test")
            jobs[host] = job
            due.pop(host, None)
        elif action < 0.3:
            assert prepared.discard(host) == (jobs.pop(host, None) is not None)
            due.pop(host, None)
        elif action < 0.31:
            prepared.drop_job(job)
            jobs = {one: of for one, of in jobs.items() if of != job}
            due = {one: at for one, at in due.items() if one in jobs}
        elif action < 0.7:
            at = now + rng.randrange(5)
            prepared.schedule(host, at)
            if host in jobs:
                due[host] = at
        else:
            now += rng.randrange(2)
            taken, earliest = prepared.take(now), min(due.values(), default=now + 1.0)
            assert (due.pop(taken) if taken >= 0 else earliest) == earliest
            assert (taken >= 0) == (earliest <= now)
        assert prepared.next_ready() == min(due.values(), default=None)
        assert (len(prepared), host in prepared.by_number, prepared.job(host)) == (
            len(jobs),
            host in jobs,
            jobs.get(host, -1),
        )
        assert host not in jobs or prepared.ready_at(host) == due.get(host)
        if step % 200 == 0:
            prepared.check()
            assert sorted(prepared.by_number) == sorted(jobs)
            assert [prepared.count(one) for one in range(4)] == [list(jobs.values()).count(one) for one in range(4)]
            assert len(prepared.scheduled) <= 2 * 30 + 64 + 1


@pytest.mark.parametrize(("after_s", "valid"), [(-1.0, False), (0.0, True), (VALID_S, True), (VALID_S + 1.0, False)])
def test_a_robots_txt_counts_for_the_page_that_it_is_for(after_s: float, valid: bool) -> None:
    """From its arrival, for an hour, for its origin and its host."""
    prepared = PreparedHosts()
    prepared.requested(1, 7, "http://a.test")
    assert not prepared.is_valid(1, "http://a.test", 100.0)
    prepared.fetched(1, 8, "http://a.test", 100.0)
    assert prepared.job(1) == 7
    assert prepared.is_valid(1, "http://a.test", 100.0 + after_s) == valid
    assert not prepared.is_valid(1, "https://a.test", 100.0)
    assert not prepared.is_valid(2, "http://a.test", 100.0)
    prepared.fetched(1, 8, "https://a.test", 200.0)
    assert (prepared.job(1), prepared.is_valid(1, "https://a.test", 200.0)) == (8, True)
    prepared.fetched(2, 9, "http://b.test", 200.0)
    assert (prepared.job(2), prepared.is_valid(2, "http://b.test", 200.0)) == (9, True)
    prepared.check()


def link(number: int, depth: int = 3) -> bytes:
    return pack(Entry(bytes([number]) * 16, depth, url="http://a.test/"))


def test_a_quarter_of_the_held_links_may_be_outside_the_scope() -> None:
    """The others are only too deep; a link that is held again counts once, with its smaller depth."""
    held = HeldLinks()
    for number in range(2):
        assert held.has_room(True, 8)
        held.add(link(number), outside=True)
    assert (held.has_room(True, 8), held.has_room(False, 8)) == (False, True)
    key = bytes([0]) * 16
    assert [held.is_new(key, depth) for depth in (2, 3, 4)] == [True, False, False]
    held.add(link(0, 2), outside=True)
    assert (len(held), held.is_new(key, 2), held.has_room(True, 12)) == (2, False, True)
    for number in range(2, 8):
        assert held.has_room(False, 8)
        held.add(link(number), outside=False)
    assert not held.has_room(False, 8)
    held.discard(key)
    held.discard(key)
    assert (len(held), key in held, held.is_new(key, 9), held.has_room(False, 8)) == (7, False, True, True)
    assert held.has_room(True, 8) is False
    held.recount(1)
    assert held.has_room(True, 8)
    assert set(held.packed()) == {link(number) for number in range(1, 8)}


def test_jobs_and_partitions_share_the_limit_of_held_links() -> None:
    """Up to four partitions each have all of it."""
    assert [limit_of(jobs, 1) for jobs in (0, 1, 2)] == [LIMIT, LIMIT, LIMIT // 2]
    assert [limit_of(1, partitions) for partitions in (4, 8, 64)] == [LIMIT, LIMIT // 2, LIMIT // 16]
