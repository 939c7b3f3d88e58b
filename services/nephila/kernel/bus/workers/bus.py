"""The bus between the main process and its workers: requests go out, what becomes of them comes back.

In the main process this is a group like any other on the LocalBus: it takes `requests` and hands each to a worker over
a `Link`; what workers publish is published on the LocalBus, whose receipts go back as acks. Jobs, rules and verdicts
on them are kept, the newest of each, and told to every worker before its first request. Invariants: a request is acked
when its worker has acked it or is dead; of a dead worker's requests each that is not done comes back as an outcome
LOST, or failed when it is what kills workers (`suspects`); what cannot be placed now waits in order. Processes are not
known here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers.in_flight import Custody, Held
from nephila.kernel.bus.workers.link import UNBOUNDED, Link
from nephila.kernel.bus.workers.placement import Placement
from nephila.kernel.bus.workers.poison import Suspects
from nephila.kernel.bus.workers.protocol import Drain, Forget
from nephila.kernel.messages import CrawlJob, FetchRequest, FetchResult, ParseRule, RuleVerdict
from nephila.kernel.outcomes import given_back
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import JOBS, OUTCOMES, RECORDS, REQUESTS, RULE_VERDICTS, RULES, Topic

log = logging.getLogger(__name__)

GROUP = "workers"
CROWD = 8
"""Requests in one worker's hands that make another worth its start: a crawl of one site never needs a second."""
_UNTRIED = (FetchResult.UNSPECIFIED, FetchResult.EXPIRED)

Soon = Callable[[Callable[[], None]], None]


