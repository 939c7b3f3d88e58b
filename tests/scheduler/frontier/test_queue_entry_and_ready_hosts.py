"""Packed URLs and ready hosts: invariants under random operations."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.messages import Context, Render, UrlState
from nephila.kernel.runtime.errors import PermanentError
from nephila.scheduler.frontier.ready_hosts import ReadyHosts
from nephila.scheduler.jobs.queue_entry import (
    SEED,
    Entry,
    entry_flags,
    entry_of,
    fill,
    host_of,
    pack,
    pack_context,
    unpack,
    unpack_context,
)


def test_a_packed_url_comes_back_whole():
    """Counters, flags and a URL of any script survive; depth, attempts and hops are clamped, not wrapped."""
    entry = Entry(b"k" * 16, 7, 2, 1, 3, SEED, 200, "https://例え.test/ü?x=1")
    assert unpack(pack(entry)) == entry
    entry = unpack(pack(Entry(b"k" * 16, 1 << 40, 1, 70_000, 999, SEED, url="http://a.test/")))
    assert (entry.depth, entry.attempts, entry.hops) == ((1 << 32) - 1, 65_535, 255)


def test_a_context_travels_with_its_url_and_costs_nothing_when_empty():
    """Context and rendering survive packing and repacking; without them a URL has its header and its bytes."""
    context = Context("s1", "detail", "shop", "residential", "portal")
    packed = pack(
        Entry(b"k" * 16, flags=entry_flags(True, Render.AUTO), url="http://a.test/", context=pack_context(context))
    )
    entry = unpack(packed)
    assert (entry.url, unpack_context(entry.context), entry.render) == ("http://a.test/", context, Render.AUTO)
    assert pack(entry) == packed
    assert pack_context(None) == pack_context(Context()) == b""
    assert len(pack(Entry(b"k" * 16, 1, url="http://a.test/"))) == 29 + 14
    with pytest.raises(PermanentError, match="at most 16,384 bytes, not"):
        pack_context(Context("x" * 16_384))


@pytest.mark.parametrize("context", [None, Context("s")])
def test_a_fetched_url_is_queued_with_what_its_state_has(context: Context | None) -> None:
    """The state has no priority, attempts and hops; its number is that of the last fetch, also when it is filled."""
    state = UrlState("j", b"k" * 16, "http://a.test/", "a.test", 7, True, 2, context=context, render=Render.NEVER)
    entry = entry_of(state)
    assert entry == Entry(
        b"k" * 16, 7, 2, flags=entry_flags(True, Render.NEVER), url="http://a.test/", context=pack_context(context)
    )
    assert fill(UrlState("j", host="a.test", fetch_no=2), entry._replace(fetch_no=9)) == state


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
