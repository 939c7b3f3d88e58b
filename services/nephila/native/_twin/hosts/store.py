"""The table of hosts: names and ids, states, queues per job, the workbench. All of it in memory between checkpoints.

Invariant: a queue that is empty is not there; `job_length` is the sum of its queues. No host goes away but by `forget`.
"""

from __future__ import annotations

import math
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import md5

from nephila.native._twin.hosts.bench import Bench
from nephila.native._twin.hosts.disk import Directory, Found
from nephila.native._twin.hosts.queue import ARRIVALS, ORDERS, Queue, sort_key

_JOBS = 1 << 32
_LONGEST_NAME = 65535
_SHORTEST, _LONGEST = 16, 65536
_LONGEST_STATE = 1 << 24


class _Host:
    __slots__ = ("name", "queues", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = b""
        self.queues: dict[int, Queue] = {}

    def queued(self) -> int:
        return sum(len(queue.items) for queue in self.queues.values())


class HostStore:
    """Hosts with their queues; see native/README.md. Push and pop O(log n), the rest as said there. A checkpoint
    writes everything: `merge_bytes` changes nothing here."""

    def __init__(self, directory: str = "", *, read_only: bool = False, merge_bytes: int = 0) -> None:
        self._disk = Directory(directory, read_only) if directory else None
        self._ids: dict[str, int] = {}
        self._hosts: list[_Host | None] = []
        self._free: list[int] = []
        self._bench = Bench()
        self._jobs: Counter[int] = Counter()
        self._arrivals = 0

    # hosts

    def host(self, name: str) -> int:
        """The id of a host, made when it is new. O(1)."""
        known = self._ids.get(name)
        if known is not None:
            return known
        if len(name.encode()) > _LONGEST_NAME:
            raise ValueError("a host name has at most 65,535 bytes")
        if self._free:
            host = self._free.pop()
            self._hosts[host] = _Host(name)
        else:
            host = len(self._hosts)
            self._hosts.append(_Host(name))
        self._ids[name] = host
        return host

    def find(self, name: str) -> int:
        """The id of a host, or -1."""
        return self._ids.get(name, -1)

    def _at(self, host: int) -> _Host:
        found = self._hosts[host] if 0 <= host < len(self._hosts) else None
        if found is None:
            raise ValueError(f"no host has the id {host}")
        return found

    def name(self, host: int) -> str:
        """The name of a host."""
        return self._at(host).name

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> list[int]:
        """All hosts by (first four bytes of the name's MD5, name). O(n log n)."""

        def place(name: str) -> tuple[bytes, str]:
            return md5(name.encode(), usedforsecurity=False).digest()[:4], name

        return [self._ids[name] for name in sorted(self._ids, key=place)]

    def forget(self, host: int) -> bool:
        """Drop a host that has no queued URL and is not scheduled; was it dropped? Its id may be used again."""
        found = self._at(host)
        if found.queues or host in self._bench.at:
            return False
        self._hosts[host] = None
        del self._ids[found.name]
        self._free.append(host)
        return True

    def state(self, host: int) -> bytes:
        """What `set_state` was last given, or nothing."""
        return self._at(host).state

    def set_state(self, host: int, blob: bytes) -> None:
        """Keep some bytes with the host, at most 16 MiB."""
        if len(blob) > _LONGEST_STATE:
            raise ValueError("a host's state has at most 16 MiB")
        self._at(host).state = bytes(blob)

    # queues

    def push(self, host: int, job: int, order: int, packed: bytes, newest_first: bool = False) -> None:
        """Queue one URL; `order` below 2^24, the smaller first. ValueError for what cannot be."""
        self.push_many([host], job, [order], [packed], newest_first)

    def push_many(
        self,
        hosts: Sequence[int] | bytes,
        job: int,
        orders: Sequence[int],
        packed: Sequence[bytes],
        newest_first: bool = False,
    ) -> None:
        """Queue several URLs, all or none; `hosts` may be u32 little-endian in a buffer."""
        ids = _ids_of(hosts)
        if not len(ids) == len(orders) == len(packed):
            raise ValueError("hosts, orders and packed URLs must be as many")
        found = [self._at(host) for host in ids]
        self._check(job, orders, packed)
        for host, order, item in zip(found, orders, packed, strict=True):
            queue = host.queues.get(job)
            if queue is None:
                queue = host.queues[job] = Queue()
            queue.push(sort_key(order, self._arrivals, newest_first), bytes(item))
            self._arrivals += 1
        self._jobs[job] += len(ids)

    def _check(self, job: int, orders: Sequence[int], packed: Sequence[bytes]) -> None:
        if not 0 <= job < _JOBS:
            raise ValueError("a job is a number from 0 to 2^32 - 1")
        if any(not 0 <= order < ORDERS for order in orders):
            raise ValueError("an order is a number from 0 to 2^24 - 1")
        if any(not _SHORTEST <= len(item) <= _LONGEST for item in packed):
            raise ValueError("a packed URL has 16 to 65,536 bytes")
        if self._arrivals + len(packed) > ARRIVALS:
            raise ValueError("more than 2^39 URLs have been queued")

    def peek(self, host: int, job: int) -> bytes | None:
        """The next URL, left where it is."""
        queue = self._at(host).queues.get(job)
        return queue.items[0][1] if queue else None

    def head(self, host: int) -> list[tuple[int, int]]:
        """(job, order of its next URL), rising by job."""
        return [(job, queue.items[0][0] >> 40) for job, queue in sorted(self._at(host).queues.items())]

    def pop(self, host: int, job: int) -> bytes | None:
        """The next URL, taken out; None when there is none."""
        found = self._at(host)
        queue = found.queues.get(job)
        if queue is None:
            return None
        packed = queue.pop()
        self._went(found, job, queue)
        return packed

    def take(self, host: int, job: int, url_key: bytes) -> bytes | None:
        """A URL with this fingerprint, taken out of wherever it stands; None when it is not there. O(n)."""
        if len(url_key) != 16:
            raise ValueError("a fingerprint has 16 bytes")
        found = self._at(host)
        queue = found.queues.get(job)
        packed = queue.take(bytes(url_key)) if queue else None
        if queue is not None and packed is not None:
            self._went(found, job, queue)
        return packed

    def _went(self, host: _Host, job: int, queue: Queue) -> None:
        self._jobs[job] -= 1
        if not queue.items:
            del host.queues[job]

    def length(self, host: int, job: int) -> int:
        """URLs of a job on a host."""
        queue = self._at(host).queues.get(job)
        return len(queue.items) if queue else 0

    def queued(self, host: int) -> int:
        """URLs of all jobs on a host."""
        return self._at(host).queued()

    def job_length(self, job: int) -> int:
        """URLs of a job on all hosts. O(1)."""
        return self._jobs[job]

    def jobs(self, host: int) -> list[tuple[int, int]]:
        """(job, URLs), rising by job, of those that have any."""
        return [(job, len(queue.items)) for job, queue in sorted(self._at(host).queues.items())]

    def items(self, host: int, job: int, limit: int = 0) -> list[tuple[int, bytes]]:
        """(order, packed) of the next `limit` URLs, of all when it is 0."""
        queue = self._at(host).queues.get(job)
        return [(key >> 40, packed) for key, packed in queue.ordered(limit)] if queue else []

    def drop_queue(self, host: int, job: int) -> int:
        """Drop the URLs of a job on a host; how many."""
        queue = self._at(host).queues.pop(job, None)
        went = len(queue.items) if queue else 0
        self._jobs[job] -= went
        return went

    def drop_job(self, job: int) -> int:
        """Drop the URLs of a job; how many. O(hosts)."""
        return sum(self.drop_queue(host, job) for host in self.hosts_of(job))

    def hosts_of(self, job: int) -> list[int]:
        """Hosts with URLs of a job, rising. O(hosts)."""
        return [number for number, host in enumerate(self._hosts) if host and job in host.queues]

    # the workbench

    def schedule(self, host: int, at: float) -> None:
        """The host is ready at this instant; whatever was said before is forgotten."""
        self._at(host)
        self._bench.schedule(host, at)

    def unschedule(self, host: int) -> None:
        """The host waits for nothing."""
        self._at(host)
        self._bench.at.pop(host, None)

    def ready_at(self, host: int) -> float | None:
        """When the host is ready; None when it is not scheduled."""
        self._at(host)
        return self._bench.at.get(host)

    def next_ready(self) -> float | None:
        """When the first host is ready."""
        first = self._bench.first()
        return None if first is None else first[0]

    def take_ready(self, now: float) -> int:
        """The host that has been ready longest, taken out; -1 when none is."""
        return self._bench.take(now)

    def waiting(self) -> int:
        """How many hosts are scheduled."""
        return len(self._bench.at)

    def scheduled(self, limit: int) -> list[tuple[int, float]]:
        """(host, instant) of the next `limit`, of all when it is 0."""
        return self._bench.ordered(limit)

    # checkpoints

    def _directory(self) -> Directory:
        if self._disk is None:
            raise ValueError("this host store has no directory")
        return self._disk

    def checkpoint(self) -> bytes:
        """Write everything; a manifest. OSError when the disk refuses: the store goes on as it was."""
        disk = self._directory()
        if disk.read_only:
            raise ValueError("this host store is read-only")
        return disk.save(self._arrivals, map(self._found, (n for n, host in enumerate(self._hosts) if host)))

    def _found(self, number: int) -> Found:
        host = self._at(number)
        queues = [(job, queue.ordered(0)) for job, queue in sorted(host.queues.items())]
        return host.name, self._bench.at.get(number), host.state, queues

    def restore(self, manifest: bytes) -> None:
        """Become what the manifest names. Hosts may get other ids. ValueError for what is missing or damaged."""
        disk = self._directory()
        if self._hosts or self._arrivals:
            raise ValueError("a host store is restored when it is new")
        fresh = HostStore()
        fresh._arrivals = disk.load(bytes(manifest), fresh._add)
        fresh._disk = disk
        self.__dict__.update(fresh.__dict__)

    def _add(self, found: Found) -> None:
        name, ready_at, state, queues = found
        number = self.host(name)
        host = self._at(number)
        host.state = state
        if ready_at is not None:
            self._bench.schedule(number, ready_at)
        for job, items in queues:
            host.queues[job] = Queue(items)
            self._jobs[job] += len(items)

    def cleanup(self) -> None:
        """Delete the files that the last checkpoint or restore does not name."""
        self._directory().cleanup()

    # figures

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use (estimate). O(1)."""
        urls = sum(self._jobs.values())
        return urls * 200 + len(self._ids) * 600 + sys.getsizeof(self._ids)

    def stats(self) -> dict[str, int]:
        """Figures by name."""
        urls = sum(self._jobs.values())
        return {
            "hosts": len(self._ids),
            "urls": urls,
            "urls_in_memory": urls,
            "scheduled": len(self._bench.at),
            "arrivals": self._arrivals,
            "runs": self._disk.runs if self._disk else 0,
            "run_bytes": self._disk.run_bytes if self._disk else 0,
            "slices": 0,
            "tombstones": 0,
            "written_bytes": self._disk.written_bytes if self._disk else 0,
        }

    def check(self) -> None:
        """All invariants; AssertionError. O(everything)."""
        jobs: Counter[int] = Counter()
        for name, number in self._ids.items():
            host = self._at(number)
            assert host.name == name
            for job, queue in host.queues.items():
                jobs[job] += len(queue.items)
                keys = [key for key, _ in queue.items]
                assert keys, "an empty queue is kept"
                assert len(set(keys)) == len(keys), "two URLs have one sort key"
                assert all(keys[(i - 1) // 2] < keys[i] for i in range(1, len(keys))), "a queue is no heap"
        assert +self._jobs == jobs, "a job's length is wrong"
        assert len(self._ids) + len(self._free) == len(self._hosts), "an id is lost"
        assert all(self._hosts[host] for host in self._bench.at), "a host that is gone is scheduled"
        assert not any(math.isnan(at) for at in self._bench.at.values())


def _ids_of(hosts: Sequence[int] | bytes) -> Sequence[int]:
    if not isinstance(hosts, bytes):
        return hosts
    if len(hosts) % 4:
        raise ValueError("host ids must come in records of 4 bytes")
    return struct.unpack(f"<{len(hosts) // 4}I", hosts)
