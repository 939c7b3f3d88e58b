"""The contract of the control API: one program and a system over Kafka mean the same, in process and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.documents import job_document
from nephila.kernel.messages import (
    CrawlJob,
    ExplainAnswer,
    ExplainQuery,
    JobStatus,
    MemberState,
    MemberStatus,
    Quarantine,
)
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import EXPLAIN_ANSWERS, EXPLAIN_QUERIES, JOB_STATUS, JOBS, MEMBERS, SEEDS
from nephila.native import parse_url
from nephila.programs.control_port import Parts
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.politeness.recent_fetches import RecentNumbers
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_control import (
    api,
    audit_types,
    capability_types,
    event_types,
    item_types,
    job_types,
    requests,
    rule_types,
    screen_types,
    site_types,
    studio_types,
    system_types,
)
from nephila_control.access.caller import OWNER
from nephila_control.access.guard import guarded
from nephila_control.api import OPERATIONS, Control
from nephila_control.cluster.backend import ClusterBackend
from nephila_control.explain.host_list import HostQuery, HostRows, ListedHost
from nephila_control.http.application import application
from nephila_control.http.client import at_directory
from nephila_control.http.server import unix_server
from nephila_control.local.backend import LocalBackend
from nephila_control.local.rule_store import RuleStore
from nephila_control.operations import Operations
from nephila_harvest.commands.schemes import JobsOfControl
from nephila_harvest.schemes import applying, documents
from nephila_rules.studio.draft import Draft, Step

from tests.console import shop
from tests.control.documents import document, rule
from tests.e2e.scheme_sites import PLATFORMS, SCHEME
from tests.fake_kafka import FakeKafka, FakeKafkaBus
from tests.scheduler.world import World, site
from tests.storage.records import record
from tests.storage.structured import structured

PARTITIONS = 4


class Topics:
    """One topic with a reader."""

    async def rows(self) -> list[system_types.TopicRow]:
        """See `Topics`."""
        lag = system_types.GroupLag(group="parser", behind=3)
        return [system_types.TopicRow(name="pages", partitions=4, records=9, groups=[lag])]


class Letters:
    """A topic `dead` without letters."""

    async def page(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        """See `DeadLetters`."""
        return system_types.DeadLetterList(dead_letters=[])

    async def replay(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        """See `DeadLetters`."""
        if request.ids:
            raise api.NotFound(f"no dead letter at {request.ids[0]}")
        return system_types.ReplayedList(dead_letters=[])


class Schedulers:
    """Schedulers that take every job at once and finish nothing."""

    def __init__(self, bus: FakeKafkaBus) -> None:
        self.bus = bus
        self.versions = itertools.count(1)
        self.quarantines: list[Quarantine] = []
        self.least_delay_s = 0.0
        self.silent = False
        """Whether the scheduler of most partitions is away."""
        for topic in (JOBS, SEEDS, EXPLAIN_QUERIES):
            bus.subscribe(topic, "scheduler", self._on_message, credits=10_000)

    def _on_message(self, delivery: Delivery) -> None:
        message = delivery.message
        delivery.ack()
        if isinstance(message, CrawlJob) and not message.deleted:
            status = JobStatus(message.uid, message.generation, queued=1, version=next(self.versions))
            status.paused = message.paused
            status.done = message.paused
            self.bus.publish(JOB_STATUS, 0, status)
        elif isinstance(message, ExplainQuery):
            self._answer(message)

    def _answer(self, query: ExplainQuery) -> None:
        answer = ExplainAnswer(query.slot, query.id)
        if query.list_quarantines:
            for half in ([0, 1], [2, 3]):
                found = [one for one in self.quarantines if half[0] == 0]
                slot = f"{query.slot}/{half[0]}"
                self.bus.publish(EXPLAIN_ANSWERS, 0, ExplainAnswer(slot, query.id, partitions=half, quarantines=found))
            return
        if query.try_exclude:
            for half in ([0, 1], [2, 3]):
                counted = half[0] == 0 and "5" in query.try_exclude[0]
                tried = ExplainAnswer(f"{query.slot}/{half[0]}", query.id, partitions=half, complete=True)
                tried.queued = tried.looked_at = 2 * (half[0] == 0)
                tried.removed, tried.examples = (1, ["http://a.test/5"]) if counted else (0, [])
                self.bus.publish(EXPLAIN_ANSWERS, 0, tried)
            return
        if query.list_hosts:
            self._list_hosts(query)
            return
        if query.forget:
            answer.released, answer.unknown = True, len(query.forget)
        elif query.host_action:
            answer.released = query.url == "http://a.test/"
            answer.error = "" if answer.released else "the host is not in the frontier"
            self.least_delay_s = query.host_seconds if query.host_action == "delay" else self.least_delay_s
        elif query.release:
            found = [one for one in self.quarantines if one.place == query.release]
            for one in found:
                one.released = True
            answer.released = bool(found)
            answer.error = "" if found else f"{query.release} is not in quarantine"
        else:
            answer.error = f"never found: nothing of {query.url}"
        self.bus.publish(EXPLAIN_ANSWERS, 0, answer)

    def _list_hosts(self, query: ExplainQuery) -> None:
        """a.test has a URL of each job; its partition has one scheduler, the others another one, which may be away."""
        chosen = msgspec.json.decode(query.list_hosts, type=HostQuery)
        home = self.bus.layout.of(parse_url("http://a.test/").fingerprint)
        others = sorted({*range(PARTITIONS)} - {home})
        host = ListedHost(
            name="a.test", why="job", wait_s=0.0, queued=1, in_flight=0, delay_s=1.0, address="",
            jobs=["news"], recent=RecentNumbers(), least_delay_s=self.least_delay_s,
        )  # fmt: skip
        listed = [host] if chosen.search in host.name and chosen.name in ("", host.name) else []
        for partitions, hosts in (([home], listed), (others, [])):
            if partitions == others and (self.silent or query.url):
                continue
            rows = msgspec.json.encode(HostRows(hosts=hosts, total=len(hosts)))
            slot = f"{query.slot}/{partitions[0]}"
            self.bus.publish(EXPLAIN_ANSWERS, 0, ExplainAnswer(slot, query.id, partitions=partitions, hosts=rows))


class Rig:
    """One implementation, and how a quarantine comes into it."""

    control: Control
    has_settings = False

    async def start(self, directory: Path) -> None:
        """Make `control`."""

    async def close(self) -> None:
        """The other way round."""

    def quarantine(self, job: str, host: str, pattern: str) -> None:
        """Close a part of a host."""


class LocalRig(Rig):
    """One program."""

    async def start(self, directory: Path) -> None:
        """See `Rig.start`."""
        self.world = await World(directory / "frontier", site({"/0": []})).start()
        parts = Parts(self.world.bus, self.world.clock, self.world.scheduler)
        store = RuleStore(directory, self.world.bus)
        self.control = Operations(LocalBackend(parts, directory, ("sqlite",), rules=store))
        self.turning = asyncio.ensure_future(self._turn())

    async def _turn(self) -> None:
        while True:
            self.world.clock.run_due()
            await asyncio.sleep(0)

    async def close(self) -> None:
        """See `Rig.close`."""
        self.turning.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.turning

    def quarantine(self, job: str, host: str, pattern: str) -> None:
        """See `Rig.quarantine`."""
        frontier = self.world.scheduler.frontier
        known, closed = frontier.jobs[job], Quarantine(job, host, pattern, "nothing new", 1.8e9, 100)
        novelty_of(frontier.hosts.get_or_create(host), known).restore(closed)
        frontier.note_quarantine(known, frontier.hosts.get_or_create(host), closed)


class ClusterRig(Rig):
    """A system whose broker is a bus of this process."""

    has_settings = True

    async def start(self, directory: Path) -> None:
        """See `Rig.start`."""
        clock = SystemClock()
        bus = FakeKafkaBus(FakeKafka(PARTITIONS), clock, "api")
        bus.eager = True
        self.schedulers = Schedulers(bus)
        self.control = Operations(ClusterBackend(bus, clock, Letters(), Topics(), place="broker:1"))
        member = MemberStatus("scheduler/s-0", "scheduler", "s-0", state=MemberState.READY, at=clock.now())
        bus.publish(MEMBERS, 0, member)

    def quarantine(self, job: str, host: str, pattern: str) -> None:
        """See `Rig.quarantine`."""
        self.schedulers.quarantines.append(Quarantine(job, host, pattern, "nothing new", 1.8e9, 100))


class OverHttp:
    """Another rig, behind a Unix socket."""

    def __init__(self, inner: Rig) -> None:
        self.inner = inner
        self.has_settings = inner.has_settings
        self.quarantine = inner.quarantine

    async def start(self, directory: Path) -> None:
        """See `Rig.start`."""
        await self.inner.start(directory)
        self.server = unix_server(application(self.inner.control), directory)
        await self.server.open()
        control = at_directory(directory)
        assert control is not None
        self.control: Control = control

    async def close(self) -> None:
        """See `Rig.close`."""
        await self.server.close()
        await self.inner.close()


RIGS = {
    "local": LocalRig,
    "cluster": ClusterRig,
    "local over HTTP": lambda: OverHttp(LocalRig()),
    "cluster over HTTP": lambda: OverHttp(ClusterRig()),
}


@pytest.fixture(params=RIGS)
async def rig(request, tmp_path):
    """Every implementation."""
    rig = RIGS[request.param]()
    await rig.start(tmp_path)
    yield rig
    await rig.close()


def name(text: str) -> job_types.JobName:
    """A request about one job."""
    return job_types.JobName(name=text)


async def apply(rig, job: str = "news", **spec: Any) -> job_types.JobApplied:
    """A job; paused, so that it stays as it is."""
    return await rig.control.apply_job(job_types.ApplyJob(job=document(job, **{"paused": True, **spec})))


async def test_a_job_is_created_listed_and_shown(rig):
    """With the words that all implementations share, and its document."""
    answer = await apply(rig)
    assert (answer.name, answer.verdict, answer.held, answer.refused) == ("news", "created", False, [])
    (job,) = (await rig.control.list_jobs(job_types.ListJobs())).jobs
    assert (job.name, job.state, job.queued, job.generation) == ("news", "paused", 1, answer.generation)
    detail = await rig.control.get_job(name("news"))
    assert detail.status.observed_generation == answer.generation
    assert job_document.from_json(detail.document).job == job_document.from_json(document(paused=True)).job


async def test_the_jobs_of_an_owner_are_listed(rig):
    """A job without one is in the list of all."""
    await apply(rig)
    await apply(rig, "shop", owner="anna@example.org")
    listed = (await rig.control.list_jobs(job_types.ListJobs(owner="anna@example.org"))).jobs
    assert [(job.name, job.owner) for job in listed] == [("shop", "anna@example.org")]
    assert (await rig.control.list_jobs(job_types.ListJobs(owner="anna"))).jobs == []
    assert {job.name: job.owner for job in (await rig.control.list_jobs(job_types.ListJobs())).jobs} == {
        "news": "",
        "shop": "anna@example.org",
    }


async def test_the_same_document_changes_nothing_and_another_is_a_generation(rig):
    """It is the whole desired state."""
    first = await apply(rig, scope={"maxDepth": 1})
    again = await apply(rig, scope={"maxDepth": 1})
    assert (again.verdict, again.generation) == ("unchanged", first.generation)
    changed = await apply(rig)
    assert changed.verdict == "changed"
    assert changed.generation > first.generation


async def test_a_job_is_resumed_paused_and_deleted(rig):
    """Each a generation; done twice it changes nothing."""
    created = await apply(rig)
    resumed = await rig.control.resume_job(name("news"))
    assert (resumed.verdict, resumed.generation) == ("resumed", created.generation + 1)
    assert (await rig.control.resume_job(name("news"))).verdict == "unchanged"
    assert (await rig.control.pause_job(name("news"))).verdict == "paused"
    deleted = await rig.control.delete_job(name("news"))
    assert (deleted.verdict, deleted.generation) == ("deleted", created.generation + 3)
    assert (await rig.control.list_jobs(job_types.ListJobs())).jobs == []
    assert (await apply(rig)).verdict == "created"


async def test_a_keyword_scheme_is_deleted(rig):
    """The other scheme and other jobs stay; the last scheme deletes its job."""
    await apply(rig)
    target = JobsOfControl(rig.control)
    paused = (
        "apiVersion: nephila.dev/v1\nkind: CrawlJob\nmetadata: {name: schemes}\nspec: {paused: true, schemes: {}}\n"
    )
    texts = (PLATFORMS, SCHEME, SCHEME.replace("floods", "storms"), paused)
    await applying.apply(target, documents.load([("f.yaml", "---\n".join(texts).encode())]), "schemes", 100)
    with pytest.raises(UserError, match="no scheme 'storm'; did you mean 'storms'"):
        await applying.delete(target, "storm", "schemes")
    before = (await rig.control.get_job(name("schemes"))).document["spec"]
    assert await applying.delete(target, "floods", "schemes") == ["storms"]
    after = (await rig.control.get_job(name("schemes"))).document["spec"]
    assert after["schemes"] == {**before["schemes"], "schemes": before["schemes"]["schemes"][1:]}
    assert {**after, "schemes": 0} == {**before, "schemes": 0}
    assert await applying.delete(target, "storms", "schemes") == []
    assert [job.name for job in (await rig.control.list_jobs(job_types.ListJobs())).jobs] == ["news"]
    with pytest.raises(UserError, match="has no schemes"):
        await applying.delete(target, "storms", "schemes")


@pytest.mark.parametrize(
    "operation", ["get_job", "pause_job", "resume_job", "delete_job", "list_quarantines", "add_seeds"]
)
async def test_a_job_that_is_not_there(rig, operation):
    """The error names it, and those that are there."""
    await apply(rig)
    request = job_types.AddSeeds(name="x") if operation == "add_seeds" else name("x")
    with pytest.raises(api.NotFound, match="there is no job 'x'; there are news"):
        await getattr(rig.control, operation)(request)


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({}, "job"),
        (document(scope={"maxdepth": 1}), "maxdepth"),
        (document("Not A Name"), "name"),
        (document(seeds=["ftp://a.test/"]), "ftp"),
    ],
)
async def test_a_bad_document_is_one_line_and_changes_nothing(rig, job, says):
    """It names the key."""
    with pytest.raises(UsageError, match=says) as error:
        await rig.control.apply_job(job_types.ApplyJob(job=job))
    assert "\n" not in str(error.value)
    assert (await rig.control.list_jobs(job_types.ListJobs())).jobs == []


async def test_seeds_are_added_and_bad_ones_are_refused(rig):
    """Each with the reason that a file of seeds has for it, however long it is; the others are taken."""
    await apply(rig, scope={"exclude": ["/no$"]})
    long, good = "http://a.test/" + "x" * 120_000, ["http://a.test/5", "b.test"]
    bad = ["no url", long, "http://a.test/no", "mailto:a@b.test", "http://a.test:99999/"]
    answer = await rig.control.add_seeds(job_types.AddSeeds(name="news", urls=[*bad, *good], last=True))
    assert [one.url for one in answer.refused] == [url[:8192] for url in bad]
    assert answer.refused_count == len(bad)
    reasons = [one.reason for one in answer.refused]
    assert reasons[0] == "'no url' is not a URL; did you mean http://example/ or http://example.com/?"
    assert "longer than 8,192 characters" in reasons[1]
    assert reasons[2] == "excluded by '/no$'"
    assert "unsupported scheme 'mailto'" in reasons[3]
    assert "invalid port" in reasons[4]


async def test_a_seed_of_the_document_that_the_job_excludes_is_refused(rig):
    document_ = document(seeds=["http://a.test/0", "http://a.test/no"], scope={"exclude": ["/no$"]})
    answer = await rig.control.apply_job(job_types.ApplyJob(job=document_))
    assert [(one.url, one.reason) for one in answer.refused] == [("http://a.test/no", "excluded by '/no$'")]


async def test_an_exclusion_is_tried_and_then_added(rig):
    """The trial changes nothing; the exclusion is a new generation and stands behind those that are there."""
    await apply(rig, scope={"exclude": ["/old"]})
    await rig.control.add_seeds(job_types.AddSeeds(name="news", urls=["http://a.test/5"], last=True))
    before = await rig.control.get_job(name("news"))
    wanted = job_types.ExcludeUrls(name="news", exclude=["/5$"])
    tried = await rig.control.try_exclusion(wanted)
    assert (tried.queued, tried.looked_at, tried.removed, tried.complete) == (2, 2, 1, True)
    assert tried.examples == ["http://a.test/5"]
    assert (await rig.control.get_job(name("news"))).document == before.document
    wanted.generation = tried.generation
    assert (await rig.control.exclude(wanted)).verdict == "changed"
    after = (await rig.control.get_job(name("news"))).document
    assert after["spec"]["scope"]["exclude"] == ["/old", "/5$"]
    with pytest.raises(UserError, match="was changed since the exclusion was tried"):
        await rig.control.exclude(wanted)
    wanted.generation = 0
    assert (await rig.control.exclude(wanted)).verdict == "unchanged"


@pytest.mark.parametrize("operation", ["try_exclusion", "exclude"])
async def test_an_exclusion_that_is_no_expression_changes_nothing(rig, operation):
    """The expression is named."""
    await apply(rig)
    with pytest.raises(UsageError, match=r"exclude '\(' is not a valid RE2 expression"):
        await getattr(rig.control, operation)(job_types.ExcludeUrls(name="news", exclude=["("]))
    with pytest.raises(api.NotFound, match="there is no job 'x'"):
        await getattr(rig.control, operation)(job_types.ExcludeUrls(name="x", exclude=["/"]))


async def test_samples_need_rows(rig):
    """One line where none are known; an empty list where nothing was drawn."""
    control = rig.control
    if rig.has_settings:  # a system whose database is not known
        with pytest.raises(UserError, match=r"this API has none: set api\.store"):
            await control.list_samples(requests.Empty())
    else:
        assert (await control.list_samples(requests.Empty())).samples == []
        with pytest.raises(api.NotFound, match="has no sample"):
            await control.get_sample(audit_types.GetSample(sample="first"))
        with pytest.raises(api.NotFound, match="has no sample"):
            await control.label_row(audit_types.LabelRow(sample="x", number=1, version="", verdict="right"))
        with pytest.raises(api.NotFound, match="has no sample"):
            await control.get_audit_outcome(audit_types.GetAuditOutcome())
    with pytest.raises(UserError):
        await control.draw_sample(audit_types.DrawSample())
    with pytest.raises(UserError):
        await control.compare_frequencies(audit_types.CompareFrequencies(scenarios=["6h"]))


async def test_seeds_that_follow_end_with_the_last(rig):
    """The job runs then, whether it was held or not."""
    job = document(scope={"mode": "any"})
    answer = await rig.control.apply_job(job_types.ApplyJob(job=job, seeds_follow=True))
    held = answer.generation if answer.held else 0
    await rig.control.add_seeds(job_types.AddSeeds(name="news", urls=["http://b.test/"]))
    last = await rig.control.add_seeds(job_types.AddSeeds(name="news", last=True, held_generation=held))
    assert not last.held
    assert (await rig.control.get_job(name("news"))).status.state in ("running", "idle")


async def test_a_job_needs_its_rules(rig):
    """They are applied first."""
    with pytest.raises(UserError, match="has no rule 'shop'"):
        await apply(rig, rules=["shop"])
    await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule()]))
    assert (await apply(rig, rules=["shop"])).verdict == "created"


async def test_rules_are_applied_listed_and_deleted(rig):
    """A rule that says the same is not published again."""

    async def verdicts(*rules: dict[str, Any]) -> list[str]:
        return [one.verdict for one in (await rig.control.apply_rules(rule_types.ApplyRules(rules=list(rules)))).rules]

    assert await verdicts(rule("b"), rule("a")) == ["created", "created"]
    assert await verdicts(rule("a"), rule("b", css="h2")) == ["unchanged", "changed"]
    listed = (await rig.control.list_rules(requests.Empty())).rules
    assert [(one.name, one.document["kind"]) for one in listed] == [("a", "ParseRule"), ("b", "ParseRule")]
    assert (await rig.control.delete_rule(rule_types.RuleName(name="a"))).verdict == "deleted"
    with pytest.raises(api.NotFound, match="there is no rule 'a'"):
        await rig.control.delete_rule(rule_types.RuleName(name="a"))


async def test_a_rule_goes_back_to_a_version_before(rig):
    """The version in effect is the first; equal documents are one version."""
    for css in ("h1", "h2", "h2", "h3"):
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule("a", css=css)]))
    name = rule_types.RuleName(name="a")
    versions = (await rig.control.list_rule_versions(name)).versions
    assert [one.document["spec"]["fields"]["title"]["css"] for one in versions] == ["h3", "h2", "h1"]
    assert versions[0].difference == []
    assert [line for line in versions[2].difference if line[:1] in "+-"] == [
        "-  fields: {title: {css: h3}}",
        "+  fields: {title: {css: h1}}",
    ]
    await rig.control.apply_rules(rule_types.ApplyRules(rules=[versions[2].document]))
    after = (await rig.control.list_rule_versions(name)).versions
    assert [one.etag for one in after] == [versions[2].etag, *(one.etag for one in versions)]
    await rig.control.delete_rule(name)
    with pytest.raises(api.NotFound, match="there is no rule 'a'"):
        await rig.control.list_rule_versions(name)


async def test_one_bad_rule_refuses_all(rig):
    """The line names it."""
    bad = rule("bad")
    bad["spec"]["fields"] = {"title": {"css": "h1["}}
    with pytest.raises(UsageError, match=r"rules\[1\]"):
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule(), bad]))
    assert (await rig.control.list_rules(requests.Empty())).rules == []


async def test_a_quarantine_is_listed_and_released(rig):
    """And a part of a host that is in none is refused."""
    await apply(rig)
    assert (await rig.control.list_quarantines(name("news"))).quarantines == []
    rig.quarantine("news", "a.test", "/cal/")
    (one,) = (await rig.control.list_quarantines(name("news"))).quarantines
    assert (one.host, one.pattern, one.fetches, one.released) == ("a.test", "/cal/", 100, False)
    request = job_types.ReleaseQuarantine(name="news", host="a.test", pattern="/cal/")
    assert (await rig.control.release_quarantine(request)).verdict == "released"
    (one,) = (await rig.control.list_quarantines(name("news"))).quarantines
    assert one.released
    with pytest.raises(api.NotFound, match="is not in quarantine"):
        await rig.control.release_quarantine(job_types.ReleaseQuarantine(name="news", host="a.test", pattern="/x/"))


async def test_urls_that_a_job_does_not_know_are_counted_when_they_are_forgotten(rig):
    await apply(rig)
    request = job_types.ForgetUrls(name="news", urls=["http://a.test/x", "http://a.test/y"])
    answer = await rig.control.forget(request)
    assert (answer.name, answer.forgotten, answer.open, answer.unknown) == ("news", 0, 0, 2)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (job_types.ForgetUrls(name="news"), "which URLs to forget"),
        (job_types.ForgetUrls(name="news", match="("), "--match '\\(' is not a valid RE2"),
    ],
)
async def test_a_request_to_forget_that_names_nothing_is_refused(rig, request_, says):
    await apply(rig)
    with pytest.raises(UsageError, match=says):
        await rig.control.forget(request_)
    with pytest.raises(api.NotFound):
        await rig.control.forget(job_types.ForgetUrls(name="x", urls=["http://a.test/"]))


async def test_explain_refuses_what_is_no_url_and_no_job(rig):
    """As errors of the request."""
    with pytest.raises(api.NotFound, match="there is no job yet"):
        await rig.control.explain(job_types.ExplainUrl(url="http://a.test/"))
    await apply(rig)
    with pytest.raises(UsageError, match="is not a URL"):
        await rig.control.explain(job_types.ExplainUrl(url="ftp://a.test/"))
    with pytest.raises(api.NotFound, match="there is no job 'x'"):
        await rig.control.explain(job_types.ExplainUrl(url="http://a.test/", job="x"))


async def test_dead_letters_that_are_not_there(rig):
    """An empty list; a name is refused."""
    assert (await rig.control.list_dead_letters(system_types.ListDeadLetters())).dead_letters == []
    with pytest.raises(api.NotFound):
        await rig.control.replay_dead_letters(system_types.ReplayDeadLetters(ids=["0:0"]))


async def test_the_log_of_changes_has_what_callers_changed(rig):
    """Who, what and its object."""
    control = guarded(rig.control, OWNER)
    assert (await control.list_control_log(system_types.ListControlLog())).entries == []
    await control.apply_job(job_types.ApplyJob(job=document(paused=True)))
    await control.resume_job(name("news"))
    found = (await control.list_control_log(system_types.ListControlLog())).entries
    assert [(one.who, one.operation, one.subject, one.change) for one in found] == [
        (OWNER.name, "resume_job", "job news", "spec.paused: true → false"),
        (OWNER.name, "apply_job", "job news", "created"),
    ]


async def test_settings_dns_and_webhooks_of_one_program(rig):
    """A system has many programs, and says where to look."""
    asked = system_types.ListConfiguration(section="downloader")
    if rig.has_settings:
        with pytest.raises(UserError, match="settings file"):
            await rig.control.get_configuration(asked)
        with pytest.raises(UserError, match="metrics"):
            await rig.control.get_network(requests.Empty())
        with pytest.raises(UserError, match="database of the rows"):
            await rig.control.list_webhooks(requests.Empty())
        return
    assert (await rig.control.get_configuration(asked)).values == []
    assert (await rig.control.get_network(requests.Empty())).dns.lookups == 0
    assert (await rig.control.list_webhooks(requests.Empty())).webhooks == []


async def test_topics_are_those_of_a_broker(rig):
    """One program has none."""
    if not rig.has_settings:
        with pytest.raises(UserError, match="one program has no topics"):
            await rig.control.list_topics(requests.Empty())
        return
    (topic,) = (await rig.control.list_topics(requests.Empty())).topics
    assert (topic.name, topic.groups[0].behind) == ("pages", 3)


async def test_members_and_status_say_what_runs(rig):
    """One member at least, and sums over all jobs."""
    await apply(rig)
    (member, *_) = (await rig.control.list_members(requests.Empty())).members
    assert (member.state, bool(member.name)) == ("ready", True)
    status = await rig.control.status(requests.Empty())
    assert (status.jobs, status.states, status.queued, status.problems) == (1, {"paused": 1}, 1, [])


async def test_events_begin_with_the_start_of_the_program(rig):
    await apply(rig)
    events = (await rig.control.list_events(event_types.ListEvents(limit=10))).events
    assert [event.kind for event in events] == ["program_started"]
    assert (await rig.control.list_events(event_types.ListEvents(kind="job"))).events == []


async def test_settings_are_changed_and_taken_back(rig):
    """One program has none, and says so."""
    change = system_types.ChangeSettings(settings={"log_level": "debug"})
    if not rig.has_settings:
        with pytest.raises(UserError, match="no live settings"):
            await rig.control.change_settings(change)
        return
    assert (await rig.control.change_settings(change)).settings == {"log_level": "debug"}
    assert (await rig.control.get_settings(requests.Empty())).settings == {"log_level": "debug"}
    back = await rig.control.change_settings(system_types.ChangeSettings(settings={"log_level": None}))
    assert back.settings == {}


async def test_a_setting_that_no_service_reads_is_refused(rig):
    """An unknown name, or a value of another kind; nothing of the request is stored."""
    for name, value, line in (("colour", 1, "there are: log_level"), ("log_level", "loud", "none of debug, info")):
        with pytest.raises(UserError, match=line if rig.has_settings else "no live settings"):
            await rig.control.change_settings(system_types.ChangeSettings(settings={"log_level": "debug", name: value}))
    assert (await rig.control.get_settings(requests.Empty())).settings == {}


async def test_changes_and_directories_without_database_and_sites(rig):
    """One line each; one program may have no sites."""
    with pytest.raises(UserError, match=r"set api\.store" if rig.has_settings else "no database at"):
        await rig.control.list_changes(system_types.ListChanges())
    if not rig.has_settings:
        assert (await rig.control.list_directories(requests.Empty())).directories == []
        return
    with pytest.raises(api.NotFound, match="nephila sites list"):
        await rig.control.list_directories(requests.Empty())


SITE = {
    "apiVersion": "nephila.dev/v1",
    "kind": "Site",
    "metadata": {"name": "news"},
    "spec": {"directories": [{"name": "world", "url": "http://news.test/world/", "score": 2}]},
}


async def test_sites_are_created_changed_read_and_deleted(rig):
    """A site or one of its directories; a system over Kafka has no file of sites."""
    control = rig.control
    applied = site_types.ApplySites(sites=[SITE])
    asia = site_types.ApplyDirectory(site="news", directory={"name": "asia", "url": "http://news.test/asia/"})
    if rig.has_settings:
        for work in (
            control.apply_sites(applied),
            control.preview_sites(applied),
            control.list_sites(requests.Empty()),
            control.apply_directory(asia),
        ):
            with pytest.raises(api.NotFound, match="this API has no sites"):
                await work
        return
    (previewed,) = (await control.preview_sites(applied)).sites
    assert (await control.list_sites(requests.Empty())).sites == []
    (created,) = (await control.apply_sites(applied)).sites
    assert previewed == created
    assert (created.verdict, created.directories, created.added) == ("created", 1, ["news.world"])
    assert (await control.apply_sites(applied)).sites[0].verdict == "unchanged"
    more = await control.apply_directory(asia)
    assert (more.verdict, more.added, more.etag != created.etag) == ("changed", ["news.asia"], True)
    shown = await control.get_site(site_types.SiteName(name="news"))
    assert (await control.list_sites(requests.Empty())).sites == [shown]
    assert shown.etag == more.etag
    assert [one["name"] for one in shown.document["spec"]["directories"]] == ["world", "asia"]
    assert [one.name for one in (await control.list_directories(requests.Empty())).directories] == [
        "news.world",
        "news.asia",
    ]
    await apply(rig, "news.asia")
    left = await control.delete_directory(site_types.DeleteDirectory(site="news", name="asia"))
    assert (left.verdict, left.removed, left.jobs, left.etag) == ("changed", ["news.asia"], ["news.asia"], created.etag)
    gone = await control.delete_site(site_types.DeleteSite(name="news"))
    assert (gone.verdict, gone.directories, gone.removed, gone.etag) == ("deleted", 1, ["news.world"], "")
    with pytest.raises(api.NotFound, match="there is no site 'news'"):
        await control.delete_site(site_types.DeleteSite(name="news"))


async def test_health_of_rules_is_a_list(rig):
    """Empty before the first page."""
    assert (await rig.control.rule_health(requests.Empty())).rules == []


def test_every_operation_has_one_route():
    """And every route an operation."""
    operations = [one for one in vars(Control) if not one.startswith("_")]
    assert sorted(route.name for route in OPERATIONS.values()) == sorted(operations)


def test_answers_are_plain_json():
    """What a client decodes is what was encoded."""
    job = job_types.Job(
        name="a", state="idle", generation=1, observed_generation=1, queued=0, in_flight=0, stored=0, denied=0,
        failed=0, dropped=0,
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(job), type=job_types.Job) == job


async def test_rows_and_items_of_a_database_that_is_empty_or_unknown(rig):
    """One program has none yet; a system whose database is not named says which setting names it."""
    for operation, request in (
        ("list_pages", screen_types.ListPages()),
        ("get_page", screen_types.GetPage(url="http://a.test/0")),
        ("get_screenshot", screen_types.GetScreenshot(url="http://a.test/0")),
        ("list_links_in", screen_types.GetPage(url="http://a.test/0")),
        ("list_items", screen_types.ListItems()),
        ("search_pages", screen_types.SearchPages(query="fox")),
    ):
        if rig.has_settings:
            with pytest.raises(UserError, match=r"api\.store"):
                await getattr(rig.control, operation)(request)
        elif operation in ("get_page", "get_screenshot"):
            with pytest.raises(api.NotFound, match=r"no (row|screenshot)"):
                await getattr(rig.control, operation)(request)
        elif operation == "list_links_in":
            assert (await rig.control.list_links_in(request)).links == []
        elif operation == "search_pages":
            assert (await rig.control.search_pages(request)).hits == []
        else:
            assert (await getattr(rig.control, operation)(request)).next in (0, "")
    assert (await rig.control.count_outcomes(screen_types.OfJob())).counts == []


async def test_a_profile_of_items_needs_rows_and_comparisons_that_can_be_read(rig):
    request = screen_types.ListItems(where='[["price","above","much"]]')
    if rig.has_settings:
        with pytest.raises(UserError, match=r"api\.store"):
            await rig.control.profile_items(screen_types.ListItems())
        return
    answer = await rig.control.profile_items(screen_types.ListItems())
    assert (answer.total, answer.counted, answer.fields) == (0, True, [])
    with pytest.raises(UsageError, match="is not a number"):
        await rig.control.profile_items(request)
    for where in ("x", "[]", '[["a","b","c"]]', "[" * 2000):
        with pytest.raises(UsageError, match=r"^where: "):
            await rig.control.list_items(screen_types.ListItems(where=where))


async def test_a_picture_of_an_item_that_is_not_there(rig):
    request = item_types.GetItemPicture(job="news", url_key="00", rule="shop", field="image")
    with pytest.raises(UserError, match=r"api\.store" if rig.has_settings else "no such item"):
        await rig.control.get_item_picture(request)


async def test_a_url_that_is_none_is_a_usage_error(rig):
    """Before the database is looked at."""
    with pytest.raises(UsageError, match="is not a URL"):
        await rig.control.get_page(screen_types.GetPage(url="no url"))


async def test_the_series_of_a_job_ends_with_its_present_counts(rig):
    """An unknown job has none."""
    await apply(rig)
    found = await rig.control.get_series(screen_types.GetSeries(job="news"))
    assert (found.samples[-1].queued, found.samples[-1].stored) == (1, 0)
    assert (await rig.control.get_series(screen_types.GetSeries(range="24h"))).samples[-1].queued == 1
    with pytest.raises(api.NotFound, match="no job 'x'"):
        await rig.control.get_series(screen_types.GetSeries(job="x"))


async def test_hosts_say_why_they_wait(rig):
    """A paused job lets its hosts wait; over Kafka each scheduler has its own hosts, and all of them are asked."""
    await apply(rig)
    request = screen_types.ListHosts(job="news")
    answer = await rig.control.list_hosts(request)
    (host,) = answer.hosts
    assert (host.name, host.queued, host.jobs, host.why) == ("a.test", 1, ["news"], "job")
    assert answer.partitions == answer.answered == (PARTITIONS if rig.has_settings else 0)
    assert (await rig.control.list_hosts(screen_types.ListHosts(search="b.test"))).hosts == []


async def test_the_pace_of_a_host_is_changed(rig):
    """For all jobs; a host that the frontier does not have is refused, and so is a pause without end."""
    await apply(rig)
    for action, seconds in (("pause", 3600.0), ("retry", 0.0), ("delay", 20.0)):
        request = screen_types.ChangeHost(name="a.test", action=action, seconds=seconds)
        answer = await rig.control.change_host(request)
        assert (answer.name, answer.action, answer.seconds) == ("a.test", action, seconds)
    (host,) = (await rig.control.list_hosts(screen_types.ListHosts(name="a.test"))).hosts
    assert (host.least_delay_s, host.held_s) == (20.0, 0.0)
    with pytest.raises(api.NotFound, match="not in the frontier"):
        await rig.control.change_host(screen_types.ChangeHost(name="b.test", action="retry"))
    for action, seconds in (("pause", 0.0), ("delay", 90_000.0), ("retry", 1.0)):
        with pytest.raises(UsageError, match=r"^seconds: "):
            await rig.control.change_host(screen_types.ChangeHost(name="a.test", action=action, seconds=seconds))


async def test_a_search_that_cannot_be_read_is_a_usage_error(rig):
    """One line that names the part."""
    with pytest.raises((UsageError, UserError), match=r"not closed|api\.store"):
        await rig.control.search_pages(screen_types.SearchPages(query='"fox'))


async def test_the_body_of_a_stored_page(rig, tmp_path):
    """Its source in parts, which needs its body, and its Markdown, which needs its row; a system over Kafka has no
    bodies."""
    shop.write(tmp_path, shop.pages(1))
    url = f"{shop.HOST}/p/1"
    if rig.has_settings:
        with pytest.raises(api.NotFound, match="crawl with --keep-raw"):
            await rig.control.get_body(screen_types.GetBody(url=url, form="source"))
        with pytest.raises(api.NotFound, match="no page"):
            await rig.control.get_body(screen_types.GetBody(url=url))
        return
    source = await rig.control.get_body(screen_types.GetBody(url=url, form="source"))
    assert source.text.lstrip().startswith("<")
    assert source.chars == len(source.text)
    part = await rig.control.get_body(screen_types.GetBody(url=url, form="source", start=5, limit=10))
    assert (part.text, part.chars) == (source.text[5:15], source.chars)
    with pytest.raises(api.NotFound, match="no body"):
        await rig.control.get_body(screen_types.GetBody(url=f"{shop.HOST}/none", form="source"))
    with pytest.raises(api.NotFound, match="no page"):
        await rig.control.get_body(screen_types.GetBody(url=url))
    stored = record(1, url=url, url_key=parse_url(url).fingerprint, **structured("<h1>A</h1><p><b>bold</b> word"))
    writer = Writer(StorageConfig(directory=tmp_path, fsync=False, writer="w"))
    writer.open()
    writer.commit([stored], [None], [])
    writer.close()
    assert (await rig.control.get_body(screen_types.GetBody(url=url))).text == "# A\n\n**bold** word"


async def test_a_rule_is_made_of_clicks_on_stored_pages(rig, tmp_path):
    """A system over Kafka has no bodies of pages; there a page comes from the web."""
    shop.write(tmp_path, shop.pages())
    control, url = rig.control, f"{shop.HOST}/p/1"
    found = await control.list_studio_pages(studio_types.ListStudioPages(search="/P/", limit=3))
    if rig.has_settings:
        assert (found.urls, found.total, found.complete) == ([], 0, True)
        for work in (
            control.open_studio_page(studio_types.OpenStudioPage(url=url)),
            control.studio_view(studio_types.OfDraft(draft={"url": url})),
        ):
            with pytest.raises(api.NotFound, match="is not stored here"):
                await work
        return
    assert (found.total, found.urls[0], found.complete) == (24, url, True)
    with pytest.raises(UserError, match="no page can be rendered here"):
        await control.render_studio_page(studio_types.RenderStudioPage(draft={"url": url}))
    with pytest.raises(UsageError, match="no CSS selector"):
        await control.render_studio_page(studio_types.RenderStudioPage(draft={"url": url, "steps": [{"click": "]["}]}))
    draft = (await control.open_studio_page(studio_types.OpenStudioPage(url=url))).draft
    for text in ("Table 1", "$10.50"):
        frame = await control.studio_frame(studio_types.StudioFrameOf(draft=studio_types.document_of(draft)))
        draft = (await control.studio_step(step(draft, frame.html, text))).draft
    styled = await control.studio_frame(studio_types.StudioFrameOf(draft=studio_types.document_of(draft), styled=True))
    assert styled.html.startswith("<!doctype html>")
    ((page, number),) = re.findall(r'src="\.\./file/([\w-]+)/(\d+)"', styled.html)
    with pytest.raises(UserError, match=r"shop\.test/img/1\.jpg: failed"):
        await control.studio_file(studio_types.GetStudioFile(page=page, number=int(number)))
    for other in (studio_types.GetStudioFile(page=page, number=2), studio_types.GetStudioFile(page="x", number=1)):
        with pytest.raises(api.NotFound, match="no page that is shown names this file"):
            await control.studio_file(other)
    view = await control.studio_view(studio_types.OfDraft(draft=studio_types.document_of(draft)))
    assert [(one.name, one.here, one.filled) for one in view.fields] == [("title", 1, 21), ("price", 1, 21)]
    assert (view.matching.total, view.others.total, view.problem) == (24, 4, "")
    made = await control.studio_rule(studio_types.OfDraft(draft=studio_types.document_of(draft)))
    assert made.verdict == "created"
    assert (await control.apply_rules(rule_types.ApplyRules(rules=[made.document]))).rules[0].verdict == "created"
    assert (
        await control.studio_rule(studio_types.OfDraft(draft=studio_types.document_of(draft)))
    ).verdict == "unchanged"
    with pytest.raises(UserError, match="rules are not committed here"):
        await control.studio_commit(studio_types.CommitRule(draft=studio_types.document_of(draft)))
    # No row is stored for these bodies, or the rows are in a database.
    with pytest.raises(UserError, match=r"no stored page is for the rule|are in a database|no database at"):
        await control.extract_stored(studio_types.ExtractStored(draft=studio_types.document_of(draft)))


async def test_what_does_not_work_has_a_reason_and_a_remedy(rig):
    answer = await rig.control.get_capabilities(requests.Empty())
    assert [entry.name for entry in answer.capabilities] == list(get_args(capability_types.CapabilityName))
    assert all(bool(entry.reason) is bool(entry.remedy) is not entry.works for entry in answer.capabilities)


def step(draft: Draft, html: str, text: str, kind: Step = "new") -> studio_types.StudioStep:
    """A click on a text of the frame."""
    (node,) = re.findall(rf'href="pick/(\d+)"[^>]*>{re.escape(text)}</a>', html)
    return studio_types.StudioStep(draft=studio_types.document_of(draft), step=kind, node=int(node))


async def test_the_studio_refuses_what_is_no_element_and_no_url(rig, tmp_path):
    """Nothing is fetched."""
    shop.write(tmp_path, shop.pages(1))
    with pytest.raises(UsageError, match="is not a URL"):
        await rig.control.open_studio_page(studio_types.OpenStudioPage(url="no url", source="web"))
    if not rig.has_settings:
        request = studio_types.StudioStep(draft={"url": f"{shop.HOST}/p/1"}, step="new", node=9_999_999)
        with pytest.raises(UsageError, match="no element 9999999"):
            await rig.control.studio_step(request)


async def test_a_draft_of_another_form_is_refused(rig):
    """With the place of the mistake."""
    with pytest.raises(UsageError, match="mode"):
        await rig.control.studio_view(studio_types.OfDraft(draft={"url": "http://a.test/", "mode": "fly"}))
