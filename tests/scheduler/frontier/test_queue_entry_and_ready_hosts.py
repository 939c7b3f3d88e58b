"""Packed URLs and ready hosts: invariants under random operations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from nephila.kernel.messages import Context, QueuedUrl, Render, Seed, UrlState
from nephila.kernel.runtime.errors import PermanentError
from nephila.scheduler.frontier.ready_hosts import ReadyHosts
from nephila.scheduler.jobs.queue_entry import (
    SEED,
    Entry,
    entry_of,
    host_of,
    pack,
    pack_context,
    pack_queued,
    queued_of,
    unpack,
    unpack_context,
)


def test_a_packed_url_comes_back_whole():
    """Counters, flags and a URL of any script survive; attempts and hops are clamped, not wrapped."""
    queued = QueuedUrl("j", b"k" * 16, "https://例え.test/ü?x=1", "h", 7, 3, 2, 1, False, True, 0.0, 200)
    assert queued_of(unpack(pack_queued(queued)), "j", "h", head=False) == queued
    entry = unpack(pack(Entry(b"k" * 16, 1, 1, 70_000, 999, SEED, url="http://a.test/")))
    assert (entry.attempts, entry.hops) == (65_535, 255)


def test_a_context_travels_with_its_url_and_costs_nothing_when_empty():
    """Context and rendering survive packing and repacking; without them a URL has its header and its bytes."""
    context = Context("s1", "detail", "shop", "residential", "portal")
    queued = QueuedUrl(
        "j", b"k" * 16, "http://a.test/", "h", fetch_no=1, seed=True, context=context, render=Render.AUTO
    )
    entry = unpack(pack_queued(queued))
    assert (entry.url, unpack_context(entry.context), entry.render) == ("http://a.test/", context, Render.AUTO)
    assert unpack(pack(entry)) == entry == entry_of(queued)
    assert queued_of(entry, "j", "h", head=False) == queued
    assert pack_context(None) == pack_context(Context()) == b""
    assert len(pack(Entry(b"k" * 16, 1, url="http://a.test/"))) == 29 + 14
    with pytest.raises(PermanentError, match="at most 16,384 bytes, not"):
        pack_context(Context("x" * 16_384))


@pytest.mark.parametrize(
    "fields", [{}, {"seed": True, "attempts": 70_000}, {"render": Render.NEVER}, {"context": Context("s")}]
)
def test_the_short_way_of_a_restart_packs_the_same_bytes(fields: dict[str, Any]) -> None:
    """With and without what the log has in another form."""
    queued = QueuedUrl("j", b"k" * 16, "http://a.test/", "h", 7, 3, 2, priority=9, **fields)
    assert pack_queued(queued) == pack(entry_of(queued))


@pytest.mark.parametrize("message", [QueuedUrl, Seed, UrlState])
def test_a_field_of_an_entry_is_read_from_each_message_that_has_it(message: type[Any]) -> None:
    """A new field needs no line for it."""
    values = {name: 3 for name in Entry._fields if name in message.__struct_fields__ and name != "context"}
    assert {name: getattr(entry_of(message(**{**values, "url": "3"})), name) for name in values} == {
        **values,
        "url": "3",
    }


def test_host_of_ignores_userinfo():
    """The authority without userinfo is the host key."""
    assert host_of("http://u:p@a.test:8080/x@y") == "a.test:8080"
    assert host_of("https://a.test/") == "a.test"


def test_ready_hosts_against_a_model():
    """Each job gets the host with its best head, then the one ready longest; a host taken for one is gone for all."""
    rng, ready = random.Random(4), ReadyHosts()
    model: dict[int, dict[int, tuple[int, int]]] = {}
    for step in range(20_000):
        host, job = rng.randrange(50), rng.randrange(3)
        action = rng.random()
        if action < 0.35 and host not in ready:
            heads = [(j, rng.randrange(4)) for j in range(3) if rng.random() < 0.6] or [(job, 0)]
            ready.add(host, heads)
            model[host] = {j: (order, step) for j, order in heads}
        elif action < 0.45 and host in ready:
            order = rng.randrange(4)
            ready.offer(host, job, order)
            stamp = next(iter(model[host].values()))[1]
            model[host].setdefault(job, (order, stamp))
        elif action < 0.55:
            assert ready.discard(host) == (model.pop(host, None) is not None)
        else:
            standing = {h: jobs[job] for h, jobs in model.items() if job in jobs}
            best = min(standing, key=lambda h: standing[h]) if standing else -1
            assert ready.take(job) == best
            model.pop(best, None)
        assert len(ready) == len(model)
        if step % 500 == 0:
            ready.check()
            assert set(ready.jobs()) == {j for jobs in model.values() for j in jobs}


def test_the_host_that_has_been_ready_longest():
    """Offers do not make a host younger; a host that is taken or discarded is not ready."""
    ready = ReadyHosts()
    assert ready.ready_since() is None
    for host, now in ((7, 10.0), (8, 11.0), (9, 12.0)):
        ready.add(host, [(1, 5)], now)
    ready.offer(7, 2, 0)
    assert ready.ready_since() == 10.0
    assert ready.take(2) == 7
    assert ready.ready_since() == 11.0
    ready.discard(8)
    ready.add(8, [(1, 5)], 13.0)
    assert ready.ready_since() == 12.0
    ready.check()


def test_hosts_that_come_and_go_behind_a_slow_jobs_head_leave_nothing():
    """One job takes a host again and again for which another would only come later: its line there stays short."""
    ready = ReadyHosts()
    ready.add(0, [(2, 1)])
    for _ in range(1000):
        ready.add(1, [(1, 5), (2, 7)])
        assert ready.take(1) == 1
    ready.check()
    assert len(ready._heaps[2]) < 100
    assert ready.take(2) == 0
