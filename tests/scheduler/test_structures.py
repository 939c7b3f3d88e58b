"""Queue, workbench and seen: invariants under random operations."""

from __future__ import annotations

import random
from dataclasses import dataclass

from nephila.kernel.messages import QueuedUrl
from nephila.scheduler.queue import (
    SEED,
    JobQueue,
    host_of,
    pack,
    pack_queued,
    repack,
    unpack,
    unpack_queued,
)
from nephila.scheduler.seen import new_seen, slice_prefix
from nephila.scheduler.workbench import Workbench


def test_a_packed_url_comes_back_whole():
    """Counters, flags and a URL of any script survive; attempts and hops are clamped, not wrapped."""
    queued = QueuedUrl("j", b"k" * 16, "https://例え.test/ü?x=1", "h", 7, 3, 2, 1, False, True, 0.0)
    assert unpack_queued(pack_queued(queued), "j", "h") == queued
    entry = unpack(pack(b"k" * 16, 1, 1, 70_000, 999, SEED, b"http://a.test/"))
    assert (entry.attempts, entry.hops) == (65_535, 255)
    assert unpack(repack(entry, 4)).attempts == 4


def test_host_of_ignores_userinfo():
    """The authority without userinfo is the host key."""
    assert host_of("http://u:p@a.test:8080/x@y") == "a.test:8080"
    assert host_of("https://a.test/") == "a.test"


def test_queue_against_a_model():
    """Ten thousand random pushes and pops equal a sorted list by (head, depth, arrival)."""
    rng, queue, model = random.Random(3), JobQueue(), []
    for number in range(10_000):
        if model and rng.random() < 0.48:
            model.sort()
            assert queue.peek() == model[0][3]
            assert queue.pop() == model.pop(0)[3]
        else:
            depth, head = rng.randrange(5), rng.random() < 0.1
            item = pack(number.to_bytes(16, "big"), depth, 1, 0, 0, 0, b"u")
            queue.push(item, depth, head)
            model.append((0 if head else 1, 0 if head else depth, number, item))
        if number % 500 == 0:
            queue.check()
    model.sort()
    assert [packed for packed, _ in queue.items()] == [m[3] for m in model]
    assert len(queue) == len(model)


@dataclass(eq=False)
class Host:
    """The least a workbench needs."""

    name: int
    ready_at: float | None = None


def test_workbench_against_a_model():
    """Hosts come out in the order of their latest instant, never before it, and never twice."""
    rng, bench, hosts = random.Random(4), Workbench[Host](), [Host(i) for i in range(50)]
    model: dict[int, float] = {}
    now = 0.0
    for step in range(20_000):
        host = rng.choice(hosts)
        action = rng.random()
        if action < 0.4 and host.name not in model:
            model[host.name] = now + rng.random()
            bench.schedule(host, model[host.name])
        elif action < 0.5:
            model.pop(host.name, None)
            bench.remove(host)
        elif action < 0.6 and host.name in model:
            model[host.name] = now + rng.random()
            bench.remove(host)
            bench.schedule(host, model[host.name])
        else:
            now += rng.random() / 50
            taken = bench.take(now)
            due = {name: at for name, at in model.items() if at <= now}
            assert (taken is None) == (not due)
            if taken is not None:
                assert model.pop(taken.name) == min(due.values())
        if step % 1000 == 0:
            bench.check()
            assert {h.name for h in bench.waiting()} == set(model)


def test_seen_slices_put_together_are_the_whole():
    """The sorted dump cut by partition loses and doubles nothing, and each slice holds its prefix only."""
    rng, seen = random.Random(5), new_seen()
    keys = [rng.randbytes(16) for _ in range(2_000)] + [bytes(16), b"\xff" * 16]
    seen.add(b"".join(keys))
    dump = seen.dump()
    for partitions in (1, 4, 64):
        slices = [slice_prefix(dump, p, partitions) for p in range(partitions)]
        assert b"".join(slices) == dump
        for number, part in enumerate(slices):
            assert all(part[i] * partitions // 256 == number for i in range(0, len(part), 16))
