"""The control API of a system over Kafka: its compacted topics hold the jobs, their status and the rules.

A job is the last message about it; to change one is to publish it under its next generation, and schedulers that are
down read it when they come back. After the seeds the job is published once more: a scheduler that reports that
generation as done has read every seed. Nothing durable is kept here, so any number of programs may serve one system.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nephila import __version__
from nephila.control import api
from nephila.control.changes import TableChanges
from nephila.control.forget import check, named_urls, without_rows
from nephila.control.job_view import quarantine
from nephila.control.rule_documents import read_rules, rule_change, rule_health, rule_list
from nephila.control.seed_sources import source_seeds
from nephila.control.tenants import check_tenant
from nephila.control.throughput import Rates
from nephila.kernel import live_settings
from nephila.kernel.bus.contract import Bus, Delivery, Receipt, all_of
from nephila.kernel.documents import job_document
from nephila.kernel.documents.job_to_document import to_document
from nephila.kernel.fragment_routes import parse_for, parse_routed
from nephila.kernel.messages import (
    CrawlJob,
    ExplainAnswer,
    ExplainQuery,
    JobStatus,
    MemberState,
    MemberStatus,
    Outcome,
    ParseRule,
    Quarantine,
    RuleVerdict,
    ScopeMode,
    Seed,
    Setting,
)
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.config import secret_variable
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError, UsageError, UserError
from nephila.kernel.topics import (
    EXPLAIN_ANSWERS,
    EXPLAIN_QUERIES,
    JOB_STATUS,
    JOBS,
    MEMBERS,
    RULE_VERDICTS,
    RULES,
    SEEDS,
    SETTINGS,
    Topic,
)
from nephila.native import UrlError, parse_url, partition_of
from nephila.scheduler.explain.explain import Explanation
from nephila.storage.source import ENVIRONMENT, Source

if TYPE_CHECKING:
    from nephila.kernel.bus.kafka.bus import KafkaBus
    from nephila.kernel.bus.kafka.config import KafkaConfig

GROUP = "control"
FORGET_BATCH = 100
"""URLs of one query: with 8,192 characters each they fit into a message."""
TAKEN_S = 20.0
"""For the broker's answer to what was published."""
ANSWER_S = 10.0
"""For the answer of a scheduler; one that has just taken a partition over may be busy."""
PROMPT_S = 5.0
"""A broker that takes longer for an answer is away."""
START_S = 60.0
"""Longest time to connect and to read what the system has published."""
GONE_S = 180.0
"""A broker that has not answered for so long is given up by a request that waits for the schedulers."""
LOOK_S = 5.0
"""Time between two looks whether the broker answers."""
RELEASE_S = 20.0
"""Longest wait of one request for the schedulers to read all seeds."""


OVERDUE, SILENT = 1.5, 3.0
"""Intervals since the last report of a member after which the next one is overdue, and its state is silent."""
FORGOTTEN_S = 86_400.0
"""A member that has not reported for so long is not listed."""
MEMBER_STATES: dict[MemberState, api.MemberState] = {
    MemberState.UNSPECIFIED: "starting",
    MemberState.READY: "ready",
    MemberState.NOT_READY: "not_ready",
    MemberState.DRAINING: "draining",
    MemberState.ENDED: "ended",
}


class ClusterBus(Bus, Protocol):
    """What the API needs of the transport."""

    @property
    def troubles(self) -> list[str]:
        """Why nothing can be sent or received at present, one line each."""

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """See `History.bounds`."""


class DeadLetters(Protocol):
    """The topic `dead`."""

    async def page(self, request: api.ListDeadLetters) -> api.DeadLetterList:
        """Some of them."""

    async def replay(self, request: api.ReplayDeadLetters) -> api.ReplayedList:
        """Publish their messages again."""


