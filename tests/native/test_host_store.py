"""The host store in memory: names, order within a queue, jobs, the workbench, and what is refused."""

from __future__ import annotations

from hashlib import md5
from types import ModuleType

import pytest

from .host_stores import drain, url


def test_hosts_have_small_ids(core: ModuleType) -> None:
    """A name has one id; ids are dense and used again after forget."""
    store = core.HostStore()
    assert [store.host(name) for name in ("a.test", "b.test", "a.test", "ü")] == [0, 1, 0, 2]
    assert (store.find("b.test"), store.find("c.test"), store.name(2), len(store)) == (1, -1, "ü", 3)
    assert store.forget(1)
    assert (store.find("b.test"), len(store), store.host("d.test"), store.name(1)) == (-1, 2, 1, "d.test")
    store.check()


def test_ids_stand_on_the_circle(core: ModuleType) -> None:
    """All hosts come in the order of the first four bytes of their MD5."""
    store = core.HostStore()
    names = [f"h{n}.test" for n in range(300)]
    for name in names:
        store.host(name)
    names.sort(key=lambda name: md5(name.encode()).digest()[:4])
    assert [store.name(host) for host in store.ids()] == names


def test_only_an_idle_host_is_forgotten(core: ModuleType) -> None:
    """A queued URL or a place on the workbench keeps a host; its state goes with it."""
    store = core.HostStore()
    host = store.host("a.test")
    store.set_state(host, b"pace")
    store.push(host, 1, 0, url(1))
    assert not store.forget(host)
    store.pop(host, 1)
    store.schedule(host, 5.0)
    assert not store.forget(host)
    store.unschedule(host)
    assert store.forget(host)
    assert store.state(store.host("a.test")) == b""
    store.check()


def test_order_then_arrival(core: ModuleType) -> None:
    """Smaller order first, within it the earlier; with newest_first the later."""
    store = core.HostStore()
    host = store.host("a.test")
    for number, order in enumerate([5, 0, 5, 1, 0, (1 << 24) - 1]):
        store.push(host, 7, order, url(number))
    assert store.items(host, 7, 2) == [(0, url(1)), (0, url(4))]
    assert drain(store, host, 7) == [url(n) for n in (1, 4, 3, 0, 2, 5)]
    for number, order in enumerate([5, 0, 5, 1, 0]):
        store.push(host, 7, order, url(number), True)
    assert drain(store, host, 7) == [url(n) for n in (4, 1, 3, 2, 0)]
    assert (store.peek(host, 7), store.pop(host, 7), store.length(host, 7)) == (None, None, 0)
    store.check()


def test_jobs_of_a_host_are_apart(core: ModuleType) -> None:
    """Each job has its queue; lengths are counted by host and by job."""
    store = core.HostStore()
    a, b = store.host("a"), store.host("b")
    store.push_many([a, b, a, a], 2, [3, 1, 2, 9], [url(n) for n in range(4)])
    store.push_many(b"".join(h.to_bytes(4, "little") for h in (a, b)), 0, [7, 8], [url(4), url(5)])
    assert store.head(a) == [(0, 7), (2, 2)]
    assert (store.jobs(a), store.jobs(b)) == ([(0, 1), (2, 3)], [(0, 1), (2, 1)])
    assert (store.queued(a), store.length(a, 2), store.job_length(2), store.job_length(9)) == (4, 3, 4, 0)
    assert (store.hosts_of(2), store.hosts_of(9)) == ([a, b], [])
    assert store.drop_queue(a, 2) == 3
    assert (store.drop_queue(a, 2), store.job_length(2), store.jobs(a)) == (0, 1, [(0, 1)])
    assert store.drop_job(0) == 2
    assert (store.job_length(0), store.queued(a), store.queued(b)) == (0, 0, 1)
    store.check()


def test_take_from_the_middle(core: ModuleType) -> None:
    """A URL goes by its fingerprint from anywhere in its queue, and only from that."""
    store = core.HostStore()
    host = store.host("a")
    for number in range(50):
        store.push(host, 1, number % 3, url(number))
    assert store.take(host, 1, url(31)[:16]) == url(31)
    assert store.take(host, 1, url(31)[:16]) is None
    assert store.take(host, 2, url(30)[:16]) is None
    assert drain(store, host, 1) == [url(n) for start in range(3) for n in range(start, 50, 3) if n != 31]
    store.push(host, 1, 0, url(1))
    assert (store.take(host, 1, url(1)[:16]), store.jobs(host), store.job_length(1)) == (url(1), [], 0)
    store.check()


