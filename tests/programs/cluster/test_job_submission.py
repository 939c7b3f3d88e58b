"""A job is told, its seeds, and the job once more; who watches hears the last word of who has read all words before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from nephila.cli.jobs.cluster import taken
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.kafka.bus import KafkaBus
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import CrawlJob, JobStatus, Seed
from nephila.kernel.runtime.clock import ManualClock, SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOB_STATUS, JOBS, SEEDS
from nephila.programs.cluster import job_submission
from nephila.programs.cluster.job_submission import SEED_BATCH, Submission


class System:
    """Schedulers that say what the test has them say."""

    def __init__(self, broker_answers: Callable[[], Awaitable[bool]] | None = None) -> None:
        clock = ManualClock()
        self.bus = LocalBus(clock)
        self.submission = Submission(self.bus, clock, 16, CrawlJob("j"), broker_answers=broker_answers)
        self.heard: list[object] = []
        for topic in (JOBS, SEEDS):
            self.bus.subscribe(topic, "scheduler", self._hear, credits=10_000)
        self.version = 0

    def _hear(self, delivery) -> None:
        self.heard.append(delivery.message)
        delivery.ack()

    async def begin(self, seeds: int) -> asyncio.Task[JobStatus]:
        """Submit so many seeds."""
        task = asyncio.create_task(self.submission.run([Seed("j", f"http://a.test/{n}") for n in range(seeds)]))
        await asyncio.sleep(0)
        return task

    async def say(self, generation: int, **fields: object) -> list[object]:
        """The next status; returns what it has led to."""
        self.heard.clear()
        self.version += 1
        self.bus.publish(JOB_STATUS, 0, JobStatus("j", generation, version=self.version, **fields))
        for _ in range(10):
            await asyncio.sleep(0)
        return self.heard


def jobs(heard: list[object]) -> list[tuple[int, bool]]:
    """(generation, paused) of the jobs among them."""
    return [(one.generation, one.paused) for one in heard if isinstance(one, CrawlJob)]


async def test_seeds_come_when_the_job_is_known_and_the_job_once_more():
    """Done is what all are that have read both."""
    system = System()
    task = await system.begin(3)
    heard = await system.say(1, done=True)
    assert len(heard) == 4
    assert jobs(heard) == [(2, False)]
    await system.say(1, done=True)
    await system.say(2)
    assert not task.done()
    await system.say(2, stored=3, done=True)
    assert (await task).stored == 3


async def test_with_many_seeds_the_job_is_paused_until_all_were_read():
    """Else a link to a host whose seed is still on its way would be outside the scope."""
    system = System()
    task = await system.begin(SEED_BATCH + 5)
    assert jobs(system.heard) == [(1, True)]
    heard = await system.say(1, paused=True)
    assert len(heard) == SEED_BATCH + 5 + 1
    assert jobs(heard) == [(2, True)]
    assert await system.say(1, paused=True, done=True) == []
    assert await system.say(2, paused=True) == []
    assert jobs(await system.say(2, paused=True, done=True)) == [(3, False)]
    assert not task.done()
    await system.say(3, done=True)
    assert (await task).generation == 3


async def test_a_job_that_somebody_pauses_is_waited_for():
    """That nothing is on its way then is no end."""
    system = System()
    task = await system.begin(1)
    await system.say(1)
    await system.say(2, paused=True, done=True)
    assert not task.done()
    await system.say(3, done=True)
    assert (await task).generation == 3


async def test_the_word_of_a_coordinator_that_had_not_read_the_last_is_not_heard():
    """Two of the same number: the first counts."""
    system = System()
    task = await system.begin(1)
    await system.say(1)
    await system.say(2, stored=1)
    system.version -= 1
    await system.say(2, done=True)
    assert not task.done()
    await system.say(2, done=True)
    assert (await task).done


async def test_a_deleted_job_is_one_line():
    """Somebody has deleted it while it was watched."""
    system = System()
    task = await system.begin(1)
    await system.say(1)
    await system.say(2, deleted=True)
    with pytest.raises(UserError, match="job 'j' was deleted"):
        await task


async def test_a_silence_counts_only_while_the_broker_is_there(monkeypatch):
    """Without one nobody can say anything; with one, somebody who schedules would."""
    monkeypatch.setattr(job_submission, "SILENT_S", 0.01)
    answers = iter((False, False, True))

    async def answer() -> bool:
        return next(answers)

    system = System(answer)
    task = await system.begin(1)
    with pytest.raises(UserError, match="no scheduler has said anything of job 'j'"):
        await task
    assert next(answers, None) is None


async def test_what_the_broker_does_not_take_is_one_line():
    """A person who changes a job is not left waiting for ever."""
    bus = KafkaBus(KafkaConfig("broker:1"), SystemClock())
    with pytest.raises(UserError, match=r"the broker at broker:1 has not said for 0.01 s .* may still take it"):
        await taken(bus, Receipt(), 0.01)
    arrived = Receipt()
    arrived.resolve_one()
    await taken(bus, arrived, 0.01)