class Member:
    """One worker as the main process sees it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.link: Link
        self.custody = Custody()
        self.done = 0
        """Requests that it has ended."""

    @property
    def load(self) -> int:
        """Requests in its hands."""
        return len(self.custody)


class Workers:
    """See the module."""

    def __init__(self, bus: LocalBus, clock: Clock, window: int = UNBOUNDED) -> None:
        self._bus = bus
        self._clock = clock
        self._window = window
        self._jobs: dict[str, CrawlJob] = {}
        self._rules: dict[str, ParseRule] = {}
        self._verdicts: dict[str, RuleVerdict] = {}
        self._members: dict[Member, None] = {}
        self._free: dict[Member, None] = {}
        """Those that take any request: all but the one where suspects are tried."""
        self._court: Member | None = None
        """The worker where suspects are tried, one at a time and nothing else."""
        self._placement: Placement[Member] = Placement(lambda member: len(member.custody.held))
        self._waiting: deque[Delivery] = deque()
        self._accused: deque[Delivery] = deque()
        """Requests for suspects, which wait for their turn alone."""
        self._suspects = Suspects()
        self._draining = False
        self._wider: set[str] = set()
        """Jobs whose scope has got further anchors in this turn."""
        self.on_busy: Callable[[], None] = _nothing
        """Called when a worker that had nothing in its hands is given something."""
        self.on_crowd: Callable[[], None] = _nothing
        """Called when a worker is given something that has `CROWD` in its hands: one more would have enough to do."""

    def start(self) -> None:
        """Begin to take jobs and requests."""
        self._bus.subscribe(RULES, GROUP, self._on_rule, credits=UNBOUNDED)
        self._bus.subscribe(RULE_VERDICTS, GROUP, self._on_verdict, credits=UNBOUNDED)
        self._bus.subscribe(JOBS, GROUP, self._on_job, credits=UNBOUNDED)
        self._bus.subscribe(REQUESTS, GROUP, self._on_request, credits=self._window)

    @property
    def waiting(self) -> int:
        """Requests that no worker has yet."""
        return len(self._waiting) + len(self._accused)

    @property
    def members(self) -> list[Member]:
        """The workers that take requests."""
        return list(self._members)

    # ---- members

    def connect(
        self, member: Member, write: Callable[[bytearray], None], soon: Soon, on_word: Callable[[Any], None]
    ) -> None:
        """Give a worker that begins its link; it is sent nothing before `join`."""
        member.link = Link(self._bus, write, soon, on_word, partial(self._back, member))

    def join(self, member: Member) -> None:
        """A worker is ready: it hears of rules and jobs, then of requests."""
        for rule in self._rules.values():
            member.link.send(RULES, 0, rule)
        for verdict in self._verdicts.values():
            member.link.send(RULE_VERDICTS, 0, verdict)
        for job in self._jobs.values():
            member.link.send(JOBS, 0, job)
        self._members[member] = None
        self._free[member] = None
        self._place_waiting()
        self._try_next()

    def lost(self, member: Member) -> int:
        """A worker is dead, and all that it sent has been received: what it had has to be done again. Returns how many
        requests it had."""
        self._members.pop(member, None)
        self._free.pop(member, None)
        held = list(member.custody)
        alone = member is self._court
        guilty = self._suspects.died([one.key for one in held], alone)
        if alone:
            self._court = None
        for one in held:
            if one.key == guilty:
                self._bury(one)
            else:
                self._publish(one, FetchResult.LOST, "worker_died")
        member.link.abandon()
        self._place_waiting()
        self._try_next()
        return len(held)

    def drain(self, grace_s: float) -> None:
        """Hand out nothing more, and tell all workers to end what they have within so many seconds."""
        self._draining = True
        for line in (self._waiting, self._accused):
            while line:
                self._give_back(line.popleft())
        for member in self._members:
            member.link.say(Drain(grace_s))

    def forget(self, job: str) -> None:
        """The scope of a job is wider now: links that were not wanted may be. A file of seeds widens it a thousand
        times in one turn; that is one word to each worker."""
        if not self._wider:
            self._clock.call_soon(self._tell_wider)
        self._wider.add(job)

    def _tell_wider(self) -> None:
        wider, self._wider = self._wider, set()
        for job in sorted(wider):
            for member in self._members:
                member.link.say(Forget(job))

    # ---- to the workers

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        if job.deleted:
            self._jobs.pop(job.uid, None)
        else:
            self._jobs[job.uid] = job
        delivery.ack_after([member.link.send(JOBS, delivery.partition, job) for member in self._members])

    def _on_rule(self, delivery: Delivery) -> None:
        rule: ParseRule = delivery.message
        if rule.deleted:
            self._rules.pop(rule.name, None)
        else:
            self._rules[rule.name] = rule
        delivery.ack_after([member.link.send(RULES, delivery.partition, rule) for member in self._members])

    def _on_verdict(self, delivery: Delivery) -> None:
        verdict: RuleVerdict = delivery.message
        if verdict.deleted:
            self._verdicts.pop(verdict.rule, None)
        else:
            self._verdicts[verdict.rule] = verdict
        delivery.ack_after([member.link.send(RULE_VERDICTS, 0, verdict) for member in self._members])

    def _on_request(self, delivery: Delivery) -> None:
        request: FetchRequest = delivery.message
        if self._draining:
            self._give_back(delivery)
        elif self._suspects and (request.job, request.url_key) in self._suspects:
            self._accused.append(delivery)
            self._try_next()
        else:
            member = None if self._waiting else self._placement.choose(request.host, self._free)
            if member is None:
                self._waiting.append(delivery)
            else:
                self._hand_out(member, delivery)

    def _hand_out(self, member: Member, delivery: Delivery) -> None:
        custody = member.custody
        if not custody.held:
            self.on_busy()
        custody.take(delivery.partition, delivery.message, self._clock.now())
        member.link.deliver(REQUESTS, delivery)
        if len(custody.held) > CROWD:
            self.on_crowd()

    def _place_waiting(self) -> None:
        while self._waiting and not self._draining:
            member = self._placement.choose(self._waiting[0].message.host, self._free)
            if member is None:
                return
            self._hand_out(member, self._waiting.popleft())

    def _try_next(self) -> None:
        """Give the next suspect to a worker that has nothing else in its hands; when there is none, that worker takes
        any request again."""
        court = self._court
        if self._accused and court is None and self._members:
            court = self._court = min(self._members, key=lambda member: member.load)
            self._free.pop(court, None)
        if court is None or self._suspects.alone is not None or court.load:
            return
        if self._accused:
            delivery = self._accused.popleft()
            self._suspects.alone = (delivery.message.job, delivery.message.url_key)
            self._hand_out(court, delivery)
        else:
            self._court = None
            self._free[court] = None
            self._place_waiting()

    # ---- from the workers

    def _back(self, member: Member, topic: Topic, partition: int, message: Any) -> Receipt:
        """A worker has published something."""
        if topic is OUTCOMES:
            done = member.custody.outcome(message)
            tried = message.result not in _UNTRIED
        else:
            done = topic is RECORDS and member.custody.record(message)
            tried = True
        receipt = self._bus.publish(topic, partition, message)
        if done:
            member.done += 1
            if self._suspects or member is self._court:
                self._suspects.tried((message.job, message.url_key), tried)
                self._try_next()
        return receipt

    # ---- instead of a worker

    def _publish(self, held: Held, result: FetchResult, reason: str) -> Receipt:
        outcome = given_back(held.request)
        outcome.result, outcome.reason = result, reason
        outcome.started_at, outcome.ended_at = held.since, self._clock.now() if held.since else 0.0
        return self._bus.publish(OUTCOMES, held.partition, outcome)

    def _give_back(self, delivery: Delivery) -> None:
        delivery.ack_after(
            (self._publish(Held(delivery.partition, delivery.message, 0.0), FetchResult.UNSPECIFIED, ""),)
        )

    def _bury(self, held: Held) -> None:
        """A URL that kills its worker whenever it is alone there ends as failed(dead_letter)."""
        request = held.request
        log.error(
            "worker: dead letter on %s: %s ended a worker each time it was tried",
            REQUESTS.name,
            ascii(request.url)[:500],
        )
        error = "the worker died each time"
        self._bus.bury(REQUESTS, "worker", held.partition, request, error, request.attempt)
        self._publish(held, FetchResult.FAILED, "dead_letter")


def _nothing() -> None:
    """Nobody wants to know."""
