"""What the tests of the host store share: URLs, a naive model, and random operations on both."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

ARRIVALS = 1 << 40


def url(number: int, host: str = "h", size: int = 60) -> bytes:
    """A packed URL: fingerprint, then something as long as a URL."""
    key = md5(host.encode()).digest()[:4] + md5(b"%d" % number).digest()[:12]
    return key + (b"%d " % number).ljust(size - 16, b".")


def drain(store: Any, host: int, job: int) -> list[bytes]:
    """All URLs of a queue, popped."""
    out = []
    while (packed := store.pop(host, job)) is not None:
        out.append(packed)
    return out


@dataclass
class Model:
    """Dicts of sorted lists; hosts by name, as ids may change at a restore."""

    queues: dict[tuple[str, int], list[tuple[int, int, bytes]]] = field(default_factory=dict)
    """(order, arrival or its negation, packed)."""
    states: dict[str, bytes] = field(default_factory=dict)
    ready: dict[str, float] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    arrivals: int = 0

    def copy(self) -> Model:
        """As it is now."""
        queues = {place: list(items) for place, items in self.queues.items()}
        return Model(queues, dict(self.states), dict(self.ready), set(self.hosts), self.arrivals)

    def push(self, name: str, job: int, order: int, packed: bytes, newest: bool) -> None:
        """Queue a URL."""
        arrival = ARRIVALS - 1 - self.arrivals if newest else self.arrivals
        self.arrivals += 1
        items = self.queues.setdefault((name, job), [])
        items.append((order, arrival, packed))
        items.sort()

    def remove(self, name: str, job: int, packed: bytes) -> None:
        """Take a URL out."""
        items = self.queues[name, job]
        items[:] = [item for item in items if item[2] != packed]
        if not items:
            del self.queues[name, job]

    def jobs(self, name: str) -> list[tuple[int, int]]:
        """(job, URLs) of a host."""
        return sorted((job, len(items)) for (host, job), items in self.queues.items() if host == name)


def compare(store: Any, model: Model) -> None:
    """Everything that a store says about itself is what the model says."""
    store.check()
    assert len(store) == len(model.hosts)
    ids = store.ids()
    names = [store.name(host) for host in ids]
    assert names == sorted(model.hosts, key=lambda name: (md5(name.encode()).digest()[:4], name))
    for host, name in zip(ids, names, strict=True):
        assert store.find(name) == host
        assert store.state(host) == model.states.get(name, b"")
        assert store.ready_at(host) == model.ready.get(name)
        assert store.jobs(host) == model.jobs(name)
        assert store.queued(host) == sum(length for _, length in model.jobs(name))
        assert store.head(host) == [(job, model.queues[name, job][0][0]) for job, _ in model.jobs(name)]
        for job, length in model.jobs(name):
            items = model.queues[name, job]
            assert store.length(host, job) == length
            assert store.peek(host, job) == items[0][2]
            assert store.items(host, job) == [(order, packed) for order, _, packed in items]
    for job in {job for _, job in model.queues} | {0}:
        wanted = [name for name, other in model.queues if other == job]
        assert store.job_length(job) == sum(len(model.queues[name, job]) for name in wanted)
        assert sorted(map(store.name, store.hosts_of(job))) == sorted(wanted)
    assert store.waiting() == len(model.ready)
    assert store.next_ready() == min(model.ready.values(), default=None)
    times = store.scheduled(0)
    assert [at for _, at in times] == sorted(model.ready.values())
    assert {store.name(host): at for host, at in times} == model.ready


class Walk:
    """Random operations on a store and the model. What changes queues is noted, to be replayed after a crash."""

    def __init__(self, seed: int, store: Any, jobs: int = 3, hosts: int = 12) -> None:
        self.rng = random.Random(seed)
        self.store = store
        self.model = Model()
        self.jobs = jobs
        self.names = [f"host-{n}.test" for n in range(hosts)]
        self.done: list[Callable[[Any], object]] = []
        self.numbers = 0

    def step(self) -> None:
        """One operation, by weight."""
        actions = [self.push] * 8 + [self.pop] * 6 + [self.take] * 2 + [self.bench] * 4 + [self.ready] * 2
        self.rng.choice([*actions, self.state, self.forget, self.drop, self.batch])()

    def do(self, action: Callable[[Any], Any]) -> Any:
        """On the store, now and at a replay."""
        self.done.append(action)
        return action(self.store)

    def new_url(self, name: str) -> bytes:
        """One that was not there before; now and then a long one."""
        self.numbers += 1
        size = 60_000 if self.rng.random() < 0.003 else self.rng.randrange(60, 160)
        return url(self.numbers, name, size)

    def place(self) -> tuple[str, int] | None:
        """Some queue with URLs."""
        return self.rng.choice(sorted(self.model.queues)) if self.model.queues else None

    def push(self) -> None:
        """One URL."""
        name, job, order = self.rng.choice(self.names), self.rng.randrange(self.jobs), self.rng.randrange(4)
        packed, newest = self.new_url(name), self.rng.random() < 0.3
        self.model.hosts.add(name)
        self.model.push(name, job, order, packed, newest)
        self.do(lambda s: s.push(s.host(name), job, order, packed, newest))

    def batch(self) -> None:
        """A page's worth."""
        rows = [(self.rng.choice(self.names), self.rng.randrange(4)) for _ in range(self.rng.randrange(40))]
        urls, job = [self.new_url(name) for name, _ in rows], self.rng.randrange(self.jobs)
        for (name, order), packed in zip(rows, urls, strict=True):
            self.model.hosts.add(name)
            self.model.push(name, job, order, packed, False)
        orders = [order for _, order in rows]
        self.do(lambda s: s.push_many([s.host(name) for name, _ in rows], job, orders, urls))

    def pop(self) -> None:
        """The next URL; a replay takes it, as a log says which it was."""
        if (place := self.place()) is None:
            return
        name, job = place
        packed = self.model.queues[place][0][2]
        self.model.remove(name, job, packed)
        assert self.store.pop(self.store.find(name), job) == packed
        self.done.append(lambda s: s.take(s.find(name), job, packed[:16]))

    def take(self) -> None:
        """A URL from the middle, or one that is not there."""
        if (place := self.place()) is None:
            return
        name, job = place
        if self.rng.random() < 0.2:
            assert self.store.take(self.store.find(name), job, bytes(16)) is None
            return
        packed = self.rng.choice(self.model.queues[place])[2]
        self.model.remove(name, job, packed)
        assert self.do(lambda s: s.take(s.find(name), job, packed[:16])) == packed

    def bench(self) -> None:
        """Schedule, move or unschedule."""
        name, at = self.rng.choice(self.names), float(self.rng.randrange(100))
        self.model.hosts.add(name)
        draw = self.rng.random()
        if draw < 0.2:
            self.model.ready.pop(name, None)
            self.do(lambda s: s.unschedule(s.host(name)))
        elif draw < 0.4:
            names = list(dict.fromkeys([name, self.rng.choice(self.names)]))
            self.model.hosts.update(names)
            self.model.ready.update({other: at for other in names if other not in self.model.ready})
            self.do(lambda s: s.schedule_idle([s.host(other) for other in names], at))
        else:
            self.model.ready[name] = at
            self.do(lambda s: s.schedule(s.host(name), at))

    def ready(self) -> None:
        """Take the host that is ready."""
        now = float(self.rng.randrange(60))
        host = self.store.take_ready(now)
        first = min(self.model.ready.values(), default=now + 1)
        assert (host >= 0) == (first <= now)
        if host >= 0:
            name = self.store.name(host)
            assert self.model.ready.pop(name) == first
            self.done.append(lambda s: s.unschedule(s.find(name)))

    def state(self) -> None:
        """Set a host's bytes, or take them away."""
        name, blob = self.rng.choice(self.names), self.rng.randbytes(self.rng.choice([0, 1, 50, 3000]))
        self.model.hosts.add(name)
        self.model.states[name] = blob
        self.do(lambda s: s.set_state(s.host(name), blob))

    def forget(self) -> None:
        """Only a host with nothing goes."""
        if not self.model.hosts:
            return
        name = self.rng.choice(sorted(self.model.hosts))
        idle = not self.model.jobs(name) and name not in self.model.ready
        assert self.do(lambda s: s.forget(s.find(name))) is idle
        if idle:
            self.model.hosts.discard(name)
            self.model.states.pop(name, None)

    def drop(self) -> None:
        """A queue, seldom a job."""
        if (place := self.place()) is None:
            return
        name, job = place
        if self.rng.random() < 0.2:
            places = [p for p in self.model.queues if p[1] == job]
            wanted = sum(len(self.model.queues.pop(p)) for p in places)
            assert self.do(lambda s: s.drop_job(job)) == wanted
        else:
            wanted = len(self.model.queues.pop(place))
            assert self.do(lambda s: s.drop_queue(s.find(name), job)) == wanted