class ClusterControl:
    """See `nephila.control.api.Control`. Build it before the bus is started."""

    def __init__(
        self,
        bus: ClusterBus,
        clock: Clock,
        letters: DeadLetters,
        *,
        partitions: int,
        place: str,
        rows: Source | None = None,
        tenants: Collection[str] = (),
    ) -> None:
        """`place`: HOST:PORT of the broker, as commands name it. `rows`: the database of the rows, if it is known.
        `tenants`: names of those in the settings; empty: jobs may name any."""
        self._tenants = tenants
        self._changes = TableChanges(rows)
        self._rows = rows
        self._bus = bus
        self._clock = clock
        self._letters = letters
        self._partitions = partitions
        self._place = place
        self._started = clock.monotonic()
        self._began = clock.now()
        self._jobs: dict[str, CrawlJob] = {}
        self._statuses: dict[str, tuple[JobStatus, float]] = {}
        """Uid → last status, and when it came."""
        self._rules: dict[str, ParseRule] = {}
        self._verdicts: dict[str, RuleVerdict] = {}
        self._answers: dict[str, asyncio.Queue[ExplainAnswer]] = {}
        self._members: dict[str, MemberStatus] = {}
        self._settings: dict[str, Any] = {}
        self._reported = asyncio.Event()
        self._releases: dict[str, asyncio.Task[None]] = {}
        self.rates = Rates()
        for topic, handler in (
            (JOBS, self._on_job),
            (JOB_STATUS, self._on_status),
            (RULES, self._on_rule),
            (RULE_VERDICTS, self._on_verdict),
            (EXPLAIN_ANSWERS, self._on_answer),
            (MEMBERS, self._on_member),
            (SETTINGS, self._on_setting),
        ):
            bus.subscribe(topic, GROUP, _acked(handler), credits=1000)

    async def finish(self) -> None:
        """Return when no job waits any more for its seeds to be read. Raises `NotReadyError` when the broker is gone:
        the jobs stay paused."""
        answered = self._clock.monotonic()
        while self._releases:
            await asyncio.wait(list(self._releases.values()), timeout=LOOK_S)
            if not self._releases or not (problems := await self._broker_problems()):
                answered = self._clock.monotonic()
            elif self._clock.monotonic() - answered > GONE_S:
                raise NotReadyError(
                    f"{'; '.join(problems)}, for {GONE_S:g} s: {', '.join(self.waiting)} stays paused until the seeds "
                    "are read; when it answers again, nephila jobs resume"
                )

    @property
    def waiting(self) -> list[str]:
        """Jobs that wait for their seeds to be read."""
        return sorted(self._releases)

    def close(self) -> None:
        """Leave jobs that wait for their seeds as they are: paused."""
        for task in list(self._releases.values()):
            task.cancel()

    # ---- what the system reports

    def _on_job(self, job: CrawlJob) -> None:
        known = self._jobs.get(job.uid)
        # A message of an earlier generation is one that this program has changed since.
        if known is None or job.generation >= known.generation:
            self._jobs[job.uid] = job
            self._wake()

    def _on_status(self, status: JobStatus) -> None:
        known = self._statuses.get(status.uid)
        # A status that is not above those before it is of a coordinator that had not read them, and does not count.
        if known is None or status.version > known[0].version:
            now = self._clock.monotonic()
            self._statuses[status.uid] = (status, now)
            if status.at >= self._began:  # what was read at the start is no rate
                self.rates.note(now, self._totals)
            self._wake()

    def _on_rule(self, rule: ParseRule) -> None:
        if rule.deleted:
            self._rules.pop(rule.name, None)
        else:
            self._rules[rule.name] = rule

    def _on_verdict(self, verdict: RuleVerdict) -> None:
        self._verdicts[verdict.rule] = verdict

    def _on_member(self, member: MemberStatus) -> None:
        self._members[member.id] = member

    def _on_setting(self, setting: Setting) -> None:
        if setting.deleted:
            self._settings.pop(setting.name, None)
        else:
            self._settings[setting.name] = msgspec.json.decode(setting.value)

    def _on_answer(self, answer: ExplainAnswer) -> None:
        if (waiting := self._answers.get(answer.id)) is not None:
            waiting.put_nowait(answer)

    def _wake(self) -> None:
        reported, self._reported = self._reported, asyncio.Event()
        reported.set()

    # ---- jobs

    async def apply_job(self, request: api.ApplyJob) -> api.JobApplied:
        """See `Control.apply_job`."""
        document = job_document.from_json(request.job)
        wanted = document.job
        sources = source_seeds(document, seeds_follow=request.seeds_follow)
        check_tenant(document, self._tenants)
        for name in wanted.rules:
            if name not in self._rules:
                raise UserError(
                    f"{document.location}: the system has no rule {name!r} (spec.rules); see nephila rules deploy"
                )
        known = self._jobs.get(wanted.uid)
        exists = known is not None and not known.deleted
        if not exists and len(self._present()) >= api.MAX_JOBS:
            raise UserError(f"there are {api.MAX_JOBS:,} jobs already; delete one first")
        wanted.generation = known.generation if known is not None else self._reported_generation(wanted.uid)
        before = set(known.seeds) if known is not None and exists else set()
        seeds = [Seed(wanted.uid, url, "job") for url in wanted.seeds if url not in before]
        seeds += sources
        if wanted == known:
            refused = await self._seed(seeds)
            return _applied(wanted, "unchanged", refused)
        # The scope is anchored at the seeds. Where they come in pieces the job is paused until all were read: a link to
        # a host whose seed comes later would be out of scope.
        pieces = request.seeds_follow or len(seeds) > api.SEED_BATCH
        hold = pieces and not wanted.paused and (not exists or _mode(known) != _mode(wanted))
        wanted = await self._put(msgspec.structs.replace(wanted, paused=wanted.paused or hold))
        refused = await self._seed(seeds)
        if not request.seeds_follow:
            if hold:
                hold = not await self._release(wanted.uid, wanted.generation)
            elif seeds:
                await self._put(wanted)
        current = self._jobs[wanted.uid]
        answer = _applied(current, "changed" if exists else "created", refused, held=hold)
        if exists and known is not None and known.scope != wanted.scope and wanted.uid in self._statuses:
            answer.links_lost = self._statuses[wanted.uid][0].links_lost
        return answer

    def _reported_generation(self, uid: str) -> int:
        """Of a job that the topic `jobs` does not have: schedulers that still have it ignore earlier generations."""
        status = self._statuses.get(uid)
        return status[0].generation if status is not None else 0

    @property
    def _lost_jobs(self) -> list[str]:
        """Jobs that schedulers report and that the topic `jobs` does not have."""
        return sorted(
            uid for uid, (status, _) in self._statuses.items() if not status.deleted and uid not in self._jobs
        )

    async def list_jobs(self, request: api.Empty) -> api.JobList:
        """See `Control.list_jobs`."""
        return api.JobList(jobs=self._list())

    async def list_directories(self, request: api.Empty) -> api.DirectoryList:
        """See `Control.list_directories`. The sites of a system are in the file of the program that starts the runs."""
        raise api.NotFound("this API has no sites; nephila sites list --sites FILE shows the verdicts on lists")

    async def get_job(self, request: api.JobName) -> api.JobDetail:
        """See `Control.get_job`."""
        job = self._known(request.name)
        return api.JobDetail(status=self._job(job), document=to_document(job))

    async def pause_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.pause_job`."""
        return await self._change(request.name, "paused", paused=True)

    async def resume_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.resume_job`."""
        return await self._change(request.name, "resumed", paused=False)

    async def delete_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.delete_job`."""
        return await self._change(request.name, "deleted", deleted=True)

    async def add_seeds(self, request: api.AddSeeds) -> api.SeedsAdded:
        """See `Control.add_seeds`."""
        job = self._known(request.name)
        refused = await self._seed(request.seeds(job.uid))
        held = bool(request.held_generation)
        if request.last and held:
            held = not await self._release(job.uid, request.held_generation)
        elif request.last:
            await self._put(self._known(request.name))
        current = self._known(request.name)
        return api.SeedsAdded(
            name=job.uid,
            generation=current.generation,
            refused=refused[: api.MAX_REFUSED],
            refused_count=len(refused),
            held=held,
        )

    async def _change(self, name: str, verdict: Any, **changed: bool) -> api.JobChanged:
        known = self._known(name)
        wanted = msgspec.structs.replace(known, **changed)
        if wanted == known:
            return api.JobChanged(name=known.uid, verdict="unchanged", generation=known.generation)
        wanted = await self._put(wanted)
        return api.JobChanged(name=known.uid, verdict=verdict, generation=wanted.generation)

    async def _put(self, job: CrawlJob) -> CrawlJob:
        """Publish a desired state under the next generation; returns it when the broker has it."""
        job = msgspec.structs.replace(job, generation=job.generation + 1)
        receipt = self._publish(JOBS, 0, job)
        self._jobs[job.uid] = job
        await self._taken(receipt)
        return job

    async def _seed(self, seeds: list[Seed]) -> list[api.RefusedSeed]:
        refused: list[api.RefusedSeed] = []
        for start in range(0, len(seeds), api.SEED_BATCH):
            receipts = []
            for seed in seeds[start : start + api.SEED_BATCH]:
                try:
                    partition = partition_of(parse_url(seed.url).fingerprint, self._partitions)
                except UrlError as error:
                    refused.append(api.RefusedSeed(url=seed.url, reason=str(error)))
                else:
                    receipts.append(self._publish(SEEDS, partition, seed))
            await self._taken(all_of(receipts))
        return refused

    async def _release(self, uid: str, generation: int) -> bool:
        """Continue a held job once the schedulers have read its seeds; False when that takes longer than RELEASE_S, and
        then it happens later. A job that was changed in the meantime is left as it is."""
        job = self._jobs.get(uid)
        if job is None or job.deleted or job.generation != generation or not job.paused:
            return True
        if uid not in self._releases:
            job = await self._put(job)
            task = asyncio.ensure_future(self._release_when_read(uid, job.generation))
            self._releases[uid] = task
            task.add_done_callback(lambda done: self._releases.pop(uid, None))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._releases[uid]), RELEASE_S)
            return True
        return False

    async def _release_when_read(self, uid: str, generation: int) -> None:
        while True:
            job, reported = self._jobs[uid], self._reported
            if job.generation != generation:
                return
            status = self._statuses.get(uid, (JobStatus(uid), 0.0))[0]
            if status.generation >= generation and status.done:
                await self._put(msgspec.structs.replace(job, paused=False))
                return
            await reported.wait()

    def _publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        try:
            return self._bus.publish(topic, partition, message)
        except PermanentError as error:
            raise UsageError(str(error)) from None

    async def _taken(self, receipt: Receipt) -> None:
        """Return when the broker has what was published. Raises `NotReadyError` after TAKEN_S: a person waits."""
        try:
            await asyncio.wait_for(_done(receipt), TAKEN_S)
        except TimeoutError:
            raise NotReadyError(
                f"the broker at {self._place} has not confirmed this for {TAKEN_S:g} s, and may still take it; when it "
                "answers again see nephila jobs list, and repeat the command"
            ) from None

    # ---- quarantines, explain

    async def list_quarantines(self, request: api.JobName) -> api.QuarantineList:
        """See `Control.list_quarantines`."""
        name = self._known(request.name).uid
        found: list[Quarantine] = []
        missing = set(range(self._partitions))
        async with self._asked(ExplainQuery(job=name, slot="quarantines", list_quarantines=True)) as answers:
            try:
                async with asyncio.timeout(ANSWER_S):
                    while missing:
                        answer = await answers.get()
                        if missing.intersection(answer.partitions):
                            missing.difference_update(answer.partitions)
                            found += answer.quarantines
            except TimeoutError:
                count = f"{len(missing)} of {self._partitions} partitions"
                raise self._no_answer(f"for {count}") from None
        return api.QuarantineList(
            name=name, quarantines=[quarantine(one) for one in sorted(found, key=lambda one: (one.host, one.place))]
        )

    async def release_quarantine(self, request: api.ReleaseQuarantine) -> api.QuarantineReleased:
        """See `Control.release_quarantine`."""
        name = self._known(request.name).uid
        try:
            href = parse_url(f"http://{request.host}/").href
        except UrlError as error:
            raise UsageError(f"{request.host[:100]!r} is no host: {error}") from None
        answer = await self._ask(ExplainQuery(url=href, job=name, release=request.pattern))
        if not answer.released:
            raise UserError(
                "the scheduler that has this host is of an older release, which releases nothing: update it"
            )
        return api.QuarantineReleased(name=name, host=request.host, pattern=request.pattern)

    async def forget(self, request: api.ForgetUrls) -> api.UrlsForgotten:
        """See `Control.forget`. Each partition is asked in turn, FORGET_BATCH URLs at a time."""
        job = self._known(request.name)
        check(request)
        if self._rows is not None:
            urls = await asyncio.get_running_loop().run_in_executor(None, named_urls, self._rows, job, request)
        elif request.match:
            raise UsageError(f"an expression is looked up in the database of the rows: set {ENVIRONMENT}, or give URLs")
        else:
            urls = without_rows(request.urls)
        parts: dict[int, list[tuple[str, Outcome]]] = {}
        for url, outcome in urls:
            parts.setdefault(partition_of(parse_for(job, url).fingerprint, self._partitions), []).append((url, outcome))
        total = api.UrlsForgotten(name=job.uid, forgotten=0)
        for part in parts.values():
            for start in range(0, len(part), FORGET_BATCH):
                batch = part[start : start + FORGET_BATCH]
                answer = await self._ask(
                    ExplainQuery(
                        url=batch[0][0],
                        job=job.uid,
                        forget=[url for url, _ in batch],
                        forget_outcomes=bytes(outcome for _, outcome in batch),
                    )
                )
                if not answer.released:
                    raise UserError(
                        f"{total.forgotten:,} URLs are forgotten, then a scheduler of an older release answered, which "
                        "forgets nothing: update it"
                    )
                total.forgotten += answer.forgotten
                total.open += answer.open
                total.unknown += answer.unknown
        if total.forgotten:
            # Parsers send the links again that they have sent before: a changed job clears their caches.
            await self._put(self._known(request.name))
        return total

    async def explain(self, request: api.ExplainUrl) -> api.Explained:
        """See `Control.explain`."""
        try:
            href = parse_routed(request.url).href
        except UrlError as error:
            raise UsageError(f"{request.url[:100]!a} is not a URL that can be crawled: {error}") from None
        if request.job:
            self._known(request.job)
        elif not self._present():
            raise api.NotFound("there is no job yet; see nephila jobs apply")
        answer = await self._ask(ExplainQuery(url=href, job=request.job))
        return api.Explained(explanation=msgspec.json.decode(answer.explanation, type=Explanation))

    async def _ask(self, question: ExplainQuery) -> ExplainAnswer:
        """The answer of the scheduler that has the URL's partition. Raises `UserError`."""
        partition = partition_of(parse_url(question.url).fingerprint, self._partitions)
        question.slot = str(partition)
        async with self._asked(question) as answers:
            try:
                async with asyncio.timeout(ANSWER_S):
                    answer = await answers.get()
            except TimeoutError:
                raise self._no_answer(f"for partition {partition}, where the URL belongs,") from None
        if answer.error:
            raise (UsageError if answer.usage_error else api.NotFound)(answer.error)
        return answer

    @asynccontextmanager
    async def _asked(self, question: ExplainQuery) -> AsyncIterator[asyncio.Queue[ExplainAnswer]]:
        """The answers to a query, as they come."""
        question.id = uuid.uuid4().hex
        question.deadline, question.system = time.time() + ANSWER_S, self._place
        answers = self._answers[question.id] = asyncio.Queue()
        try:
            await self._taken(self._publish(EXPLAIN_QUERIES, 0, question))
            yield answers
        finally:
            del self._answers[question.id]

    def _no_answer(self, what: str) -> NotReadyError:
        trouble = "".join(f"; {line}" for line in self._bus.troubles)
        return NotReadyError(
            f"no scheduler has answered {what} in {ANSWER_S:g} s: none has it, or it is being taken over; see "
            f"nephila members, and repeat the command{trouble}"
        )

    # ---- rules

    async def list_rules(self, request: api.Empty) -> api.RuleList:
        """See `Control.list_rules`."""
        return rule_list(self._rules.values())

    async def apply_rules(self, request: api.ApplyRules) -> api.RulesApplied:
        """See `Control.apply_rules`."""
        wanted = read_rules(request.rules)
        before = dict(self._rules)
        receipts = []
        for rule in wanted:
            if before.get(rule.name) != rule:
                receipts.append(self._publish(RULES, 0, rule))
                self._rules[rule.name] = rule
        await self._taken(all_of(receipts))
        return api.RulesApplied(rules=[rule_change(before.get(rule.name), rule) for rule in wanted])

    async def delete_rule(self, request: api.RuleName) -> api.RuleChange:
        """See `Control.delete_rule`."""
        if request.name not in self._rules:
            raise api.NotFound(f"there is no rule {request.name!r}")
        await self._taken(self._publish(RULES, 0, ParseRule(request.name, deleted=True)))
        self._rules.pop(request.name, None)
        return api.RuleChange(name=request.name, verdict="deleted")

    async def rule_health(self, request: api.Empty) -> api.RuleHealthList:
        """See `Control.rule_health`."""
        return rule_health(self._verdicts.values())

    # ---- the rest

    async def list_changes(self, request: api.ListChanges) -> api.ChangeList:
        """See `Control.list_changes`."""
        return await self._changes.list_changes(request)

    async def list_dead_letters(self, request: api.ListDeadLetters) -> api.DeadLetterList:
        """See `Control.list_dead_letters`."""
        return await self._letters.page(request)

    async def replay_dead_letters(self, request: api.ReplayDeadLetters) -> api.ReplayedList:
        """See `Control.replay_dead_letters`."""
        if bool(request.ids) == request.all:
            raise UsageError("name the dead letters as PARTITION:OFFSET, or ask for all of them")
        return await self._letters.replay(request)

    async def list_members(self, request: api.Empty) -> api.MemberList:
        """See `Control.list_members`."""
        owners: dict[tuple[str, int], str] = {}
        for one in sorted(self._members.values(), key=lambda one: one.at):
            owners |= dict.fromkeys(((one.service, partition) for partition in one.partitions), one.id)
        members = [self._member(one, owners) for _, one in sorted(self._members.items())]
        return api.MemberList(members=[one for one in members if one.reported_s < FORGOTTEN_S])

    def _member(self, one: MemberStatus, owners: Mapping[tuple[str, int], str]) -> api.Member:
        """`owners`: (service, partition) → the member that was the last to report it. A member that is silent has lost
        its partitions: its session is shorter."""
        reported_s = max(self._clock.now() - one.at, 0.0)
        overdue = 0.0 if one.state == MemberState.ENDED else reported_s / max(one.interval_s, 1.0)
        silent = overdue > SILENT
        return api.Member(
            name=one.member,
            service=one.service,
            state="silent" if silent else MEMBER_STATES[one.state],
            problem=one.problem,
            host=one.host,
            address=one.address,
            version=one.version,
            started_at=one.started_at,
            reported_s=round(reported_s, 3),
            silent_since=one.at if overdue > OVERDUE else 0.0,
            partitions=[]
            if silent or one.state == MemberState.ENDED
            else [partition for partition in one.partitions if owners[one.service, partition] == one.id],
            in_flight=one.in_flight,
            cpu=one.cpu,
            memory_bytes=one.memory_bytes,
            rates={rate.name: rate.per_s for rate in one.rates},
            admitted=one.admitted,
            bound_by=one.bound_by,
        )

    async def status(self, request: api.Empty) -> api.Status:
        """See `Control.status`."""
        jobs = self._list()
        return api.Status(
            version=__version__,
            kind="cluster",
            place=self._place,
            uptime_s=round(self._clock.monotonic() - self._started, 3),
            jobs=len(jobs),
            states=self.states(),
            queued=sum(job.queued for job in jobs),
            in_flight=sum(job.in_flight for job in jobs),
            stored=sum(job.stored for job in jobs),
            rate=round(sum(job.rate for job in jobs), 2),
            problems=[*self._bus.troubles, *(await self._broker_problems()), *self._lost_jobs_problems()],
        )

    def _lost_jobs_problems(self) -> list[str]:
        if not (lost := self._lost_jobs):
            return []
        return [
            f"the topic jobs has no job {', '.join(lost[:5])}{' …' if len(lost) > 5 else ''}, and schedulers report on "
            "it: the topic was deleted or its broker lost data; apply the job again (nephila jobs apply)"
        ]

    async def _broker_problems(self) -> list[str]:
        try:
            await asyncio.wait_for(self._bus.bounds(JOB_STATUS, [0]), PROMPT_S)
        except (TimeoutError, TemporaryError):
            return [f"the broker at {self._place} does not answer"]
        return []

    async def get_settings(self, request: api.Empty) -> api.Settings:
        """See `Control.get_settings`."""
        return api.Settings(settings=dict(sorted(self._settings.items())))

    async def change_settings(self, request: api.ChangeSettings) -> api.Settings:
        """See `Control.change_settings`."""
        receipts = []
        changes = {
            live_settings.key_of(self._scope_of(request.member, name), name): value
            for name, value in request.settings.items()
        }
        if problems := [text for change in changes.items() if (text := live_settings.check(*change))]:
            raise UsageError("; ".join(problems))
        for name, value in changes.items():
            setting = Setting(name, msgspec.json.encode(value), self._clock.now(), value is None)
            receipts.append(self._publish(SETTINGS, 0, setting))
            self._on_setting(setting)
        await self._taken(all_of(receipts))
        return await self.get_settings(api.Empty())

    def _scope_of(self, member: str, setting: str) -> live_settings.Scope:
        """The member of that name, of a service that reads the setting. Raises `UsageError`."""
        if not member:
            return live_settings.Scope()
        service, slash, name = member.rpartition("/")
        found = [one for one in self._members.values() if one.member == name and service in ("", one.service)]
        if not found and slash and any(live_settings.parse_key(key)[0] == (service, name) for key in self._settings):
            return live_settings.Scope(service, name)  # it has left the system, and its setting may be taken back
        if not found:
            known = sorted({one.member for one in self._members.values()})
            raise UsageError(
                f"there is no member {member[:100]!r}; "
                + (f"there are {', '.join(known[:20])}" if known else "none has reported yet, see nephila members")
            )
        row = live_settings.LIVE_SETTINGS.get(setting)
        readers = [one for one in found if row is None or not row.services or one.service in row.services] or found
        if len(readers) > 1:
            names = ", ".join(sorted(one.id for one in readers))
            raise UsageError(f"several members are called {name}: {names}; name one as SERVICE/NAME")
        return live_settings.Scope(readers[0].service, readers[0].member)

    def states(self) -> dict[str, int]:
        """Jobs by state."""
        return dict(Counter(job.state for job in self._list()))

    def _present(self) -> dict[str, CrawlJob]:
        return {uid: job for uid, job in self._jobs.items() if not job.deleted}

    def _known(self, name: str) -> CrawlJob:
        if not name:
            raise UsageError("a job has to be named")
        job = self._jobs.get(name)
        if job is None or job.deleted:
            known = sorted(self._present())
            raise api.NotFound(f"there is no job {name!r}" + (f"; there are {', '.join(known[:20])}" if known else ""))
        return job

    def _list(self) -> list[api.Job]:
        return [self._job(job) for _, job in sorted(self._present().items())]

    def _job(self, job: CrawlJob) -> api.Job:
        now = self._clock.monotonic()
        status, at = self._statuses.get(job.uid) or (JobStatus(job.uid), self._started)
        total = status.stored + status.denied + status.failed + status.dropped
        return api.Job(
            name=job.uid,
            state=_state(job, status),
            generation=job.generation,
            observed_generation=status.generation,
            queued=status.queued,
            in_flight=status.in_flight,
            stored=status.stored,
            denied=status.denied,
            failed=status.failed,
            dropped=status.dropped,
            rate=round(self.rates.of(job.uid, now, total), 2),
            quota=status.quota,
            window=status.window,
            links_held=status.links_held,
            links_lost=status.links_lost,
            tenant=job.tenant,
            site=job.site,
            reported_s=round(max(now - at, 0.0), 3),
        )

    def _totals(self) -> dict[str, int]:
        return {
            uid: status.stored + status.denied + status.failed + status.dropped
            for uid, (status, _) in self._statuses.items()
        }


