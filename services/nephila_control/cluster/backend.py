"""A system over Kafka as a backend of the control API: its compacted topics hold the jobs, their status and the rules.

A job is the last message about it; to change one is to publish it under its next generation, and schedulers that are
down read it when they come back. A change is durable when the broker has confirmed it (acks=all). Nothing durable is
kept here, so any number of programs may serve one system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from nephila.kernel.bus.contract import Bus, Delivery, Receipt, all_of
from nephila.kernel.bus.latest import Latest
from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.layout import Layout
from nephila.kernel.live_settings import SettingScope
from nephila.kernel.messages import (
    CrawlJob,
    JobStatus,
    MemberStatus,
    Outcome,
    ParseRule,
    Quarantine,
    RuleVerdict,
    Seed,
    Setting,
)
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError, UsageError, UserError
from nephila.kernel.topics import (
    CONTROL_LOG,
    EXPLAIN_ANSWERS,
    JOB_STATUS,
    JOBS,
    MEMBERS,
    RULE_VERDICTS,
    RULES,
    SEEDS,
    SETTINGS,
    Topic,
)
from nephila.native import UrlError, parse_url
from nephila.storage.source import Source

from nephila_control import job_types, job_view, screen_types, system_types
from nephila_control.access.change_log import ChangeLog
from nephila_control.backend import Backend, DeadLetters, Topics, next_generation
from nephila_control.cluster.held_jobs import HeldJobs
from nephila_control.cluster.log import TopicChangeLog
from nephila_control.cluster.members import Members
from nephila_control.cluster.queries import Queries
from nephila_control.event_log import EventLog
from nephila_control.explain.explain import Explanation
from nephila_control.job_report import finished, job_report
from nephila_control.rule_versions import RuleVersions, StoredVersion
from nephila_control.series import Counts, JobSeries
from nephila_control.stores import store_problems
from nephila_control.throughput import Rates

GROUP = "control"
TAKEN_S = 20.0
"""For the broker's answer to what was published."""
PROMPT_S = 5.0
"""A broker that takes longer for an answer is away."""


class ClusterBus(Bus, Protocol):
    """The part of the transport that the API uses."""

    @property
    def troubles(self) -> list[str]:
        """Each line is a reason why nothing can be sent or received at present."""

    @property
    def answering_since(self) -> float: ...

    @property
    def layout(self) -> Layout: ...

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]: ...


