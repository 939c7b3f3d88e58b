"""Questions about URLs from outside, answered by the scheduler that has their partition. What they may change is that a
closed part of a host is opened again; that is answered when it is in the log.

Anybody who reaches the broker may ask, so it is bounded: a few questions wait, one is answered each PAUSE_S, and who
has stopped waiting gets no answer. A question of another's partition is left to its owner: each has one answer or none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.fragment_routes import parse_for, parse_routed
from nephila.kernel.messages import Answer, CrawlJob, Question
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import ANSWERS, QUESTIONS
from nephila.native import UrlError, parse_url, partition_of
from nephila.scheduler.cluster.partition import Shard
from nephila.scheduler.engine.release_quarantine import release_quarantine
from nephila.scheduler.explain.explain import Explanation, explain
from nephila.scheduler.explain.facts import Home
from nephila.scheduler.frontier.job_state import Job

WAITING = 16
"""Questions that wait; with more the oldest goes unanswered."""
PAUSE_S = 0.05
LONGEST_S = 60.0
MAX_URL_CHARS = 100_000
CANDIDATES = 20
"""Jobs that are asked about a URL when none is named."""


class Shards(Protocol):
    """Whose partitions are asked about."""

    jobs: dict[str, CrawlJob]
    shards: dict[int, Shard]


class Asked:
    """See the module."""

    def __init__(self, shards: Shards, partitions: int, member: str, bus: Bus, clock: Clock) -> None:
        self._shards = shards
        self._partitions = partitions
        self._member = member
        self._bus = bus
        self._clock = clock
        self._waiting: deque[tuple[Question, float]] = deque(maxlen=WAITING)
        self._due = False

    def start(self) -> None:
        """Begin; what is left of questions that nobody waits for any more is skipped."""
        self._bus.subscribe(QUESTIONS, "scheduler", self._on_question, credits=100)

    def _on_question(self, delivery: Delivery) -> None:
        question: Question = delivery.message
        delivery.ack()
        left_s = question.until - self._clock.now()
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
        answer = self.answer(question) if self._clock.monotonic() < until else None
        if answer is not None and answer.released:
            shard = self._shards.shards[int(answer.place)]
            self._tell_once_out(answer, shard, shard.gates.sent + 1, until)
        elif answer is not None:
            self._bus.publish(ANSWERS, 0, answer)

    def _tell_once_out(self, answer: Answer, shard: Shard, step: int, until: float) -> None:
        """When the turn with the change has passed the gates. Who loses the partition before has nothing to say."""
        now = self._clock.monotonic()
        if shard.dead or now > until:
            return
        if shard.gates.out >= step:
            self._bus.publish(ANSWERS, 0, answer)
        else:
            self._clock.call_at(now + PAUSE_S, lambda: self._tell_once_out(answer, shard, step, until))

    def answer(self, question: Question) -> Answer | None:
        """None when it is another's to answer. O(queue of the URL's host, bounded) for each job that has seen it."""
        answer = Answer(question.place, question.id)
        try:
            parts = parse_url(question.url)
        except UrlError as error:
            answer.error, answer.usage = f"not a URL that can be crawled: {error}", True
            return answer
        shard = self._shards.shards.get(partition_of(parts.fingerprint, self._partitions))
        if shard is None:
            return None
        answer.place = str(shard.number)
        known = {uid: job for uid, job in self._shards.jobs.items() if not job.deleted}
        if question.job and question.job not in known:
            answer.error, answer.usage = f"the system has no job {question.job[:200]!r}", True
        elif not known:
            answer.error = "the system has no job yet; see nephila crawl --bootstrap"
        elif question.release:
            shard.at()
            answer.released = release_quarantine(shard.frontier, question.job, parts.host_key, question.release)
            if answer.released:
                shard.wake()
            else:
                answer.error = f"{parts.host_key}{question.release[:200]} is not in quarantine for {question.job!r}"
        else:
            told = self._told(shard, question, [question.job] if question.job else known, known)
            if told is None:
                what = f"job {question.job}" if question.job else "any job"
                answer.error = f"never found: nothing of {what} has come to partition {shard.number}, where it belongs"
            else:
                told.owner = f"scheduler {self._member}, epoch {shard.epoch}"
                answer.explanation = msgspec.json.encode(told)
        return answer

    def _told(
        self, shard: Shard, question: Question, uids: Iterable[str], known: Mapping[str, CrawlJob]
    ) -> Explanation | None:
        """The word of the job that knows the URL best; None when none of them has anything in the partition."""
        href, home, now = parse_routed(question.url).href, Home(system=question.system), shard.at()
        here = shard.frontier.jobs
        jobs = [here[uid] for uid in uids if uid in here and uid in known]
        told = [explain(shard.dispatcher, job, href, now, running=True, home=home) for job in _candidates(jobs, href)]
        return min(told, key=lambda one: (one.queued is None and one.lease is None, not one.seen), default=None)


def _candidates(jobs: list[Job], url: str) -> list[Job]:
    seen = [job for job in jobs if parse_for(job.spec, url).fingerprint in job.seen]
    if seen:
        return seen[:CANDIDATES]
    parts = parse_url(url)
    return [job for job in jobs if job.scope.decide(parts.href, parts.host_key).admitted][:1] or jobs[:1]