def _acked(handler: Callable[[Any], None]) -> Callable[[Delivery], None]:
    def take(delivery: Delivery) -> None:
        handler(delivery.message)
        delivery.ack()

    return take


async def _done(receipt: Receipt) -> None:
    await receipt


def _applied(job: CrawlJob, verdict: Any, refused: list[api.RefusedSeed], *, held: bool = False) -> api.JobApplied:
    return api.JobApplied(
        name=job.uid,
        verdict=verdict,
        generation=job.generation,
        refused=refused[: api.MAX_REFUSED],
        refused_count=len(refused),
        held=held,
    )


def _mode(job: CrawlJob | None) -> ScopeMode:
    return job.scope.mode if job is not None and job.scope else ScopeMode.UNSPECIFIED


def _state(job: CrawlJob, status: JobStatus) -> api.JobState:
    if job.paused:
        return "paused"
    if status.generation < job.generation or status.deleted:
        return "new"
    if status.spent:
        return "limit"
    if status.quota and (status.queued or status.in_flight):
        return "quota"
    if status.window and (status.queued or status.in_flight):
        return "window"
    return "idle" if status.done else "running"


@asynccontextmanager
async def open_cluster(settings: KafkaConfig) -> AsyncIterator[ClusterControl]:
    """The control API of a system, in this process. The topics determine the number of partitions. Raises
    `UserError`."""
    from nephila.control.dead_letters import KafkaDeadLetters
    from nephila.kernel.bus.kafka.admin import topics as admin
    from nephila.kernel.bus.kafka.bus import KafkaBus
    from nephila.kernel.bus.kafka.claim_check import open_claim_store
    from nephila.kernel.runtime.clock import SystemClock

    admin.hush()
    there = await admin.existing(settings)
    if "requests" not in there:
        raise UserError(f"the broker at {settings.bootstrap} has no topics of a system; see nephila topics apply")
    config = msgspec.structs.replace(settings, partitions=there["requests"])
    claims = open_claim_store(config.blobs)
    bus: KafkaBus = KafkaBus(config, SystemClock(), claims)
    letters = KafkaDeadLetters(config, claims)
    rows = secret_variable(ENVIRONMENT) or None
    control = ClusterControl(bus, bus.clock, letters, partitions=config.partitions, place=config.bootstrap, rows=rows)
    try:
        try:
            async with asyncio.timeout(START_S):
                await bus.start()
        except TimeoutError:
            raise NotReadyError(
                f"the broker at {config.bootstrap} has stopped to answer: its topics could not be read within "
                f"{START_S:g} s; when it answers again, repeat the command"
            ) from None
        yield control
    finally:
        control.close()
        await bus.close()
