"""Taking URLs from ready hosts: leases, robots.txt first, ends without a fetch. Pure; the service publishes."""

from __future__ import annotations

import heapq
import itertools

from nephila.kernel.messages import FetchRequest, LeasedUrl, Outcome
from nephila.scheduler.endings import Endings
from nephila.scheduler.frontier import Frontier
from nephila.scheduler.host import Dispatch, Host, Outstanding
from nephila.scheduler.job import Job
from nephila.scheduler.queue import SEED, Entry, unpack
from nephila.scheduler.robots import origin_of, robots_request

ENDED_PER_TURN = 64
"""URLs of one host ended without a fetch in one go, so that a host full of forbidden URLs cannot hold up the others."""


class Dispatcher:
    """Hands out at most `concurrency` fetches and `window` URLs without receipt."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.endings = Endings(frontier, self.retry_later)
        self._delayed: list[tuple[float, int, Host, str, bytes]] = []
        self._order = itertools.count()

    @property
    def room(self) -> bool:
        """Whether another URL may be handed out. With no job open the hosts stay where they are: to take and park each
        of them, and to wake them all for one place in the page budget, would cost a walk over all hosts."""
        frontier = self.frontier
        return (
            frontier.in_fetch < frontier.config.concurrency
            and frontier.outstanding < frontier.config.window
            and any(job.open for job in frontier.jobs.values())
        )

    def next_event(self) -> float | None:
        """When time alone will give something to do; None when nothing waits for time. Without room only a lease
        that ends does: an outcome or a receipt makes room, and either starts a turn of its own."""
        lease = self._first_lease()
        fetch = self.next_fetch() if self.room else None
        if lease is None or fetch is None:
            return fetch if lease is None else lease
        return min(lease, fetch)

    def next_fetch(self) -> float | None:
        """When the next URL that waits for nothing but time may be fetched; None when none does."""
        ready = self.frontier.workbench.next_ready()
        if not self._delayed:
            return ready
        return self._delayed[0][0] if ready is None else min(ready, self._delayed[0][0])

    def retry_later(self, host: Host, job: str, packed: bytes, when: float) -> None:
        """Keep a URL aside until `when`; it then goes to the head of its host's queue."""
        heapq.heappush(self._delayed, (when, next(self._order), host, job, packed))

    def delayed(self) -> list[tuple[float, Host, str, bytes]]:
        """(when, host, job, packed URL) of everything kept aside."""
        return [(when, host, job, packed) for when, _, host, job, packed in self._delayed]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(everything)."""
        self.frontier.check([(host, job, packed) for _, _, host, job, packed in self._delayed])

    def dispatch(self, now: float, out: Dispatch) -> None:
        """Take URLs of ready hosts while there is room; requests and terminal rows go to `out`."""
        self._due(now, out)
        frontier = self.frontier
        workbench = frontier.workbench
        while self.room:
            host = workbench.take(now)
            if host is None:
                return
            self._serve(host, now, out)

    def _due(self, now: float, out: Dispatch) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            _, _, host, job, packed = heapq.heappop(self._delayed)
            host.push(job, packed, 0, head=True)
            self.frontier.schedule(host)
        until = self._first_lease()
        while until is not None and until <= now:
            self.endings.lease_expired(next(iter(self.frontier.leases)), now, out)
            until = self._first_lease()

    def _first_lease(self) -> float | None:
        leases = self.frontier.leases
        return leases[next(iter(leases))] if leases else None

    def _serve(self, host: Host, now: float, out: Dispatch) -> None:
        """One fetch from a ready host, and whatever ends without one on the way to it."""
        frontier = self.frontier
        for _ in range(ENDED_PER_TURN):
            job = self._next_job(host)
            if job is None:
                return
            if frontier.outstanding >= frontier.config.window:
                break
            queue = host.queues[job.uid]
            entry = unpack(queue.peek())
            if not job.ignore_robots and self._robots_first(host, entry, now, out):
                return  # the outcome of robots.txt puts the host back
            queue.pop()
            job.queued -= 1
            job.owed.discard(entry.url_key)
            if not self._ends_here(host, job, entry, out):
                self._lease(host, job, entry, now, out)
                break
        # Behind the hosts that are ready already: one with many forbidden URLs must not be first for ever.
        frontier.schedule(host, now)

    def _next_job(self, host: Host) -> Job | None:
        for uid, queue in host.queues.items():
            job = self.frontier.jobs.get(uid)
            if job is None or not len(queue):
                continue
            if job.may_take(queue.peek()[:16]):
                return job
            job.parked[host] = None
        return None

    def _robots_first(self, host: Host, entry: Entry, now: float, out: Dispatch) -> bool:
        """Ask for robots.txt when none is believed for the URL's origin; True when the URL has to wait for it."""
        origin = origin_of(entry.url, host.key)
        robots = host.robots.get(origin)
        if robots is not None and now < robots.expires:
            return False
        request = robots_request(origin, host)
        partition = self.frontier.partitions[host.partition]
        key = ("", request.url_key)
        if key not in partition.outstanding:
            entry = Entry(request.url_key, 0, 1, request.attempt - 1, 0, 0, request.url)
            leased = LeasedUrl(request.url_key, "", host.key, request.attempt)
            self.frontier.pending(partition).leased.append(leased)
            self._hand_out(host, request, Outstanding("", host, entry, request.attempt), now, out)
        return True

    def _ends_here(self, host: Host, job: Job, entry: Entry, out: Dispatch) -> bool:
        """Give the URL its terminal row when it may not or cannot be fetched."""
        end = self.endings.end_unfetched
        if job.left_scope(entry, host.key):
            end(host, job, entry, out, Outcome.DROPPED, "excluded")
            return True
        if job.ignore_robots:
            return False
        robots = host.robots[origin_of(entry.url, host.key)]
        if robots.policy == "failed":
            denied = robots.text.reason == "address"
            end(host, job, entry, out, Outcome.DENIED if denied else Outcome.FAILED, robots.text.reason)
        elif not robots.allows(self.frontier.config.agent, entry.url):
            end(host, job, entry, out, Outcome.DENIED, "robots")
        else:
            return False
        return True

    def _lease(self, host: Host, job: Job, entry: Entry, now: float, out: Dispatch) -> None:
        job.leased += 1
        request = FetchRequest(
            job.uid,
            entry.url_key,
            entry.url,
            host.key,
            fetch_no=entry.fetch_no,
            attempt=entry.attempts + 1,
            depth=entry.depth,
            hops=entry.hops,
            seed=bool(entry.flags & SEED),
        )
        frontier = self.frontier
        partition = frontier.partitions[host.partition]
        leased = LeasedUrl(entry.url_key, job.uid, host.key, request.attempt)
        frontier.pending(partition).leased.append(leased)
        self._hand_out(host, request, Outstanding(job.uid, host, entry, request.attempt), now, out)

    def _hand_out(self, host: Host, request: FetchRequest, waiting: Outstanding, now: float, out: Dispatch) -> None:
        frontier = self.frontier
        config = frontier.config
        partition = frontier.partitions[host.partition]
        start_by = now + config.start_by_s
        until = start_by + config.lease_s
        request.epoch = partition.epoch
        request.start_by = start_by + frontier.utc_offset
        request.lease_until = until + frontier.utc_offset
        key = (request.job, request.url_key)
        partition.outstanding[key] = waiting
        frontier.leases[key] = until
        frontier.outstanding += 1
        frontier.in_fetch += 1
        host.in_flight += 1
        out.requests.append((partition.number, request))

    def queue_restored(
        self, host: Host, job: Job, packed: bytes, depth: int, head: bool, wait_s: float, now: float
    ) -> None:
        """Put a URL back where the log says it was."""
        job.queued += 1
        if wait_s > 0:
            self.retry_later(host, job.uid, packed, now + wait_s)
        else:
            host.push(job.uid, packed, depth, head)
