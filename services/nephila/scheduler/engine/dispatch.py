"""Dispatch: takes URLs from ready hosts, leases them, fetches robots.txt first, ends what is not fetched. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from nephila.kernel.messages import FetchRequest
from nephila.kernel.reasons.table import Reason
from nephila.scheduler.engine import domain_budgets, recrawl_queue
from nephila.scheduler.engine.endings import Endings
from nephila.scheduler.engine.outcomes import OutcomeHandler
from nephila.scheduler.engine.unwanted import unwanted
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host, TurnOutput
from nephila.scheduler.frontier.in_flight import Outstanding
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import RENDER_SHIFT, SEED, Entry, unpack, unpack_context
from nephila.scheduler.jobs.strategies import HEAD
from nephila.scheduler.politeness.robots import origin_of, robots_request
from nephila.scheduler.tenants.shares import Sharer, Shares

ENDED_PER_TURN = 64
"""URLs of one host that end without a fetch in one go. A host full of forbidden URLs must not block the others."""
AHEAD = 4
"""One request in so many waits at the downloader beyond its slots: it shows there that hosts need slots, so that those
that answer slowly leave some."""
EFFORT_PER_TURN = 10_000_000
"""Limit of robots.txt rules times URL characters per turn, about 30 ms. With tens of thousands of rules one check takes
milliseconds, and such a host must not block the event loop."""
MOVED_PER_TURN = 4096
"""Hosts that become ready in one turn. A million due hosts must not block the event loop."""
READY_MAX = 100_000
"""Ready hosts listed by job, while every job that can go has one. The other hosts wait in the heap of the store."""


class Slots(Protocol):
    """Slots that several frontiers share; `SharedSlots` in `scheduler/cluster` states more."""

    def next(self, partition: int, able: Iterable[Sharer]) -> str:
        """The job that the partition fetches for now; the empty string when it has no slot."""

    def leave(self, partition: int) -> None:
        """The partition dispatches nothing now."""

    def refund(self, job: Sharer) -> None:
        """A job did not use its slot."""


class Dispatcher:
    """Leases at most fetches of `concurrency` slots and `window` URLs without receipt."""

    def __init__(self, frontier: Frontier, slots: Slots | None = None) -> None:
        """`slots`: shared with other frontiers; None: all of `concurrency` belongs to this one."""
        self.frontier = frontier
        self.endings = Endings(frontier)
        self.outcomes = OutcomeHandler(frontier, self.endings)
        self._slots = slots
        self._shares = Shares(frontier.quotas.share)
        self._refund: Callable[[], None] | None = None
        """Undoes the charge for a fetch that is not used yet."""
        self._lease_s = frontier.config.start_by_s + frontier.config.lease_s
        self._effort = 0
        """Effort of this turn, see EFFORT_PER_TURN."""

    @property
    def room(self) -> bool:
        """Whether another URL may be leased."""
        in_flight = self.frontier.in_flight
        return in_flight.slots < self._most_slots and len(in_flight.urls) < self.frontier.window

    @property
    def _most_slots(self) -> int:
        return self.frontier.concurrency + self.frontier.concurrency // AHEAD

    def next_event(self) -> float | None:
        """When time alone gives work; None when nothing waits for time. Without room only the end of a lease gives
        work: outcomes and receipts make room, and they start a turn themselves."""
        lease = self.frontier.in_flight.first_expiry()
        fetch = None
        if self._effort > EFFORT_PER_TURN:
            return self.frontier.time.now
        if self.room:
            # A job without budget for new pages may still have pages to fetch again.
            able = any(job.has_room for job in self.frontier.jobs.values())
            fetch = self.next_fetch() if able else recrawl_queue.next_due(self.frontier)
        hold = self.frontier.holds.next_check - self.frontier.time.utc_offset
        instants = (lease, fetch, hold if hold < math.inf else None)
        return min((at for at in instants if at is not None), default=None)

    def next_fetch(self) -> float | None:
        """When the next URL that waits only for time may be fetched; None for none."""
        frontier = self.frontier
        may_prepare = frontier.readiness.may_prepare
        begin = any(job.has_room and job.queue.length and may_prepare(job) for job in frontier.jobs.values())
        stored = frontier.store.next_ready() if begin else frontier.readiness.prepared.next_ready()
        paced = frontier.addresses.next_ready()
        instants = (stored, paced, frontier.delayed.first(), recrawl_queue.next_due(frontier))
        return min((at for at in instants if at is not None), default=None)

    def trim_hosts(self) -> None:
        """Evict host objects when there are too many, but not those of delayed URLs, which hold the number of their
        host."""
        self.frontier.hosts.trim(self.frontier.delayed.hosts)

    def _due(self, now: float, out: TurnOutput) -> None:
        frontier = self.frontier
        frontier.holds.apply()
        recrawl_queue.queue_due(frontier)
        while (taken := frontier.delayed.take(now)) is not None:
            host, job, packed = taken
            frontier.store.push(host, job.number, HEAD, packed)
            frontier.readiness.newly_queued(host, job, HEAD)
        in_flight = frontier.in_flight
        while (until := in_flight.first_expiry()) is not None and until <= now:
            self.outcomes.lease_expired(next(iter(in_flight.leases)), now, out)

    # ---- choice of host and job

    def dispatch(self, now: float, out: TurnOutput) -> None:
        """Take URLs from ready hosts while there is room. Requests and terminal rows go to `out`."""
        self._due(now, out)
        self._effort = 0
        self._dispatch_ready(now, out)
        if self.frontier.jobs.with_domains:
            domain_budgets.end_turn(self.frontier)
        if self._slots is not None and not self.room:
            self._slots.leave(self._partition)

    def stop(self) -> None:
        """The dispatcher hands out nothing more."""
        if self._slots is not None:
            self._slots.leave(self._partition)

    def _dispatch_ready(self, now: float, out: TurnOutput) -> None:
        frontier, moves, places = self.frontier, MOVED_PER_TURN, 0
        job: Job | None = None
        waiting, queues = frontier.readiness.waiting_for_address, frontier.addresses.heap
        hot, next_ready = frontier.hosts.hot, frontier.store.next_ready
        ready, prepared = frontier.readiness.ready, frontier.readiness.prepared
        in_flight, urls, most = frontier.in_flight, frontier.in_flight.urls, self._most_slots
        while in_flight.slots < most and len(urls) < frontier.window and self._effort <= EFFORT_PER_TURN:
            if (waiting or queues) and self._serve_waiting_for_address(now, out):
                places = 0
                continue
            is_due = prepared.scheduled or ((due_at := next_ready()) is not None and due_at <= now)
            if job is None or not places or is_due:
                moves -= self._fill(now, moves)
                job, places = self._choose()
                if job is None:
                    return
            number = ready.take(job.number)
            if number < 0:
                places = 0
                continue
            places -= 1
            self._serve(hot.get(number) or frontier.hosts.get(number), job, now, out)

    def _serve_waiting_for_address(self, now: float, out: TurnOutput) -> bool:
        """One fetch from the first host in an address queue; False when none has room."""
        frontier = self.frontier
        number = frontier.readiness.take_waiting_for_address()
        if number < 0:
            return False
        jobs = map(frontier.jobs.numbered.get, (job for job, _ in frontier.store.head(number)))
        able = [job for job in jobs if job is not None and job.has_room and not self._is_idle(job, number)]
        if able:
            job = able[0] if len(able) == 1 else self._next_share(able)
            self._serve(frontier.hosts.get(number), job, now, out, waiting_for_address=True)
        else:
            frontier.readiness.schedule(number, now)
        return True

    def _fill(self, now: float, limit: int) -> int:
        """Move due hosts from the heap to the ready ones; returns how many."""
        frontier = self.frontier
        store, readiness = frontier.store, frontier.readiness
        ready, prepared, moved = readiness.ready, readiness.prepared, 0
        while prepared.scheduled and moved < limit and (number := readiness.take_prepared()) >= 0:
            moved += 1
            self._make_ready(number, now)
        if len(ready.by_host) >= READY_MAX and not self._unserved_job_waits():
            return 0
        while moved < limit:
            number = store.take_ready(now)
            if number < 0:
                break
            moved += 1
            self._make_ready(number, now)
        return moved

    def _make_ready(self, number: int, now: float) -> None:
        """List a due host as ready for the jobs that can go there, or hold it back for them."""
        frontier = self.frontier
        numbered, prepared = frontier.jobs.numbered, frontier.readiness.prepared
        heads = frontier.store.head(number)
        going = []
        for head in heads:
            job = numbered.get(head[0])
            if job is not None and not self._is_idle(job, number):
                late = job.lateness(frontier.store.name(number)) if job.orders_hosts else 0
                going.append((head[0], head[1] + late) if late else head)
        is_prepared = number in prepared.by_number
        if is_prepared and prepared.job(number) not in (job for job, _ in going):
            prepared.discard(number)
            is_prepared = False
        if going:
            frontier.readiness.ready.add(number, going, now, is_prepared)
        else:
            jobs = [numbered[job] for job, _ in heads if job in numbered]
            frontier.readiness.set_waiting_for_job(number, (job for job in jobs if not job.queue.is_spent(number)))

    def _unserved_job_waits(self) -> bool:
        """Whether a job that could take a URL has no ready host. O(jobs); called only at READY_MAX."""
        served = set(self.frontier.readiness.ready.jobs())
        return any(
            job.has_room and job.number not in served and job.queue.length for job in self.frontier.jobs.values()
        )

    @staticmethod
    def _is_idle(job: Job, number: int) -> bool:
        return job.is_blocked or job.queue.is_idle_on(number)

    def _choose(self) -> tuple[Job, int] | tuple[None, int]:
        """The next job among those that can take a URL, and how many it may take before the choice is made again."""
        frontier = self.frontier
        numbered, ready = frontier.jobs.numbered, frontier.readiness.ready
        able = []
        for number in ready.jobs():
            job = numbered.get(number)
            if job is None or not job.has_room:
                continue
            if frontier.readiness.may_prepare(job) or ready.first_is_prepared(number):
                able.append(job)
        if self._slots is not None:
            return self._next_slot(self._slots, able)
        if len(able) > 1:
            return self._next_share(able), 1
        return (able[0], self._places(able[0])) if able else (None, 0)

    def _places(self, job: Job) -> int:
        """How many URLs the only job that can take some may take in a row. Each may need a lease or a robots.txt, and
        takes at most one place of the page budget."""
        if job.holds.rooms or job.budget.requisites:
            return 1
        prepared = 0 if job.compiled.ignore_robots else self.frontier.readiness.prepared.count(job.number)
        return max(job.budget.left - prepared, 1) if job.budget.max_pages else MOVED_PER_TURN

    def _next_share(self, able: list[Job]) -> Job:
        job = self.frontier.jobs[self._shares.next(able)]
        self._refund = partial(self._shares.refund, job)
        return job

    def _next_slot(self, slots: Slots, able: list[Job]) -> tuple[Job, int] | tuple[None, int]:
        uid = slots.next(self._partition, able)
        if not uid:
            return None, 0
        job = self.frontier.jobs[uid]
        self._refund = partial(slots.refund, job)
        return job, 1

    @property
    def _partition(self) -> int:
        return self.frontier.partitions[0].number

    # ---- one host

    def _has_to_wait(self, host: Host, job: Job, now: float, waiting_for_address: bool) -> bool:
        """Whether the pace of the host, its budget or its server address forbids a fetch. If so, the host is put where
        it waits."""
        frontier = self.frontier
        not_before = host.pace.not_before
        # Only one request of a host is planned ahead.
        due_at = not_before if host.in_flight else frontier.lead.due_at(not_before)
        if due_at > now:  # the heap did not know the pace of an idle host
            frontier.readiness.schedule_at(host.number, due_at)
            return True
        if job.compiled.host_limits.counts_use and frontier.readiness.update_host_budget(host, job):
            frontier.readiness.schedule(host.number, now)
            return True
        if job.domains is not None and domain_budgets.hold_back(frontier, job, job.domains, host):
            return True
        if host.address and job.compiled.policies.paced_by_address:
            room = frontier.addresses.room(host.address, max(not_before, now), waiting_for_address)
            if room != 0.0:
                frontier.readiness.wait_for_address(host, waiting_for_address)
                return True
        return False

    def _serve(self, host: Host, job: Job, now: float, out: TurnOutput, waiting_for_address: bool = False) -> None:
        """One fetch from a ready host. URLs before it that need no fetch get their terminal row."""
        frontier = self.frontier
        store = frontier.store
        refund, self._refund = self._refund, None
        if self._has_to_wait(host, job, now, waiting_for_address):
            if refund is not None:
                refund()
            return
        for _ in range(ENDED_PER_TURN):
            if len(frontier.in_flight.urls) >= frontier.window or self._effort > EFFORT_PER_TURN:
                break
            packed = store.peek(host.number, job.number)
            if packed is None:
                break
            if not job.may_take(packed[:16]):
                if self._priority_to_front(host, job):
                    continue
                frontier.readiness.set_waiting_for_job(host.number, (job,))
                break
            entry = unpack(packed)
            reason = unwanted(frontier, host, job, entry)
            if not reason and not job.compiled.ignore_robots and not self._has_robots(host, entry, now):
                if self._request_robots(host, job, entry, now, out):
                    return  # the outcome of robots.txt schedules the host
                break
            if not job.compiled.ignore_robots:
                self._effort += self._cost(host, entry)
            store.pop(host.number, job.number)
            if job.budget.reserved or job.budget.priority_refetch:
                job.budget.free(entry.url_key)
            if reason:
                self.endings.unfetched(host, job, entry, out, reason)
            elif job.compiled.ignore_robots or not self._denied(host, job, entry, out):
                request = self._request(host, job, entry)
                address = host.address if job.compiled.policies.paced_by_address else ""
                domain_budgets.charge(job, host)
                self._issue(request, Outstanding(job.uid, host, entry, request.attempt, address), job, now, out)
                break
        if host.number in frontier.readiness.prepared.by_number:
            frontier.readiness.prepared.discard(host.number)
        # Behind the hosts that are ready: a host with many forbidden URLs must not stay first. A host that is fetched
        # from one at a time is scheduled by its outcome.
        if not host.in_flight or job.compiled.policies.everywhere != 1:
            frontier.readiness.schedule(host.number, now)

    def _priority_to_front(self, host: Host, job: Job) -> bool:
        """When only URLs with a claim on the page budget may be taken: move one of them to the front of the queue's
        head. O(URLs at the head)."""
        if not job.has_room:
            return False
        store = self.frontier.store
        heads: list[bytes] = []
        while (job.number, HEAD) in store.head(host.number):
            packed = store.pop(host.number, job.number)
            assert packed is not None
            heads.append(packed)
        first = next((packed for packed in heads if job.may_take(packed[:16])), None)
        # Stable: all the others keep their order.
        for packed in sorted(heads, key=lambda head: head is not first):
            store.push(host.number, job.number, HEAD, packed)
        return first is not None

    def _has_robots(self, host: Host, entry: Entry, now: float) -> bool:
        """Whether the robots.txt of the URL's origin is valid, or was fetched for this page."""
        origin = origin_of(entry.url, host.key)
        robots = host.robots.get(origin)
        return robots is not None and (
            now < robots.expires or self.frontier.readiness.prepared.is_valid(host.number, origin, now)
        )

    def _request_robots(self, host: Host, job: Job, entry: Entry, now: float, out: TurnOutput) -> bool:
        """Request the robots.txt of the URL's origin, for which the URL waits; False when the page budget does not
        cover the page."""
        frontier = self.frontier
        origin = origin_of(entry.url, host.key)
        request = robots_request(origin, host.key, host.robots_tries + 1)
        if ("", request.url_key) in frontier.in_flight.urls:
            return True
        frontier.readiness.prepared.discard(host.number)
        if not frontier.readiness.may_prepare(job):
            return False
        frontier.readiness.prepared.requested(host.number, job.number, origin)
        robots = Entry(request.url_key, attempts=request.attempt - 1, url=request.url)
        address = host.address if job.compiled.policies.paced_by_address else ""
        domain_budgets.charge(job, host)
        self._issue(request, Outstanding("", host, robots, request.attempt, address), None, now, out)
        return True

    def _cost(self, host: Host, entry: Entry) -> int:
        """Effort of checking a URL against robots.txt."""
        robots = host.robots.get(origin_of(entry.url, host.key))
        return robots.effort(self.frontier.config.agent, entry.url) if robots is not None else 0

    def _denied(self, host: Host, job: Job, entry: Entry, out: TurnOutput) -> bool:
        """End the URL when robots.txt forbids it or its host cannot be reached."""
        end = self.endings.unfetched
        robots = host.robots[origin_of(entry.url, host.key)]
        if robots.policy == "failed":
            end(host, job, entry, out, robots.text.reason, robots.text.cause)
        elif not robots.allows(self.frontier.config.agent, entry.url):
            end(host, job, entry, out, Reason.ROBOTS)
        else:
            return False
        return True

    def _request(self, host: Host, job: Job, entry: Entry) -> FetchRequest:
        request = FetchRequest(
            job.uid,
            entry.url_key,
            entry.url,
            host.key,
            fetch_no=entry.fetch_no,
            attempt=entry.attempts + 1,
            depth=entry.depth,
            hops=entry.hops,
            priority=float(entry.priority),
            seed=bool(entry.flags & SEED),
            context=unpack_context(entry.context) if entry.context else None,
            render=entry.render if entry.flags >> RENDER_SHIFT else job.compiled.render,
        )
        if entry.fetch_no > 1:
            recrawl_queue.make_conditional(request, job)
        return request

    def _issue(self, request: FetchRequest, waiting: Outstanding, job: Job | None, now: float, out: TurnOutput) -> None:
        until = now + self._lease_s
        waiting.slot = self.frontier.lead.slot(waiting.host.pace, now)
        request.dial_at = self.frontier.in_flight.lease(waiting, job, until, now)
        self.frontier.lead.plan(request, waiting.host.pace, now)
        out.requests.append((self._complete(request, waiting, until), request))

    def _complete(self, request: FetchRequest, waiting: Outstanding, until: float) -> int:
        """Set the owner, the address and the instants of the lease; returns the partition."""
        frontier = self.frontier
        partition = frontier.partitions[waiting.host.partition]
        request.epoch = partition.epoch
        request.start_by = until - frontier.config.lease_s + frontier.time.utc_offset
        request.lease_until = waiting.lease_until
        request.address = waiting.address
        return partition.number

    def resume(self, waiting: Outstanding, until: float, now: float) -> FetchRequest:
        """Continue a lease that another owner gave; returns its request, in case it was not consumed."""
        host, entry = waiting.host, waiting.entry
        job = self.frontier.jobs.get(waiting.job)
        if job is not None:
            request = self._request(host, job, entry)
        elif not waiting.job:
            request = robots_request(entry.url.removesuffix("/robots.txt"), host.key, waiting.attempt)
        else:
            request = FetchRequest()  # never published: the job is deleted
        request.attempt = waiting.attempt
        request.dial_at = self.frontier.in_flight.resume(waiting, until, now)
        self.frontier.lead.plan(request, host.pace, now)
        self._complete(request, waiting, until)
        return request
