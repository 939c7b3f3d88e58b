"""A walk over the URLs of a job in pieces: in memory and on disk, while the queues change."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

from .host_stores import url


def walk(store: Any, job: int, limit: int, between: Any = lambda piece: None) -> list[tuple[int, bytes]]:
    """All pieces; `between` is called after each."""
    place, found = (0, 0, 0), []
    while place is not None:
        place, piece = store.walk(job, place, limit)
        assert len(piece) <= limit
        found += piece
        between(piece)
    return found


def test_a_walk_passes_every_url_of_its_job_once(core: ModuleType, tmp_path: Path) -> None:
    """On disk and in memory, with tombstones, beside other jobs, whatever the size of the pieces."""
    rng = random.Random(7)
    store = core.HostStore(str(tmp_path))
    hosts = [store.host(f"h{n}.test") for n in range(40)]
    wanted = set()
    for number in range(600):
        host, job = rng.choice(hosts[:20]), rng.choice([1, 1, 2])
        store.push(host, job, number % 5, url(number))
        wanted |= {(host, url(number))} if job == 1 else set()
        if number in (150, 400):
            store.checkpoint()
    for host, packed in sorted(wanted)[::7]:
        assert store.take(host, 1, packed[:16]) == packed
        wanted.remove((host, packed))
    for limit in (1, 7, 50, 10_000):
        found = walk(store, 1, limit)
        assert len(found) == len(wanted)
        assert set(found) == wanted
    store.check()


def test_no_piece_is_large_where_most_hosts_have_nothing(core: ModuleType) -> None:
    """The work of a piece is bounded by hosts, too."""
    store = core.HostStore()
    hosts = [store.host(f"h{n}.test") for n in range(1000)]
    store.push(hosts[990], 3, 0, url(1))
    place, piece = store.walk(3, (0, 0, 0), 5)
    assert piece == []
    assert 0 < place[0] < 990
    assert walk(store, 3, 5) == [(hosts[990], url(1))]
    assert walk(store, 4, 5) == []


def test_a_walk_goes_on_while_urls_come_and_go(core: ModuleType, tmp_path: Path) -> None:
    """For each URL that is popped, one that stays may be missed: the heap moves it to the front."""
    store = core.HostStore(str(tmp_path))
    host, other = store.host("a.test"), store.host("b.test")
    for number in range(300):
        store.push(host if number % 2 else other, 1, 3, url(number))
    store.checkpoint()
    for number in range(300, 400):
        store.push(host, 1, 3, url(number))
    gone: set[bytes] = set()
    counter = iter(range(1000, 2000))

    def change(piece: list[tuple[int, bytes]]) -> None:
        gone.add(store.pop(other, 1) or b"")
        store.push(host, 1, 9, url(next(counter)))
        if len(gone) in (5, 9):
            store.checkpoint()

    passed = {packed for _, packed in walk(store, 1, 20, change)}
    first = {url(number) for number in range(300)}
    assert len(first - gone - passed) <= len(gone)
    assert len(passed) > 250
    store.check()


def test_a_forgotten_host_is_passed_over(core: ModuleType) -> None:
    """Its number is free."""
    store = core.HostStore()
    for name in ("a.test", "b.test"):
        store.host(name)
    store.push(1, 1, 0, url(1))
    assert store.forget(0)
    assert walk(store, 1, 1) == [(1, url(1))]
