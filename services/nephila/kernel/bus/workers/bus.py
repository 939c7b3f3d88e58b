"""The bus between the main process and its worker processes: requests go out, results come back.

In the main process this is a group of the LocalBus. It takes `requests` and sends each to a worker over a
`WorkerChannel`. Messages of a worker are published on the LocalBus, and their receipts return as acks. The newest
version of each job, rule and verdict is kept and sent to a worker before its first request. Invariants: a request is
acked when its worker has acked it or is dead. Each unfinished request of a dead worker gets the outcome LOST, or
FAILED if it is poison (`poison.py`). Requests that no worker can take wait in order. This module does not depend on
processes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.bus.latest import Latest
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers.in_flight import InFlightRequest, InFlightRequests
from nephila.kernel.bus.workers.link import UNBOUNDED, WorkerChannel
from nephila.kernel.bus.workers.placement import Placement
from nephila.kernel.bus.workers.poison import CrashSuspects
from nephila.kernel.bus.workers.protocol import Drain, Forget
from nephila.kernel.messages import FetchRequest, FetchResult
from nephila.kernel.outcomes import given_back
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import JOBS, OUTCOMES, RECORDS, REQUESTS, RULE_VERDICTS, RULES, Topic

log = logging.getLogger(__name__)

GROUP = "workers"
LOADED_AT = 8
"""Requests held by one worker above which another worker is worth its start; a crawl of one site needs one only."""
_UNTRIED = (FetchResult.UNSPECIFIED, FetchResult.EXPIRED)

Soon = Callable[[Callable[[], None]], None]


class WorkerMember:
    """One worker, as the main process sees it."""

    def __init__(self, number: int, connect: Callable[[WorkerMember], WorkerChannel]) -> None:
        """`connect` makes the link of this member."""
        self.number = number
        self.in_flight = InFlightRequests()
        self.done = 0
        """Finished requests."""
        self.link = connect(self)

    @property
    def load(self) -> int:
        """Unfinished requests."""
        return len(self.in_flight)


class Workers:
    """Distributes requests over workers and publishes their results."""

    def __init__(
        self,
        bus: LocalBus,
        clock: Clock,
        window: int = UNBOUNDED,
        on_busy: Callable[[], None] = lambda: None,
        on_loaded: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_busy` is called when an idle worker gets a request; `on_loaded`, when a worker holds more than
        `LOADED_AT` requests: there is work for one more worker."""
        self._bus = bus
        self._clock = clock
        self._window = window
        self._latest: dict[Topic, Latest[Any]] = {topic: Latest(topic) for topic in (RULES, RULE_VERDICTS, JOBS)}
        """Sent in this order to a worker that is ready."""
        self._members: dict[WorkerMember, None] = {}
        self._free: dict[WorkerMember, None] = {}
        """Workers that take any request: all but the one that probes suspects."""
        self._isolated_worker: WorkerMember | None = None
        """The worker that probes suspects, one at a time and nothing else."""
        self._placement: Placement[WorkerMember] = Placement(lambda member: len(member.in_flight.held))
        self._waiting: deque[Delivery] = deque()
        self._suspect_requests: deque[Delivery] = deque()
        """Requests of suspects, waiting to be probed."""
        self._suspects = CrashSuspects()
        self._draining = False
        self._widened: set[str] = set()
        """Jobs whose scope got further anchors in this turn of the loop."""
        self._on_busy = on_busy
        self._on_loaded = on_loaded

    def start(self) -> None:
        """Subscribe to jobs, rules and requests."""
        for topic in self._latest:
            self._bus.subscribe(topic, GROUP, partial(self._on_latest, topic), credits=UNBOUNDED)
        self._bus.subscribe(REQUESTS, GROUP, self._on_request, credits=self._window)

    @property
    def waiting(self) -> int:
        """Requests without a worker."""
        return len(self._waiting) + len(self._suspect_requests)

    @property
    def members(self) -> list[WorkerMember]:
        """Workers that take requests."""
        return list(self._members)

    # ---- workers

    def connect(
        self, number: int, write: Callable[[bytearray], None], soon: Soon, on_control: Callable[[Any], None]
    ) -> WorkerMember:
        """A starting worker with its link; nothing is sent before `join`."""
        return WorkerMember(
            number,
            lambda member: WorkerChannel(self._bus, write, soon, on_control, partial(self._on_published, member)),
        )

    def join(self, member: WorkerMember) -> None:
        """A worker is ready: send it rules and jobs, then requests."""
        for topic, messages in self._latest.items():
            for message in messages.values():
                member.link.send(topic, 0, message)
        self._members[member] = None
        self._free[member] = None
        self._place_waiting()
        self._probe_next()

    def lost(self, member: WorkerMember) -> int:
        """A worker is dead, and everything it sent has been received. Its requests are ended; returns their number."""
        self._members.pop(member, None)
        self._free.pop(member, None)
        held = list(member.in_flight)
        alone = member is self._isolated_worker
        poison = self._suspects.worker_crashed([request.key for request in held], alone)
        if alone:
            self._isolated_worker = None
        for request in held:
            if request.key == poison:
                self._dead_letter(request)
            else:
                self._publish(request, FetchResult.LOST, Reason.WORKER_DIED)
        member.link.abandon()
        self._place_waiting()
        self._probe_next()
        return len(held)

    def drain(self, grace_s: float) -> None:
        """Dispatch nothing more, and let all workers finish within this time."""
        self._draining = True
        for line in (self._waiting, self._suspect_requests):
            while line:
                self._give_back(line.popleft())
        for member in self._members:
            member.link.send_control(Drain(grace_s))

    def forget(self, job: str) -> None:
        """The scope of a job has grown: links that were not sent before may be wanted. A file of seeds widens it a
        thousand times in one turn; each worker gets one message."""
        if not self._widened:
            self._clock.call_soon(self._send_forget)
        self._widened.add(job)

    def _send_forget(self) -> None:
        wider, self._widened = self._widened, set()
        for job in sorted(wider):
            for member in self._members:
                member.link.send_control(Forget(job))

    # ---- to the workers

    def _on_latest(self, topic: Topic, delivery: Delivery) -> None:
        self._latest[topic].take(delivery.message)
        delivery.ack_after([member.link.send(topic, delivery.partition, delivery.message) for member in self._members])

    def _on_request(self, delivery: Delivery) -> None:
        request: FetchRequest = delivery.message
        if self._draining:
            self._give_back(delivery)
        elif self._suspects and (request.job, request.url_key) in self._suspects:
            self._suspect_requests.append(delivery)
            self._probe_next()
        else:
            member = None if self._waiting else self._placement.choose(request.host, self._free)
            if member is None:
                self._waiting.append(delivery)
            else:
                self._hand_out(member, delivery)

    def _hand_out(self, member: WorkerMember, delivery: Delivery) -> None:
        in_flight = member.in_flight
        if not in_flight.held:
            self._on_busy()
        in_flight.take(delivery.partition, delivery.message, self._clock.now())
        member.link.deliver(REQUESTS, delivery)
        if len(in_flight.held) > LOADED_AT:
            self._on_loaded()

    def _place_waiting(self) -> None:
        while self._waiting and not self._draining:
            member = self._placement.choose(self._waiting[0].message.host, self._free)
            if member is None:
                return
            self._hand_out(member, self._waiting.popleft())

    def _probe_next(self) -> None:
        """Send the next suspect to an otherwise idle worker; without suspects that worker takes any request again."""
        worker = self._isolated_worker
        if self._suspect_requests and worker is None and self._members:
            worker = self._isolated_worker = min(self._members, key=lambda member: member.load)
            self._free.pop(worker, None)
        if worker is None or self._suspects.probing is not None or worker.load:
            return
        if self._suspect_requests:
            delivery = self._suspect_requests.popleft()
            self._suspects.probing = (delivery.message.job, delivery.message.url_key)
            self._hand_out(worker, delivery)
        else:
            self._isolated_worker = None
            self._free[worker] = None
            self._place_waiting()

    # ---- from the workers

    def _on_published(self, member: WorkerMember, topic: Topic, partition: int, message: Any) -> Receipt:
        if topic is OUTCOMES:
            done = member.in_flight.outcome(message)
            tried = message.result not in _UNTRIED
        else:
            done = topic is RECORDS and member.in_flight.record(message)
            tried = True
        receipt = self._bus.publish(topic, partition, message)
        if done:
            member.done += 1
            if self._suspects or member is self._isolated_worker:
                self._suspects.probed((message.job, message.url_key), tried)
                self._probe_next()
        return receipt

    # ---- outcomes in place of a worker

    def _publish(self, held: InFlightRequest, result: FetchResult, reason: Reason = Reason.NONE) -> Receipt:
        outcome = given_back(held.request)
        outcome.result, outcome.reason = result, reason
        outcome.started_at, outcome.ended_at = held.sent_at, self._clock.now() if held.sent_at else 0.0
        return self._bus.publish(OUTCOMES, held.partition, outcome)

    def _give_back(self, delivery: Delivery) -> None:
        delivery.ack_after(
            (self._publish(InFlightRequest(delivery.partition, delivery.message, 0.0), FetchResult.UNSPECIFIED),)
        )

    def _dead_letter(self, held: InFlightRequest) -> None:
        """A URL that crashes its worker whenever it is probed ends as failed(dead_letter)."""
        request = held.request
        log.error(
            "worker: dead letter on %s: %s crashed its worker each time it was probed",
            REQUESTS.name,
            ascii(request.url)[:500],
        )
        error = "the worker crashed each time"
        self._bus.dead_letter(REQUESTS, "worker", held.partition, request, error, request.attempt)
        self._publish(held, FetchResult.FAILED, Reason.DEAD_LETTER)