def test_the_workbench(core: ModuleType) -> None:
    """Hosts come out by the instant they are ready at, moved ones by the last, none before it."""
    store = core.HostStore()
    a, b, c = (store.host(name) for name in "abc")
    for host, at in ((a, 3.0), (b, 1.0), (c, 2.0), (a, 0.5)):
        store.schedule(host, at)
    assert (store.waiting(), store.next_ready(), store.ready_at(a)) == (3, 0.5, 0.5)
    assert store.scheduled(2) == [(a, 0.5), (b, 1.0)]
    assert store.scheduled(0) == [(a, 0.5), (b, 1.0), (c, 2.0)]
    store.unschedule(b)
    assert [store.take_ready(1.9), store.take_ready(1.9), store.take_ready(2.0)] == [a, -1, c]
    assert (store.ready_at(a), store.next_ready(), store.waiting(), store.take_ready(9e9)) == (None, None, 0, -1)
    store.unschedule(a)
    store.schedule(c, float("inf"))
    assert store.take_ready(9e9) == -1
    store.check()


def test_equal_instants_go_by_id(core: ModuleType) -> None:
    """Hosts that are ready at once come out in the order of their ids, in both implementations."""
    store = core.HostStore()
    hosts = [store.host(str(n)) for n in range(20)]
    for host in reversed(hosts):
        store.schedule(host, 1.0)
    assert [store.take_ready(1.0) for _ in hosts] == hosts


def test_states_are_kept_as_given(core: ModuleType) -> None:
    """Bytes of any kind; none are none."""
    store = core.HostStore()
    host = store.host("a")
    for blob in (b"", b"\0\xff", b"x" * 100_000, b""):
        store.set_state(host, blob)
        assert store.state(host) == blob


WRONG = [
    lambda s: s.push(0, 0, 1 << 24, url(1)),
    lambda s: s.push(0, 0, -1, url(1)),
    lambda s: s.push(0, 1 << 32, 0, url(1)),
    lambda s: s.push(0, -1, 0, url(1)),
    lambda s: s.push(5, 0, 0, url(1)),
    lambda s: s.push(0, 0, 0, b"x" * 15),
    lambda s: s.push(0, 0, 0, b"x" * 65537),
    lambda s: s.push_many([0, 0], 0, [1, 2], [url(1)]),
    lambda s: s.push_many([0, 0], 0, [1, 1 << 24], [url(1), url(2)]),
    lambda s: s.push_many([0, 9], 0, [1, 1], [url(1), url(2)]),
    lambda s: s.push_many(b"\0\0\0\0\0", 0, [1], [url(1)]),
    lambda s: s.take(0, 0, b"short"),
    lambda s: s.name(1),
    lambda s: s.pop(1, 0),
    lambda s: s.state(-1),
    lambda s: s.schedule(0, float("nan")),
    lambda s: s.schedule_idle([0], float("nan")),
    lambda s: s.schedule_idle([0, 9], 1.0),
    lambda s: s.host("x" * 65536),
    lambda s: s.checkpoint(),
    lambda s: s.restore(b""),
]


@pytest.mark.parametrize("call", WRONG)
def test_what_cannot_be_is_refused(core: ModuleType, call) -> None:
    """A wrong number or length is a ValueError and changes nothing, not even half a batch."""
    store = core.HostStore()
    store.host("a")
    with pytest.raises((ValueError, OverflowError)):
        call(store)
    assert (len(store), store.queued(0), store.waiting(), store.stats()["arrivals"]) == (1, 0, 0, 0)
    store.check()


def test_the_longest_url_and_name(core: ModuleType) -> None:
    """64 KiB of URL and 64 KiB less one of name come back whole, for the job of the highest number."""
    store = core.HostStore()
    host = store.host("x" * 65535)
    store.push(host, 2**32 - 1, 0, b"u" * 65536)
    assert (store.name(host), store.pop(host, 2**32 - 1)) == ("x" * 65535, b"u" * 65536)


def test_names_go_and_come(core: ModuleType) -> None:
    """Hosts forgotten and made by the thousand leave the right ones, and no memory behind."""
    store = core.HostStore()
    for turn in range(30):
        for n in range(200):
            store.host(f"turn-{turn}-host-{n}.test")
        for n in range(0, 200, 2):
            assert store.forget(store.find(f"turn-{turn}-host-{n}.test"))
        store.check()
    assert len(store) == 3000
    for turn in range(30):
        assert [store.find(f"turn-{turn}-host-{n}.test") >= 0 for n in range(4)] == [False, True, False, True]
    before = store.nbytes
    for n in range(20_000):
        assert store.forget(store.host(f"passing-{n}.test"))
    assert store.nbytes < before * 1.2 + 4096
