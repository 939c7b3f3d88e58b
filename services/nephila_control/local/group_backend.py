"""A program whose groups have the frontier, as a backend of the control API: a crawl, or `nephila up`.

Counts are those that the groups have reported; questions about URLs and hosts go to the groups (`group_questions.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec
from nephila.kernel.bus.contract import Receipt, all_of
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob, Outcome, Quarantine, RefusingHost, Seed, UrlState
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import SEEDS
from nephila.native import UrlError, parse_url
from nephila.programs.control_port import FrontierOfGroups
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine.exclusion_trial import EXAMPLES
from nephila.scheduler.engine.forget_urls import Forgotten
from nephila.scheduler.recrawl.freshness import measure
from nephila.scheduler.standalone import SAMPLED
from nephila.scheduler.tenants.tenants import tenants
from nephila.storage.source import Source

from nephila_control import api, job_types, job_view, screen_types, system_types
from nephila_control.explain.explain import Explanation
from nephila_control.explain.host_list import HostRows, first_rows
from nephila_control.job_report import finished, job_report
from nephila_control.local import group_questions as q
from nephila_control.local.backend import LocalBackend
from nephila_control.series import Counts
from nephila_control.stores import refusing_hosts
from nephila_control.system_views import joined

T = TypeVar("T")


class GroupBackend(LocalBackend):
    """One program with groups."""

    _changes = 0
    """Changes of jobs that are on their way to the groups."""

    @cached_property
    def _freshness(self) -> dict[str, dict[str, Any] | None]:
        """Job → what was measured last."""
        return {}

    @cached_property
    def _publishing(self) -> asyncio.Lock:
        """One request publishes at a time: the refused seeds are its own."""
        return asyncio.Lock()

    @property
    def _groups(self) -> FrontierOfGroups:
        groups = self._parts.groups
        assert groups is not None
        return groups

    async def _ask(self, partitions: Sequence[int] | None, question: q.Question, answer: type[T]) -> list[T]:
        """Ask the groups of these partitions, or all. Raises `NotReadyError`."""
        answers = await self._groups.ask(partitions, msgspec.msgpack.encode(question))
        return [msgspec.msgpack.decode(data, type=answer) for data in answers]

    def _partition(self, url: str) -> int:
        """A route is no part of what decides the partition."""
        return self._groups.layout.of(parse_url(url).fingerprint)

    def _partition_of_host(self, host: str) -> int:
        try:
            return self._partition(q.url_of(host))
        except UrlError as error:
            raise UsageError(f"{host[:100]!r} is no host: {error}") from None

    @property
    def _source(self) -> Source:
        return self.rows or self._directory

    # ---- jobs

    def _counts(self) -> dict[str, Counts]:
        return self._groups.counts()

    @property
    def tenants(self) -> Collection[str]:
        scheduler = self._parts.configs["scheduler"]
        assert isinstance(scheduler, SchedulerConfig)
        return list(tenants(scheduler.tenants))

    def spec(self, uid: str) -> CrawlJob | None:
        return self._groups.spec(uid)

    def jobs(self) -> Mapping[str, CrawlJob]:
        return self._groups.jobs()

    def report(self, job: CrawlJob) -> job_types.Job:
        status = self._groups.status(job)
        answer = job_report(job, status, self._rates.of(job.uid, self.clock.monotonic(), finished(status)))
        answer.freshness = self._freshness.get(job.uid)
        return answer

    async def prepare_reports(self, jobs: Iterable[CrawlJob]) -> None:
        """Measure the freshness of the jobs that fetch pages again."""
        for job in jobs:
            spec = spec_of(job)
            if spec.recrawl is None and not spec.schedule:
                self._freshness.pop(job.uid, None)
                continue
            samples = [
                sample for sample in await self._ask(None, q.Watched(job.uid, SAMPLED), q.Sample) if sample.total
            ]
            states, rates = evenly(samples, SAMPLED)
            measured = measure(states, self.clock.now(), lambda state, rates=rates: rates[state.url_key])  # type: ignore[misc]
            self._freshness[job.uid] = msgspec.structs.asdict(measured) if states else None

    def _totals(self) -> dict[str, int]:
        return {uid: sum(counts[2:]) for uid, counts in self._counts().items()}

    async def publish(self, job: CrawlJob, seeds: Sequence[Seed] = ()) -> list[job_types.RefusedSeed]:
        """Nothing is fetched until the seeds are in: what is queued in other groups would be out of their scope."""
        self._changes += 1
        self._groups.hold(True)
        try:
            return await super().publish(job, seeds)
        finally:
            self._changes -= 1
            if not self._changes:
                self._groups.hold(False)

    async def _publish(self, pending: list[Receipt], seeds: Sequence[Seed]) -> list[job_types.RefusedSeed]:
        urls = {seed.url for seed in seeds}
        async with self._publishing:
            self._groups.take_refused_seeds()
            for start in range(0, max(len(seeds), 1), job_types.SEED_BATCH):
                pending += [self._bus.publish(SEEDS, 0, seed) for seed in seeds[start : start + job_types.SEED_BATCH]]
                await all_of(pending)
                pending.clear()
            await self._groups.durable()
            refused = self._groups.take_refused_seeds()
        return [job_types.RefusedSeed(url=url, reason=reason) for url, reason in refused if url in urls]

    # ---- URLs

    async def quarantines(self, uid: str) -> list[Quarantine]:
        answers = await self._ask(None, q.Quarantines(uid), list[Quarantine])
        return sorted((row for rows in answers for row in rows), key=lambda row: (row.host, row.place))

    async def release(self, uid: str, host: str, pattern: str) -> None:
        partition = self._partition_of_host(host)
        if not all(await self._ask([partition], q.Release(partition, uid, host, pattern), bool)):
            raise api.NotFound(f"{host}{pattern} is not in quarantine; see nephila jobs quarantines {uid}")

    async def set_pace(self, request: screen_types.ChangeHost) -> None:
        host, partition = request.name.lower(), self._partition_of_host(request.name)
        if not all(await self._ask([partition], q.SetPace(partition, host, request.action, request.seconds), bool)):
            raise job_view.no_host(request.name)

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        async with self._trying:
            queued = self.report(job).queued
            answers = await self._ask(None, q.TryExclusion(job.uid, list(exclude)), q.Tried)
        examples = (text for several in zip_longest(*(answer.examples for answer in answers)) for text in several)
        return job_types.ExclusionTried(
            name=job.uid,
            generation=job.generation,
            queued=queued,
            looked_at=sum(answer.looked_at for answer in answers),
            removed=sum(answer.removed for answer in answers),
            complete=all(answer.complete for answer in answers),
            examples=[text for text in examples if text is not None][:EXAMPLES],
        )

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        parts: dict[int, list[tuple[str, Outcome]]] = {}
        for url, outcome in urls:
            parts.setdefault(self._partition(url), []).append((url, outcome))
        total = job_types.UrlsForgotten(name=job.uid, forgotten=0)
        for partition, part in parts.items():
            for answer in await self._ask([partition], q.Forget(partition, job.uid, part), Forgotten):
                total.forgotten += answer.forgotten
                total.open += answer.open
                total.unknown += answer.unknown
        return total

    async def explain(self, url: str, name: str) -> Explanation:
        rows, disk = self._source, asyncio.get_running_loop().run_in_executor
        uids = (await disk(None, job_view.named, rows, self.jobs(), name, url))[: job_view.CANDIDATES]
        explanations = [await self._explained(uid, url) for uid in uids]
        best = job_view.best([explanation for explanation in explanations if explanation is not None])
        if best.row is None and (best.kind == "seen" or (best.queued is not None and not best.queued.position)):
            # It may have ended, and got its row, between the look into the database and that into the frontier.
            best = await self._explained(best.job, url) or best
        return await disk(None, job_view.left_out, rows, best)

    async def _explained(self, uid: str, url: str) -> Explanation | None:
        disk = asyncio.get_running_loop().run_in_executor
        row = await disk(None, job_view.row, self._source, uid, url)
        fetches = await disk(None, job_view.fetches, self._source, uid, url)
        partition = self._partition(url)
        question = q.Explain(partition, uid, url, row, fetches, self._home)
        return (await self._ask([partition], question, Explanation | None))[0]  # type: ignore[arg-type]

    async def hosts(
        self, request: screen_types.ListHosts, jobs: Collection[str] | None = None
    ) -> screen_types.HostList:
        query = job_view.host_query(request, jobs)
        return job_view.host_answer(first_rows(await self._ask(None, q.Hosts(query), HostRows), query))

    # ---- the system

    def _numbers(self) -> tuple[int, int, int, Counter[str]]:
        groups = self._groups
        return groups.in_flight, groups.wire_bytes, groups.hosts_waiting(), groups.errors

    async def network(self) -> system_types.Network:
        return joined(await self._ask(None, q.Network(), system_types.Network))

    async def _refusing_hosts(self) -> list[system_types.RefusingHost]:
        answers = await self._ask(None, q.RefusingHosts(), list[RefusingHost])
        return refusing_hosts(sorted((host for hosts in answers for host in hosts), key=lambda host: host.since))


def evenly(samples: Sequence[q.Sample], most: int) -> tuple[list[UrlState], dict[bytes, float]]:
    """States of all groups, as many of each as it has URLs, and the rates of their changes by key."""
    share = min((min(len(sample.states), most) / sample.total for sample in samples), default=0.0)
    states, rates = [], {}
    share = min(share, most / max(sum(sample.total for sample in samples), 1))
    for sample in samples:
        count = max(round(sample.total * share), 1)
        for at in (number * len(sample.states) // count for number in range(count)):
            states.append(sample.states[at])
            rates[sample.states[at].url_key] = sample.rates[at]
    return states, rates
