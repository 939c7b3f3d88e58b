"""The host store in Python objects: hosts, their queues of packed URLs for each job, and a heap of ready times.

Invariant: no queue is empty; the length of a job is the sum of its queues. A checkpoint writes everything, O(n).
"""

from __future__ import annotations

import heapq
import math
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import md5

from nephila.native.fallback.files import Checkpoints

_ORDERS, _ARRIVALS = 1 << 24, 1 << 39
_JOBS = 1 << 32
_LONGEST_NAME = 65535
_LONGEST_STATE = 1 << 24

_Item = tuple[int, bytes]
"""Sort key (order << 40 | arrival) and packed URL."""
_Saved = tuple[int, list[tuple[str, float | None, bytes, list[tuple[int, list[_Item]]]]]]
"""Arrivals; for each host its name, ready time, state, and (job, items) of its queues."""


_HOSTS_PER_URL = 32
"""Hosts without URLs of a job that cost a walk as much as one URL."""


class _Host:
    __slots__ = ("name", "queues", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = b""
        self.queues: dict[int, list[_Item]] = {}
        """Job → heap of items."""


class HostStore:
    """Hosts by small numbers. Push and pop O(log n); everything is in memory, so `merge_bytes` has no effect."""

    def __init__(self, directory: str = "", *, read_only: bool = False, merge_bytes: int = 0) -> None:
        self._files = Checkpoints(directory, "queue", "hosts") if directory else None
        self._read_only = read_only
        self._saved = False
        self._ids: dict[str, int] = {}
        self._hosts: list[_Host | None] = []
        self._free: list[int] = []
        self._ready: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        """Ready times; an entry that differs from `_ready` is out of date and is skipped."""
        self._jobs: Counter[int] = Counter()
        self._arrivals = 0
        self._written = 0

    # hosts

    def host(self, name: str) -> int:
        """The number of a host; a new host gets one. O(1)."""
        number = self._ids.get(name)
        if number is not None:
            return number
        if len(name.encode()) > _LONGEST_NAME:
            raise ValueError("a host name has at most 65,535 bytes")
        if not self._free:
            self._free.append(len(self._hosts))
            self._hosts.append(None)
        host = self._ids[name] = self._free.pop()
        self._hosts[host] = _Host(name)
        return host

    def find(self, name: str) -> int:
        """The number of a host, or -1."""
        return self._ids.get(name, -1)

    def _at(self, host: int) -> _Host:
        entry = self._hosts[host] if 0 <= host < len(self._hosts) else None
        if entry is None:
            raise ValueError(f"no host has the id {host}")
        return entry

    def name(self, host: int) -> str:
        return self._at(host).name

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> list[int]:
        """All hosts by (first four bytes of the name's MD5, name). O(n log n)."""

        def rank(name: str) -> tuple[bytes, str]:
            return md5(name.encode(), usedforsecurity=False).digest()[:4], name

        return [self._ids[name] for name in sorted(self._ids, key=rank)]

    def forget(self, host: int) -> bool:
        """Remove a host that has no URL and no ready time; was it removed? Its number may be used again."""
        entry = self._at(host)
        if entry.queues or host in self._ready:
            return False
        self._hosts[host] = None
        del self._ids[entry.name]
        self._free.append(host)
        return True

    def state(self, host: int) -> bytes:
        """The bytes of the last `set_state`."""
        return self._at(host).state

    def set_state(self, host: int, blob: bytes) -> None:
        """Keep some bytes with the host, at most 16 MiB."""
        if len(blob) > _LONGEST_STATE:
            raise ValueError("a host's state has at most 16 MiB")
        self._at(host).state = bytes(blob)

    # queues

    def push(self, host: int, job: int, order: int, packed: bytes, newest_first: bool = False) -> None:
        """Queue one URL; the smallest order (below 2^24) comes first."""
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
        if isinstance(hosts, bytes):
            if len(hosts) % 4:
                raise ValueError("host ids must come in records of 4 bytes")
            hosts = struct.unpack(f"<{len(hosts) // 4}I", hosts)
        if not len(hosts) == len(orders) == len(packed):
            raise ValueError("hosts, orders and packed URLs must be as many")
        entries = [self._at(host) for host in hosts]
        if not 0 <= job < _JOBS:
            raise ValueError("a job is a number from 0 to 2^32 - 1")
        if any(not 0 <= order < _ORDERS for order in orders):
            raise ValueError("an order is a number from 0 to 2^24 - 1")
        if any(not 16 <= len(item) <= 65536 for item in packed):
            raise ValueError("a packed URL has 16 to 65,536 bytes")
        if self._arrivals + len(packed) > _ARRIVALS:
            raise ValueError("more than 2^39 URLs have been queued")
        for host, order, item in zip(entries, orders, packed, strict=True):
            arrival = (1 << 40) - 1 - self._arrivals if newest_first else self._arrivals
            heapq.heappush(host.queues.setdefault(job, []), (order << 40 | arrival, bytes(item)))
            self._arrivals += 1
        self._jobs[job] += len(entries)

    def peek(self, host: int, job: int) -> bytes | None:
        """The next URL, not removed."""
        queue = self._at(host).queues.get(job)
        return queue[0][1] if queue else None

    def head(self, host: int) -> list[tuple[int, int]]:
        """(job, order of its next URL), sorted by job."""
        return [(job, queue[0][0] >> 40) for job, queue in sorted(self._at(host).queues.items())]

    def pop(self, host: int, job: int) -> bytes | None:
        """Remove the next URL; None when there is none."""
        entry = self._at(host)
        queue = entry.queues.get(job)
        if queue is None:
            return None
        packed = heapq.heappop(queue)[1]
        self._removed(entry, job, 1)
        return packed

    def take(self, host: int, job: int, url_key: bytes) -> bytes | None:
        """Remove the first URL with this fingerprint; None when there is none. O(n)."""
        if len(url_key) != 16:
            raise ValueError("a fingerprint has 16 bytes")
        entry = self._at(host)
        queue = entry.queues.get(job, [])
        item = min((item for item in queue if item[1][:16] == url_key), default=None)
        if item is None:
            return None
        queue.remove(item)
        heapq.heapify(queue)
        self._removed(entry, job, 1)
        return item[1]

    def _removed(self, host: _Host, job: int, count: int) -> None:
        self._jobs[job] -= count
        if not host.queues[job]:
            del host.queues[job]

    def length(self, host: int, job: int) -> int:
        """URLs of a job on a host."""
        return len(self._at(host).queues.get(job, ()))

    def queued(self, host: int) -> int:
        """URLs of all jobs on a host."""
        return sum(map(len, self._at(host).queues.values()))

    def job_length(self, job: int) -> int:
        """URLs of a job on all hosts. O(1)."""
        return self._jobs[job]

    def jobs(self, host: int) -> list[tuple[int, int]]:
        """(job, URLs), sorted by job."""
        return [(job, len(queue)) for job, queue in sorted(self._at(host).queues.items())]

    def items(self, host: int, job: int, limit: int = 0) -> list[tuple[int, bytes]]:
        """(order, packed) of the next `limit` URLs, of all when it is 0."""
        queue = self._at(host).queues.get(job, [])
        ordered = heapq.nsmallest(limit, queue) if limit else sorted(queue)
        return [(key >> 40, packed) for key, packed in ordered]

    def walk(
        self, job: int, place: tuple[int, int, int], limit: int
    ) -> tuple[tuple[int, int, int] | None, list[tuple[int, bytes]]]:
        """At most `limit` URLs of a job, (host, packed), from a place on, in no order, and the place behind them; None:
        they were the last. O(limit), however long the queues are; they may change between two pieces."""
        first, _, at = place
        items: list[tuple[int, bytes]] = []
        left = max(limit, 1) * _HOSTS_PER_URL + _HOSTS_PER_URL - 1
        for number in range(first, len(self._hosts)):
            if left < _HOSTS_PER_URL:
                return (number, 0, at), items
            left -= 1
            host = self._hosts[number]
            queue = host.queues.get(job, []) if host else []
            most = left // _HOSTS_PER_URL
            items += [(number, packed) for _, packed in queue[at : at + most]]
            if len(queue) - at > most:
                return (number, 0, at + most), items
            left -= max(len(queue) - at, 0) * _HOSTS_PER_URL
            at = 0
        return None, items

    def drop_queue(self, host: int, job: int) -> int:
        """Remove the URLs of a job on a host; how many."""
        count = len(self._at(host).queues.pop(job, ()))
        self._jobs[job] -= count
        return count

    def drop_job(self, job: int) -> int:
        """Remove the URLs of a job; how many. O(hosts)."""
        return sum(self.drop_queue(host, job) for host in self.hosts_of(job))

    def hosts_of(self, job: int) -> list[int]:
        """Hosts with URLs of a job, sorted. O(hosts)."""
        return [number for number, host in enumerate(self._hosts) if host and job in host.queues]

    # ready times

    def schedule(self, host: int, at: float) -> None:
        """Set the time when the host is ready."""
        self._at(host)
        if math.isnan(at):
            raise ValueError("a host cannot be ready at NaN")
        self._ready[host] = at
        heapq.heappush(self._heap, (at, host))
        if len(self._heap) > 2 * len(self._ready) + 16:
            self._heap = [(at, host) for host, at in self._ready.items()]
            heapq.heapify(self._heap)

    def schedule_idle(self, hosts: Sequence[int], at: float) -> None:
        """Schedule all of these hosts that are not scheduled."""
        if math.isnan(at):
            raise ValueError("a host cannot be ready at NaN")
        for host in [host for host in hosts if self.ready_at(host) is None]:
            self.schedule(host, at)

    def unschedule(self, host: int) -> None:
        """Remove the ready time of a host."""
        self._at(host)
        self._ready.pop(host, None)

    def ready_at(self, host: int) -> float | None:
        """The ready time of a host; None when it has none."""
        self._at(host)
        return self._ready.get(host)

    def next_ready(self) -> float | None:
        while self._heap and self._ready.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_ready(self, now: float) -> int:
        """Remove the ready time of the host that is ready longest; -1 when no host is ready."""
        first = self.next_ready()
        if first is None or first > now:
            return -1
        host = heapq.heappop(self._heap)[1]
        del self._ready[host]
        return host

    def waiting(self) -> int:
        """How many hosts have a ready time."""
        return len(self._ready)

    def scheduled(self, limit: int) -> list[tuple[int, float]]:
        """(host, ready time) of the first `limit`, of all when it is 0."""
        rows = sorted((at, host) for host, at in self._ready.items())
        return [(host, at) for at, host in (rows[:limit] if limit else rows)]

    # checkpoints

    def _directory(self) -> Checkpoints:
        if self._files is None:
            raise ValueError("this host store has no directory")
        return self._files

    def checkpoint(self) -> bytes:
        """Write everything; a manifest. OSError when the disk refuses: the store stays as it was."""
        files = self._directory()
        if self._read_only:
            raise ValueError("this host store is read-only")
        hosts = [
            (host.name, self._ready.get(number), host.state, list(host.queues.items()))
            for number, host in enumerate(self._hosts)
            if host
        ]
        manifest = files.write((self._arrivals, hosts))
        self._saved = True
        self._written += files.size_bytes
        return manifest

    def restore(self, manifest: bytes) -> None:
        """Fill a new store with what a manifest names; ValueError, in one line, for damage."""
        files = self._directory()
        if self._hosts or self._arrivals:
            raise ValueError("a host store is restored when it is new")
        saved: _Saved = files.read(bytes(manifest), _Saved)
        self._arrivals, hosts = saved
        for name, ready_at, state, queues in hosts:
            number = self.host(name)
            host = self._at(number)
            host.state, host.queues = state, dict(queues)
            self._jobs.update({job: len(items) for job, items in queues})
            if ready_at is not None:
                self.schedule(number, ready_at)
        self._saved = True

    def cleanup(self) -> None:
        """Delete the files that the last checkpoint or restore does not name."""
        if self._saved and not self._read_only:
            self._directory().cleanup()

    # figures

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use (estimate). O(jobs)."""
        return sum(self._jobs.values()) * 200 + len(self._ids) * 600 + sys.getsizeof(self._ids)

    def stats(self) -> dict[str, int]:
        """Figures by name."""
        urls = sum(self._jobs.values())
        size = self._files.size_bytes if self._files else 0
        return {
            "hosts": len(self._ids), "urls": urls, "urls_in_memory": urls, "scheduled": len(self._ready),
            "arrivals": self._arrivals, "runs": int(self._saved), "run_bytes": size,
            "slices": 0, "tombstones": 0, "written_bytes": self._written,
        }  # fmt: skip

    def check(self) -> None:
        """All invariants; AssertionError. O(everything)."""
        jobs: Counter[int] = Counter()
        for name, number in self._ids.items():
            host = self._at(number)
            assert host.name == name
            for job, queue in host.queues.items():
                assert queue, "an empty queue is kept"
                assert len({key for key, _ in queue}) == len(queue), "two URLs have one sort key"
                jobs[job] += len(queue)
        assert +self._jobs == jobs, "a job's length is wrong"
        assert len(self._ids) + len(self._free) == len(self._hosts), "an id is lost"
        assert all(self._hosts[host] for host in self._ready), "a removed host has a ready time"
