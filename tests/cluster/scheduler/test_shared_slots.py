"""Slots that partitions share, against a model of partitions with hosts."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import pytest
from nephila.scheduler.partition.shared_slots import SharedSlots
from nephila.scheduler.tenants.shares import Shares


class OneJob(NamedTuple):
    """What the shares know of a job."""

    uid: str
    weight: float
    tenant: str = ""


JOBS = {name: OneJob(name, weight) for name, weight in (("a", 3.0), ("b", 1.0), ("c", 1.0))}


class Partitions:
    """Ready hosts by partition and job. A turn takes slots as a dispatcher does."""

    def __init__(self, limit: int, count: int) -> None:
        self.ready = [Counter[str]() for _ in range(count)]
        self.flying: list[tuple[int, str]] = []
        self.due: list[int] = []
        self.served = Counter[str]()
        self.stopped: set[int] = set()
        self.slots = SharedSlots(limit, Shares(lambda _: 1.0), lambda: len(self.flying), self.due.append)

    def turn(self, number: int) -> None:
        if number in self.stopped:
            self.slots.leave(number)
            return
        while uid := self.slots.next(number, [JOBS[job] for job, hosts in self.ready[number].items() if hosts]):
            assert self.ready[number][uid] > 0
            self.ready[number][uid] -= 1
            self.flying.append((number, uid))
            self.served[uid] += 1

    def settle(self) -> None:
        while self.due:
            self.turn(self.due.pop(0))
            assert len(self.flying) <= self.slots.limit
        self.slots.check()

    def end(self, index: int) -> None:
        """A fetch ends, and its host is ready again."""
        number, job = self.flying.pop(index)
        self.ready[number][job] += 1
        self.due.append(number)


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_shares_hold_with_one_host_of_each_job_in_a_partition(hosts):
    """Eight partitions, six slots: 3:1:1 as long as every job has ready hosts somewhere."""
    model, rng = Partitions(6, 8), random.Random(1)
    for number in range(8):
        model.ready[number].update(dict.fromkeys(JOBS, hosts))
        model.due.append(number)
    model.settle()
    for _ in range(3000):
        model.end(rng.randrange(len(model.flying)))
        model.settle()
        assert len(model.flying) == 6
    total = sum(model.served.values())
    assert model.served["a"] / total == pytest.approx(0.6, abs=0.02)
    assert model.served["b"] / total == pytest.approx(0.2, abs=0.02)


def test_partitions_take_turns_for_a_job():
    model = Partitions(2, 4)
    for number in range(4):
        model.ready[number]["a"] = 3
        model.due.append(number)
    model.settle()
    served = Counter[int]()
    for _ in range(400):
        served[model.flying[0][0]] += 1
        model.end(0)
        model.settle()
    assert max(served.values()) - min(served.values()) <= 5


def test_random_operations_lose_no_slot():
    """Hosts come and go, partitions stop and start again, takeovers bring fetches: no slot stays free beside a host."""
    rng, model = random.Random(7), Partitions(5, 6)
    for _ in range(5000):
        action, number = rng.random(), rng.randrange(6)
        if action < 0.4 and model.flying:
            model.end(rng.randrange(len(model.flying)))
        elif action < 0.6:
            model.ready[number][rng.choice("abc")] += 1
        elif action < 0.7:
            model.ready[number].clear()
        elif action < 0.75:
            model.stopped ^= {number}
        elif action < 0.8 and model.flying:
            model.slots.refund(JOBS[model.flying[-1][1]])
        model.due.append(number)
        model.settle()
