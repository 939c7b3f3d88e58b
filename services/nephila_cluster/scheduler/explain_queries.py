"""Answers queries of `nephila explain` about URLs, for the partitions of this scheduler.

A query can also try an exclusion: the queues are walked in steps, and the answer is published at the end. Or it lists
hosts, which costs O(`host_list.LOOKED_AT`) for all partitions of this scheduler together. Or it asks to release a
quarantined part of a host, to forget URLs or to change the pace of a host; that answer is published after the commit.
Everyone who can publish to the broker can ask, so the work is bounded: a few queries wait, one is answered each
PAUSE_S, and an expired query gets no answer. A query for a partition of another scheduler is ignored here, so each
query has one answer or none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec
from nephila.kernel.bus.contract import Delivery, LogBus
from nephila.kernel.fragment_routes import parse_for, parse_routed
from nephila.kernel.messages import CrawlJob, ExplainAnswer, ExplainQuery, Outcome
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UNREADABLE, UsageError
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import EXPLAIN_ANSWERS, EXPLAIN_QUERIES
from nephila.native import UrlError, parse_url
from nephila.scheduler.engine.exclusion_trial import MAX_PATTERNS, STEP_S, ExclusionTrial, Partition
from nephila.scheduler.engine.forget_urls import forget_urls
from nephila.scheduler.engine.host_pace_changes import change_host_pace, is_host_action
from nephila.scheduler.engine.release_quarantine import release_quarantine
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.partition.owner import PartitionOwner
from nephila_control.explain.explain import Explanation, explain
from nephila_control.explain.facts import Home
from nephila_control.explain.host_list import HostQuery, host_rows

WAITING = 16
"""Queries that wait; a further one replaces the oldest, which gets no answer."""
PAUSE_S = 0.05
LONGEST_S = 60.0
MAX_QUARANTINES = 10_000
"""Quarantines of one answer; further ones are left out."""
MAX_HOSTS = 200
"""Hosts of one answer."""
MAX_FORGET = 1000
"""URLs of one query that are forgotten."""
MAX_URL_CHARS = 100_000
TRIALS = 4
"""Exclusions that are tried at once; a further one replaces the oldest, which gets no answer."""
ANSWER_S = 2.0
"""A trial ends so long before its query expires, so that its answer is in time."""
CANDIDATES = 20
"""Jobs that are tried when the query names none."""


class JobPartitions(Protocol):
    """Jobs and partitions of a scheduler."""

    jobs: dict[str, CrawlJob]
    owners: dict[int, PartitionOwner]


class _Trial(NamedTuple):
    """An exclusion that is tried for a query."""

    walk: ExclusionTrial
    answer: ExplainAnswer
    owners: list[PartitionOwner]
    until: float
    """Monotonic: then the answer has what was counted so far."""


class _Trials:
    """Exclusions that are tried, each in steps of at most STEP_S."""

    def __init__(self, owners: JobPartitions, member: str, bus: LogBus, clock: Clock) -> None:
        self._owners = owners
        self._member = member
        self._bus = bus
        self._clock = clock
        self._running: deque[_Trial] = deque(maxlen=TRIALS)
        self._timer = OneTimer(clock, self._step)

    def begin(self, question: ExplainQuery, until: float) -> None:
        """Try the exclusion of a query in all partitions; without one there is no answer."""
        owners = list(self._owners.owners.values())
        pairs = [(owner, owner.frontier.jobs.get(question.job)) for owner in owners]
        parts = [Partition(owner.frontier, job) for owner, job in pairs if job is not None]
        numbers = sorted(owner.number for owner in owners)
        answer = ExplainAnswer(f"{question.slot}/{self._member}", question.id, partitions=numbers)
        answer.queued = sum(part.job.queue.length for part in parts)
        try:
            walk = ExclusionTrial(parts, question.try_exclude[:MAX_PATTERNS], self._clock)
        except UsageError:  # the control API checks them; another client waits for nothing
            return
        if owners:
            self._running.append(_Trial(walk, answer, owners, until - ANSWER_S))
            self._timer.start(STEP_S)

    def _step(self) -> None:
        """One step of the oldest trial. A partition that was lost ends it without an answer: its queues are closed."""
        trial = self._running[0]
        lost = any(owner.lost for owner in trial.owners)
        if not lost:
            trial.walk.step()
        if lost or trial.walk.done or self._clock.monotonic() > trial.until:
            self._running.popleft()
            if not lost:
                self._answer(trial)
        if self._running:
            self._timer.start(STEP_S)

    def _answer(self, trial: _Trial) -> None:
        answer, walk = trial.answer, trial.walk
        answer.looked_at, answer.removed, answer.examples = walk.looked_at, walk.removed, walk.examples
        answer.complete = walk.complete
        self._bus.publish(EXPLAIN_ANSWERS, 0, answer)


class ExplainQueryHandler:
    """Subscribes to the queries of all partitions and answers those of its own."""

    def __init__(self, owners: JobPartitions, member: str, bus: LogBus, clock: Clock) -> None:
        self._owners = owners
        self._member = member
        self._bus = bus
        self._clock = clock
        self._waiting: deque[tuple[ExplainQuery, float]] = deque(maxlen=WAITING)
        self._trials = _Trials(owners, member, bus, clock)
        self._due = False

    def start(self) -> None:
        """Subscribe; expired queries are skipped."""
        self._bus.subscribe(EXPLAIN_QUERIES, "scheduler", self._on_question, credits=100)

    def _on_question(self, delivery: Delivery) -> None:
        question: ExplainQuery = delivery.message
        delivery.ack()
        left_s = question.deadline - self._clock.now()
        if 0 < left_s <= LONGEST_S and len(question.url) <= MAX_URL_CHARS:
            self._waiting.append((question, self._clock.monotonic() + left_s))
            self._soon()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self._clock.call_at(self._clock.monotonic() + PAUSE_S, self._next)

    def _next(self) -> None:
        self._due = False
        if not self._waiting:
            return
        question, until = self._waiting.popleft()
        if self._waiting:
            self._soon()
        if question.try_exclude:
            self._trials.begin(question, until)
            return
        answer = self.answer(question) if self._clock.monotonic() < until else None
        if answer is not None and answer.released:
            owner = self._owners.owners[int(answer.slot)]
            self._answer_when_committed(answer, owner, owner.pipeline.submitted + 1, until)
        elif answer is not None:
            self._bus.publish(EXPLAIN_ANSWERS, 0, answer)

    def _answer_when_committed(self, answer: ExplainAnswer, owner: PartitionOwner, batch: int, until: float) -> None:
        """Publish the answer once the batch with the change has been published. No answer if the partition is lost
        before."""
        now = self._clock.monotonic()
        if owner.lost or now > until:
            return
        if owner.pipeline.completed >= batch:
            self._bus.publish(EXPLAIN_ANSWERS, 0, answer)
        else:
            self._clock.call_at(now + PAUSE_S, lambda: self._answer_when_committed(answer, owner, batch, until))

    def answer(self, question: ExplainQuery) -> ExplainAnswer | None:
        """The answer; None for a URL of another scheduler's partition. O(queue of the URL's host, bounded) per job that
        has seen it."""
        if question.list_quarantines:
            return self._quarantines(question)
        if question.list_hosts:
            return self._hosts(question)
        answer = ExplainAnswer(question.slot, question.id)
        try:
            parts = parse_url(question.url)
        except UrlError as error:
            answer.error, answer.usage_error = f"not a URL that can be crawled: {error}", True
            return answer
        owner = self._owners.owners.get(self._bus.layout.of(parts.fingerprint))
        if owner is None:
            return None
        answer.slot = str(owner.number)
        jobs = {uid: job for uid, job in self._owners.jobs.items() if not job.deleted}
        if question.job and question.job not in jobs:
            answer.error, answer.usage_error = f"the system has no job {question.job[:200]!r}", True
        elif not jobs:
            answer.error = "the system has no jobs; see nephila crawl --bootstrap"
        elif question.forget:
            self._forget(owner, question, answer)
        elif question.host_action:
            self._change_host(owner, parts.host_key, question, answer)
        elif question.release:
            owner.begin_turn()
            answer.released = release_quarantine(owner.frontier, question.job, parts.host_key, question.release)
            if answer.released:
                owner.wake()
            else:
                answer.error = f"{parts.host_key}{question.release[:200]} is not in quarantine for {question.job!r}"
        else:
            explanation = self._best_explanation(owner, question, [question.job] if question.job else jobs, jobs)
            if explanation is None:
                scope = f"job {question.job}" if question.job else "any job"
                answer.error = f"never found: partition {owner.number}, where it belongs, has no URL of {scope}"
            else:
                explanation.owner = f"scheduler {self._member}, epoch {owner.epoch}"
                answer.explanation = msgspec.json.encode(explanation)
        return answer

    def _forget(self, owner: PartitionOwner, question: ExplainQuery, answer: ExplainAnswer) -> None:
        """Forget URLs of this partition; those of another one are unknown here."""
        job = owner.frontier.jobs.get(question.job)
        urls = question.forget[:MAX_FORGET]
        if job is None:  # it has no URL here yet
            answer.unknown, answer.released = len(urls), True
            return
        owner.begin_turn()
        outcomes = map(Outcome, question.forget_outcomes.ljust(len(urls), b"\0"))
        result = forget_urls(owner.dispatcher, job, zip(urls, outcomes, strict=False))
        answer.forgotten, answer.open, answer.unknown = result.forgotten, result.open, result.unknown
        answer.released = True
        owner.wake()

    @staticmethod
    def _change_host(owner: PartitionOwner, key: str, question: ExplainQuery, answer: ExplainAnswer) -> None:
        action, seconds = question.host_action, question.host_seconds
        if not is_host_action(action, seconds):
            answer.error, answer.usage_error = f"no change of a host: {action[:20]!r} for {seconds:g} s", True
            return
        owner.begin_turn()
        answer.released = change_host_pace(owner.frontier, key, action, seconds)  # type: ignore[arg-type]
        if answer.released:
            owner.wake()
        else:
            answer.error = f"host {key} is not in the frontier"

    def _quarantines(self, question: ExplainQuery) -> ExplainAnswer | None:
        """Of a job, in all partitions of this scheduler. O(quarantines)."""
        owners = self._owners.owners
        if not owners:
            return None
        answer = ExplainAnswer(f"{question.slot}/{self._member}", question.id, partitions=sorted(owners))
        for owner in owners.values():
            job = owner.frontier.jobs.get(question.job)
            answer.quarantines += job.quarantines.values() if job is not None else ()
        del answer.quarantines[MAX_QUARANTINES:]
        return answer

    def _hosts(self, question: ExplainQuery) -> ExplainAnswer | None:
        """Hosts of all partitions of this scheduler, or of the one that the URL belongs to. There is no answer to a
        query that cannot be read: the control API sends none."""
        owners = self._owners.owners
        try:
            query = msgspec.json.decode(question.list_hosts, type=HostQuery)
            if question.url:
                number = self._bus.layout.of(parse_url(question.url).fingerprint)
                owners = {number: owners[number]} if number in owners else {}
        except (*UNREADABLE, UrlError):
            return None
        if not owners:
            return None
        query.limit = min(max(query.limit, 0), MAX_HOSTS)
        rows = host_rows([owner.dispatcher for owner in owners.values()], self._clock.monotonic(), query)
        slot = f"{question.slot}/{self._member}"
        return ExplainAnswer(slot, question.id, partitions=sorted(owners), hosts=msgspec.json.encode(rows))

    def _best_explanation(
        self, owner: PartitionOwner, question: ExplainQuery, uids: Iterable[str], specs: Mapping[str, CrawlJob]
    ) -> Explanation | None:
        """The explanation of the job with the most data about the URL; None when no job has any here."""
        home = Home(system=question.system, member=f"scheduler/{self._member}")
        href, now = parse_routed(question.url).href, owner.begin_turn()
        here = owner.frontier.jobs
        jobs = [here[uid] for uid in uids if uid in here and uid in specs]
        explanations = [
            explain(owner.dispatcher, job, href, now, running=True, home=home) for job in _candidates(jobs, href)
        ]
        return min(
            explanations,
            key=lambda explanation: (explanation.queued is None and explanation.lease is None, not explanation.seen),
            default=None,
        )


def _candidates(jobs: list[Job], url: str) -> list[Job]:
    seen = [job for job in jobs if parse_for(job.compiled.routes, url).fingerprint in job.seen]
    if seen:
        return seen[:CANDIDATES]
    parts = parse_url(url)
    return [job for job in jobs if job.scope.decide(parts.href, parts.host_key).admitted][:1] or jobs[:1]