class ClusterBackend(Backend):
    """Build it before the bus is started."""

    kind: system_types.SystemKind = "cluster"
    at_once = False

    def __init__(
        self,
        bus: ClusterBus,
        clock: Clock,
        letters: DeadLetters,
        topics: Topics,
        *,
        place: str,
        rows: Source | None = None,
        tenants: Collection[str] = (),
        rules_directory: Path | None = None,
    ) -> None:
        """`place` is HOST:PORT of the broker, as commands name it. `rows` is the database of the rows, if it is
        configured. `tenants` lists the tenants in the settings; an empty list lets jobs name any tenant."""
        self.place = place
        self.clock = clock
        self.rows = rows
        self.letters = letters
        self._topics = topics
        self._tenants = tenants
        self._rules_directory = rules_directory
        self._bus = bus
        self._started = clock.monotonic()
        self._began = clock.now()
        self._jobs: dict[str, CrawlJob] = {}
        self._statuses: dict[str, tuple[JobStatus, float]] = {}
        """Uid → last status, and the instant of its arrival."""
        self._rules: Latest[ParseRule] = Latest(RULES)
        self._versions = RuleVersions()
        self._verdicts: dict[str, RuleVerdict] = {}
        self._rates = Rates()
        self.series = JobSeries()
        self.events = EventLog(clock)
        self._queries = Queries(self._send, lambda: bus.layout, place, lambda: bus.troubles)
        self._members = Members(clock, lambda: bus.answering_since)
        log = TopicChangeLog(clock, lambda entry: self._send(CONTROL_LOG, entry))
        self.log: ChangeLog = log
        self.held = HeldJobs(clock, self._jobs, self._status_of, self._put, self._broker_problems)
        for topic, handler in (
            (JOBS, self._on_job),
            (JOB_STATUS, self._on_status),
            (RULES, self._on_rule),
            (RULE_VERDICTS, self._on_verdict),
            (EXPLAIN_ANSWERS, self._queries.on_answer),
            (MEMBERS, self._on_member),
            (SETTINGS, self._members.on_setting),
            (CONTROL_LOG, log.on_entry),
        ):
            bus.subscribe(topic, GROUP, _acked(handler), credits=1000)

    def close(self) -> None:
        """Leave jobs that wait for their seeds as they are: paused."""
        self.held.close()

    # ---- what the system reports

    def _on_job(self, job: CrawlJob) -> None:
        current = self._jobs.get(job.uid)
        # A message of an earlier generation is one that this program has changed since.
        if current is None or job.generation >= current.generation:
            self._jobs[job.uid] = job
            self.held.note()

    def _on_status(self, status: JobStatus) -> None:
        current = self._statuses.get(status.uid)
        # A status that is not above those before it is of a coordinator that had not read them, and does not count.
        if current is None or status.version > current[0].version:
            now = self.clock.monotonic()
            self._statuses[status.uid] = (status, now)
            if status.at >= self._began:  # what was read at the start is no rate
                self._rates.note(now, self._totals)
                self.series.note(now, self.clock.now(), self._counts)
            self._note_failure(status)
            self.held.note()

    def _note_failure(self, status: JobStatus) -> None:
        job = self._jobs.get(status.uid)
        if job is not None and not job.deleted:
            self.events.note_jobs([self.report(job)], first=status.at < self._began)

    def _on_member(self, member: MemberStatus) -> None:
        self._members.on_member(member)
        if self.events.due() and member.at >= self._began:
            self.look()

    def look(self) -> None:
        self.events.look(self.members(), self._members.stores())

    def _counts(self) -> dict[str, Counts]:
        return {
            uid: (status.queued, status.in_flight, status.stored, status.denied, status.failed, status.dropped)
            for uid, (status, _) in self._statuses.items()
            if not status.deleted
        }

    def _on_rule(self, rule: ParseRule) -> None:
        self._rules.take(rule)
        self._versions.take(rule)

    def _on_verdict(self, verdict: RuleVerdict) -> None:
        self._verdicts[verdict.rule] = verdict

    # ---- jobs

    @property
    def tenants(self) -> Collection[str]:
        return self._tenants

    def check_job(self, document: JobDocument) -> None:
        for name in document.spec.rules:
            if name not in self._rules:
                raise UserError(
                    f"{document.location}: the system has no rule {name!r} (spec.rules); see nephila rules deploy"
                )

    def spec(self, uid: str) -> CrawlJob | None:
        return self._jobs.get(uid)

    def jobs(self) -> Mapping[str, CrawlJob]:
        return {uid: job for uid, job in sorted(self._jobs.items()) if not job.deleted}

    def reported_generation(self, uid: str) -> int:
        """Schedulers that still have the job ignore earlier generations."""
        return self._status_of(uid).generation

    def _status_of(self, uid: str) -> JobStatus:
        status = self._statuses.get(uid)
        return status[0] if status is not None else JobStatus(uid)

    def report(self, job: CrawlJob) -> job_types.Job:
        now = self.clock.monotonic()
        status, at = self._statuses.get(job.uid) or (JobStatus(job.uid), self._started)
        answer = job_report(job, status, self._rates.of(job.uid, now, finished(status)))
        answer.reported_s = round(max(now - at, 0.0), 3)
        answer.silent_s = round(max(now - max(at, self._bus.answering_since), 0.0), 3)
        return answer

    def _totals(self) -> dict[str, int]:
        return {uid: finished(status) for uid, (status, _) in self._statuses.items()}

    async def publish(self, job: CrawlJob, seeds: Sequence[Seed] = ()) -> list[job_types.RefusedSeed]:
        await self._put(job)
        return await self.send_seeds(job.uid, seeds)

    async def _put(self, job: CrawlJob) -> None:
        receipt = self._publish(JOBS, 0, job)
        self._jobs[job.uid] = job
        await self._taken(receipt)

    async def _send(self, topic: Topic, message: Any) -> None:
        await self._taken(self._publish(topic, 0, message))

    def _publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        try:
            return self._bus.publish(topic, partition, message)
        except PermanentError as error:
            raise UsageError(str(error)) from None

    async def _taken(self, *receipts: Receipt) -> None:
        """Return when the broker has what was published. Raises `NotReadyError` after TAKEN_S: a person waits."""
        try:
            await asyncio.wait_for(_done(all_of(receipts)), TAKEN_S)
        except TimeoutError:
            raise NotReadyError(
                f"the broker at {self.place} has not confirmed this for {TAKEN_S:g} s, and may still take it; when it "
                "answers again see nephila jobs list, and repeat the command"
            ) from None

    async def send_seeds(self, uid: str, seeds: Sequence[Seed]) -> list[job_types.RefusedSeed]:
        refused: list[job_types.RefusedSeed] = []
        for start in range(0, len(seeds), job_types.SEED_BATCH):
            receipts = []
            for seed in seeds[start : start + job_types.SEED_BATCH]:
                try:
                    partition = self._bus.layout.of(parse_url(seed.url).fingerprint)
                except UrlError as error:
                    refused.append(job_types.RefusedSeed(url=seed.url, reason=str(error)))
                else:
                    receipts.append(self._publish(SEEDS, partition, seed))
            await self._taken(*receipts)
        return refused

    async def resume_held(self, job: CrawlJob) -> bool:
        return await self.held.resume(job)

    async def republish(self, job: CrawlJob) -> None:
        await self._put(next_generation(job))

    # ---- URLs

    async def quarantines(self, uid: str) -> list[Quarantine]:
        return await self._queries.quarantines(uid)

    async def release(self, uid: str, host: str, pattern: str) -> None:
        await self._queries.release(uid, host, pattern)

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        return await self._queries.try_exclusion(job, exclude)

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        return await self._queries.forget(job, urls)

    async def explain(self, url: str, name: str) -> Explanation:
        job_view.choose(self.jobs(), name)
        return await self._queries.explain(url, name)

    async def hosts(
        self, request: screen_types.ListHosts, jobs: Collection[str] | None = None
    ) -> screen_types.HostList:
        return job_view.host_answer(*await self._queries.hosts(job_view.host_query(request, jobs)))

    async def set_pace(self, request: screen_types.ChangeHost) -> None:
        await self._queries.change_host(request.name, request.action, request.seconds)

    # ---- rules

    @property
    def rules_directory(self) -> Path | None:
        return self._rules_directory

    @property
    def rules(self) -> Mapping[str, ParseRule]:
        return self._rules

    async def put_rules(self, rules: Sequence[ParseRule]) -> None:
        receipts = []
        for rule in rules:
            receipts.append(self._publish(RULES, 0, rule))
            self._rules.take(rule)
            self._versions.take(rule, self.clock.now())
        await self._taken(*receipts)

    def rule_versions(self, name: str) -> Sequence[StoredVersion]:
        return self._versions.of(name)

    def verdicts(self) -> Iterable[RuleVerdict]:
        return self._verdicts.values()

    # ---- the system

    def members(self) -> list[system_types.Member]:
        return self._members.list()

    async def complete(self, status: system_types.Status) -> None:
        status.transport = [*self._bus.troubles, *(await self._broker_problems())]
        status.storage = self._members.stores()
        status.disks = self._members.disks()
        status.refusing_hosts = self._members.refusing_hosts()
        status.problems = [*status.transport, *store_problems(status.storage), *self._lost_jobs_problems()]
        if failed := self.failed_backup:
            status.problems.append(failed)

    @property
    def failed_backup(self) -> str:
        """Returns an empty string unless the newest backup failed."""
        return self._members.failed_backup()

    @property
    def backup_age_s(self) -> float | None:
        """Seconds since the newest backup; None: there was none."""
        return self._members.backup_age_s()

    def _lost_jobs_problems(self) -> list[str]:
        """Schedulers report these jobs, but the topic `jobs` does not have them."""
        lost = sorted(
            uid for uid, (status, _) in self._statuses.items() if not status.deleted and uid not in self._jobs
        )
        if not lost:
            return []
        return [
            f"the topic jobs has no job {', '.join(lost[:5])}{' …' if len(lost) > 5 else ''}, and schedulers report on "
            "it: the topic was deleted or its broker lost data; apply the job again (nephila jobs apply)"
        ]

    async def _broker_problems(self) -> list[str]:
        try:
            await asyncio.wait_for(self._bus.bounds(JOB_STATUS, [0]), PROMPT_S)
        except (TimeoutError, TemporaryError):
            return [f"the broker at {self.place} does not answer"]
        return []

    async def topics(self) -> list[system_types.TopicRow]:
        return await self._topics.rows()

    def settings(self) -> dict[str, Any]:
        return self._members.settings

    def scope_of(self, member: str, setting: str) -> SettingScope:
        return self._members.scope_of(member, setting)

    async def put_settings(self, changes: Mapping[str, Any]) -> None:
        receipts = []
        for name, value in changes.items():
            setting = Setting(name, msgspec.json.encode(value), self.clock.now(), value is None)
            receipts.append(self._publish(SETTINGS, 0, setting))
            self._members.on_setting(setting)
        await self._taken(*receipts)


def _acked(handler: Callable[[Any], None]) -> Callable[[Delivery], None]:
    def take(delivery: Delivery) -> None:
        handler(delivery.message)
        delivery.ack()

    return take


async def _done(receipt: Receipt) -> None:
    await receipt
