"""A crawl by the services of a system: what `nephila crawl --bootstrap` does.

Its rules are told, then the job, then its seeds; then the job once more under the next generation, so that schedulers
which call that one done have read all seeds before. With many seeds the job is paused until they have: the scope is
anchored at the seeds, and a link to a host whose seed is still on its way would be refused. Nothing is kept here: who
stops watching leaves the crawl to go on.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery, Receipt, all_of
from nephila.kernel.messages import CrawlJob, JobStatus, ParseRule, Seed
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOB_STATUS, JOBS, RULES, SEEDS
from nephila.native import UrlError, parse_url, partition_of

SILENT_S = 60.0
"""Without a word about the job for so long, no scheduler is there."""
SEED_BATCH = 1000
"""Seeds on their way at once; so many are many."""


class Submission:
    """One job on its way through a system. Build it before the bus is started."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        partitions: int,
        job: CrawlJob,
        rules: Iterable[ParseRule] = (),
        *,
        on_status: Callable[[JobStatus], None] | None = None,
        broker_answers: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`broker_answers` is called after `SILENT_S` without a status: while the broker is away, no scheduler can
        report."""
        self.job = job
        self._rules = tuple(rules)
        self.status = JobStatus(job.uid)
        self.refused: list[tuple[str, str]] = []
        self._notify = on_status
        self._broker_answers = broker_answers
        self._bus = bus
        self._clock = clock
        self._partitions = partitions
        self._heard = asyncio.Event()
        self._known = False
        self._version = 0
        self._deleted = 0
        self._live = False
        bus.subscribe(JOBS, "submission", self._on_job, credits=1000)
        bus.subscribe(JOB_STATUS, "submission", self._on_status, credits=1000)

    async def run(self, seeds: Iterable[Seed]) -> JobStatus:
        """Tell job and seeds, return when the job is done. Raises `UserError` when nobody answers."""
        if self._known:
            raise UserError(f"the system has a job {self.job.uid!r} already; name yours otherwise, or delete that one")
        # What was said before is of a job of this name that was deleted.
        self._live = True
        first = self._deleted + 1
        for rule in self._rules:
            await self._bus.publish(RULES, 0, rule)
        rest = iter(seeds)
        some = list(itertools.islice(rest, SEED_BATCH))
        many = len(some) == SEED_BATCH
        await self._tell(first, paused=many)
        await self._until(lambda status: status.generation >= first)
        while some:
            await self._send(some)
            some = list(itertools.islice(rest, SEED_BATCH))
        if many:
            first += 1
            await self._tell(first, paused=True)
            await self._until(lambda status: status.generation >= first and status.done)
        await self._tell(first + 1)
        return await self._until(lambda status: status.generation > first and status.done and not status.paused)

    async def _tell(self, generation: int, *, paused: bool = False) -> None:
        await self._bus.publish(JOBS, 0, msgspec.structs.replace(self.job, generation=generation, paused=paused))

    async def _send(self, seeds: list[Seed]) -> None:
        waiting: list[Receipt] = []
        for seed in seeds:
            try:
                partition = partition_of(parse_url(seed.url).fingerprint, self._partitions)
            except UrlError as error:
                self.refused.append((seed.url, str(error)))
            else:
                waiting.append(self._bus.publish(SEEDS, partition, seed))
        await all_of(waiting)

    async def _until(self, reached: Callable[[JobStatus], bool]) -> JobStatus:
        while not reached(self.status):
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), SILENT_S)
            except TimeoutError:
                if self._broker_answers is not None and not await self._broker_answers():
                    continue
                raise UserError(
                    f"no scheduler has said anything of job {self.job.uid!r} for {SILENT_S:g} s; is one running?"
                ) from None
            if self.status.deleted:
                raise UserError(f"job {self.job.uid!r} was deleted")
        return self.status

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        if job.uid == self.job.uid:
            self._known = not job.deleted
            self._deleted = job.generation
        delivery.ack()

    def _on_status(self, delivery: Delivery) -> None:
        status: JobStatus = delivery.message
        # What comes from a coordinator that had not read the last word counts for nothing.
        if status.uid == self.job.uid and status.version > self._version:
            self._version = status.version
            if self._live:
                self._take(status)
        delivery.ack()

    def _take(self, status: JobStatus) -> None:
        self.status = status
        self._heard.set()
        if self._notify is not None:
            self._notify(status)
