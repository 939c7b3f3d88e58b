"""Questions of the control API to the groups of a program (`--workers N`), and what a group answers.

The main process has no frontier: it asks the group of a host, or all groups. A question and its answer travel over the
pipe as MessagePack. A change is answered when it is in the log and the log is synced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from nephila.downloader.service import Downloader
from nephila.kernel.messages import Outcome, Quarantine, RefusingHost, UrlState
from nephila.kernel.runtime.clock import Clock
from nephila.native import parse_url
from nephila.scheduler.durability.file_log import FileLog
from nephila.scheduler.engine.exclusion_trial import ExclusionTrial, Partition
from nephila.scheduler.engine.forget_urls import Forgotten, forget_urls
from nephila.scheduler.engine.host_pace_changes import HostAction, change_host_pace
from nephila.scheduler.engine.release_quarantine import release_quarantine
from nephila.scheduler.group.scheduler import GroupScheduler
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.partition.owner import PartitionOwner

from nephila_control import system_types
from nephila_control.explain.explain import Explanation, explain
from nephila_control.explain.facts import Home
from nephila_control.explain.host_list import HostQuery, HostRows, host_rows
from nephila_control.system_views import network_of


class _Question(msgspec.Struct, array_like=True, tag=True):
    """A question to a group."""


class Explain(_Question):
    """Of one URL in one job; `row` and `fetches` are what the database has of it. Answer: an `Explanation`, or None."""

    partition: int
    job: str
    url: str
    row: dict[str, Any] | None
    fetches: list[dict[str, Any]]
    home: Home


class Hosts(_Question):
    """Answer: `HostRows` of the group."""

    query: HostQuery


class Quarantines(_Question):
    """Answer: a list of `Quarantine`."""

    job: str


class Release(_Question):
    """Answer: whether the part of the host was in quarantine."""

    partition: int
    job: str
    host: str
    pattern: str


class SetPace(_Question):
    """Answer: whether the group has the host."""

    partition: int
    host: str
    action: HostAction
    seconds: float


class Forget(_Question):
    """Answer: `Forgotten` of the URLs of one partition."""

    partition: int
    job: str
    urls: list[tuple[str, Outcome]]


class TryExclusion(_Question):
    """Answer: a `Tried`."""

    job: str
    exclude: list[str]


class Watched(_Question):
    """Answer: a `Sample` of the URLs of a job that are fetched again, with at most so many states."""

    job: str
    most: int


class RefusingHosts(_Question):
    """Answer: a list of `RefusingHost`."""


class Network(_Question):
    """Answer: a `system_types.Network` of what fetches in the group, with all proxies."""


class Tried(msgspec.Struct, array_like=True):
    looked_at: int
    removed: int
    complete: bool
    examples: list[str]


class Sample(msgspec.Struct, array_like=True):
    total: int
    states: list[UrlState]
    """Evenly spread over all."""
    rates: list[float]
    """Changes per second of each."""


Question = Explain | Hosts | Quarantines | Release | SetPace | Forget | TryExclusion | Watched | RefusingHosts | Network
_decode = msgspec.msgpack.Decoder(Question).decode


class GroupAnswers:
    """The answers of one group."""

    def __init__(self, scheduler: GroupScheduler, clock: Clock, downloaders: Sequence[Downloader] = ()) -> None:
        """`downloaders`: what fetches; none in a crawl that has stopped."""
        self._scheduler = scheduler
        self._downloaders = downloaders
        self._clock = clock
        self._handlers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            Explain: self._explain,
            Hosts: self._hosts,
            Quarantines: self._quarantines,
            Release: self._release,
            SetPace: self._set_pace,
            Forget: self._forget,
            TryExclusion: self._try_exclusion,
            Watched: self._watched,
            RefusingHosts: self._refusing_hosts,
            Network: self._network,
        }

    async def answer(self, question: bytes) -> bytes:
        """Raises `UserError`."""
        decoded = _decode(question)
        return msgspec.msgpack.encode(await self._handlers[type(decoded)](decoded))

    def _job(self, owner: PartitionOwner, uid: str) -> Job | None:
        return owner.frontier.jobs.get(uid)

    async def _explain(self, question: Explain) -> Explanation | None:
        owner = self._scheduler.owners[question.partition]
        job = self._job(owner, question.job)
        if job is None:
            return None
        now = owner.begin_turn()
        return explain(
            owner.dispatcher,
            job,
            question.url,
            now,
            row=question.row,
            fetches=question.fetches,
            running=True,
            home=question.home,
        )

    async def _hosts(self, question: Hosts) -> HostRows:
        dispatchers = [owner.dispatcher for owner in self._scheduler.owners.values()]
        return host_rows(dispatchers, self._clock.monotonic(), question.query)

    async def _quarantines(self, question: Quarantines) -> list[Quarantine]:
        jobs = [self._job(owner, question.job) for owner in self._scheduler.owners.values()]
        return [quarantine for job in jobs if job is not None for quarantine in job.quarantines.values()]

    async def _release(self, question: Release) -> bool:
        owner = self._scheduler.owners[question.partition]
        owner.begin_turn()
        return await self._changed(
            owner, release_quarantine(owner.frontier, question.job, question.host, question.pattern)
        )

    async def _set_pace(self, question: SetPace) -> bool:
        owner = self._scheduler.owners[question.partition]
        owner.begin_turn()
        return await self._changed(
            owner, change_host_pace(owner.frontier, question.host, question.action, question.seconds)
        )

    async def _forget(self, question: Forget) -> Forgotten:
        owner = self._scheduler.owners[question.partition]
        job = self._job(owner, question.job)
        if job is None:
            return Forgotten(unknown=len(question.urls))
        owner.begin_turn()
        result = forget_urls(owner.dispatcher, job, question.urls)
        await self._changed(owner, bool(result.forgotten))
        return result

    async def _changed(self, owner: PartitionOwner, changed: bool) -> bool:
        """Return when the change of a partition is durable."""
        if changed:
            owner.wake()
            await owner.settled()
            assert isinstance(owner.log, FileLog)
            await owner.log.durable()
        return changed

    async def _try_exclusion(self, question: TryExclusion) -> Tried:
        pairs = [(owner.frontier, self._job(owner, question.job)) for owner in self._scheduler.owners.values()]
        parts: Sequence[Partition] = [Partition(frontier, job) for frontier, job in pairs if job is not None]
        trial = ExclusionTrial(parts, question.exclude, self._clock)
        while not trial.done:
            trial.step()
            await asyncio.sleep(0)
        return Tried(trial.looked_at, trial.removed, trial.complete, trial.examples)

    async def _watched(self, question: Watched) -> Sample:
        jobs = [self._job(owner, question.job) for owner in self._scheduler.owners.values()]
        watching = [job for job in jobs if job is not None and job.compiled.recrawl.active]
        sample = Sample(sum(len(job.due_table) for job in watching), [], [])
        for job in watching:
            most = question.most * len(job.due_table) // max(sample.total, 1)
            states = job.due_table.sample(max(most, 1))
            sample.states += states
            sample.rates += map(job.compiled.recrawl.rate, states)
        return sample

    async def _refusing_hosts(self, question: RefusingHosts) -> list[RefusingHost]:
        return self._scheduler.refusing_hosts()

    async def _network(self, question: Network) -> system_types.Network:
        return network_of(self._downloaders)


def url_of(host: str) -> str:
    """A URL of a host, of which its partition follows. Raises `UrlError`."""
    return parse_url(f"http://{host}/").href
