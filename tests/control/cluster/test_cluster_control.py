"""The control API over Kafka: a job is published, its seeds, and the job once more; changes wait for the broker."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from nephila.kernel.messages import (
    CrawlJob,
    ExplainAnswer,
    ExplainQuery,
    JobStatus,
    MemberState,
    MemberStatus,
    RefusingHost,
)
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.topics import EXPLAIN_ANSWERS, EXPLAIN_QUERIES, JOB_STATUS, JOBS, MEMBERS, SEEDS, SETTINGS
from nephila_control import event_types, job_types, requests, screen_types, system_types
from nephila_control.cluster import backend, held_jobs, queries
from nephila_control.cluster.backend import ClusterBackend
from nephila_control.commands import remote_crawl as remote
from nephila_control.commands.jobs.command import send_seeds
from nephila_control.event_log import FIRST_S
from nephila_control.operations import Operations
from nephila_tools.backup.system import publish_result

from tests.control.documents import document
from tests.fake_kafka import FakeKafka, FakeKafkaBus


class System:
    """Schedulers that report what the test has them report."""

    def __init__(self, tenants: tuple[str, ...] = ()) -> None:
        self.clock = ManualClock()
        self.bus = FakeKafkaBus(FakeKafka(16), self.clock, "api")
        self.bus.eager = True
        self.backend = ClusterBackend(self.bus, self.clock, None, None, place="broker:1", tenants=tenants)
        self.control = Operations(self.backend)
        self.received: list[object] = []
        for topic in (JOBS, SEEDS):
            self.bus.subscribe(topic, "scheduler", self._receive, credits=10_000)
        self.version = 0

    def _receive(self, delivery) -> None:
        self.received.append(delivery.message)
        delivery.ack()

    async def apply(self, seeds: int = 1, **spec) -> job_types.JobApplied:
        """A job with so many seeds in its document."""
        urls = [f"http://a.test/{n}" for n in range(seeds)]
        return await self.control.apply_job(job_types.ApplyJob(job=document("j", seeds=urls, **spec)))

    async def report(self, generation: int, **fields: object) -> list[object]:
        """The next status; returns what it has led to."""
        self.received.clear()
        self.version += 1
        self.bus.publish(JOB_STATUS, 0, JobStatus("j", generation, version=self.version, **fields))
        for _ in range(20):
            await asyncio.sleep(0)
        return list(self.received)

    async def job(self) -> job_types.Job:
        """How it stands."""
        return (await self.control.get_job(job_types.JobName(name="j"))).status


def jobs(received: list[object]) -> list[tuple[int, bool]]:
    """(generation, paused) of the jobs among them."""
    return [(one.generation, one.paused) for one in received if isinstance(one, CrawlJob)]


async def test_seeds_come_behind_the_job_and_the_job_once_more():
    """A scheduler that reports the last generation as done has read every seed."""
    system = System()
    answer = await system.apply(3)
    assert (answer.verdict, answer.generation, answer.held) == ("created", 2, False)
    assert [type(one).__name__ for one in system.received] == ["CrawlJob", "Seed", "Seed", "Seed", "CrawlJob"]
    assert (await system.job()).state == "new"
    await system.report(1, done=True)
    assert (await system.job()).state == "new"
    await system.report(2, stored=3)
    assert (await system.job()).state == "running"
    await system.report(2, stored=3, done=True)
    job = await system.job()
    assert (job.state, job.stored, job.observed_generation) == ("idle", 3, 2)


async def test_with_many_seeds_the_job_is_paused_until_all_were_read():
    """Else a link to a host whose seed comes later would be outside the scope."""
    system = System()
    applying = asyncio.create_task(system.apply(job_types.SEED_BATCH + 5))
    while len(jobs(system.received)) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert jobs(system.received) == [(1, True), (2, True)]
    assert await system.report(1, paused=True, done=True) == []
    assert await system.report(2, paused=True) == []
    assert jobs(await system.report(2, paused=True, done=True)) == [(3, False)]
    answer = await applying
    assert (answer.generation, answer.held) == (3, False)


async def test_seeds_of_files_hold_the_job_until_the_last(monkeypatch):
    """A request waits for the schedulers for a while only; the release comes later all the same."""
    monkeypatch.setattr(held_jobs, "RELEASE_S", 0.01)
    system = System()
    request = job_types.ApplyJob(job=document("j"), seeds_follow=True)
    answer = await system.control.apply_job(request)
    assert answer.held
    more = (f"http://a.test/{n}" for n in range(job_types.SEED_BATCH + 1))
    last = await send_seeds(system.control, "j", more, [], answer.generation)
    assert last.held
    assert system.backend.held.waiting == ["j"]
    finishing = asyncio.create_task(system.backend.held.finish())
    assert jobs(await system.report(last.generation, paused=True, done=True)) == [(3, False)]
    await finishing
    assert system.backend.held.waiting == []


async def test_a_held_job_that_is_changed_is_left_as_it_is(monkeypatch):
    """A pause of a person is not undone when the seeds were read."""
    monkeypatch.setattr(held_jobs, "RELEASE_S", 0.01)
    system = System()
    answer = await system.control.apply_job(job_types.ApplyJob(job=document("j"), seeds_follow=True))
    name = job_types.JobName(name="j")
    await system.control.resume_job(name)
    await system.control.pause_job(name)
    last = await send_seeds(system.control, "j", iter(()), [], answer.generation)
    assert not last.held
    assert (await system.job()).state == "paused"


async def test_a_tenant_that_the_settings_do_not_have_is_refused():
    """Nothing is published; without a list of tenants any name is allowed."""
    system = System(("news", "legal"))
    with pytest.raises(UserError, match=r"^[^\n]+ has no tenant 'newz' \(spec\.tenant\); did you mean 'news'\?$"):
        await system.apply(1, tenant="newz")
    assert system.received == []
    assert (await system.apply(1, tenant="legal")).verdict == "created"
    assert (await System().apply(1, tenant="newz")).verdict == "created"


async def test_a_seed_that_is_no_url_is_refused_and_the_others_are_taken():
    """Each with its reason."""
    system = System()
    await system.apply()
    answer = await system.control.add_seeds(job_types.AddSeeds(name="j", urls=["http://a.test/9", "no url"]))
    assert [one.url for one in answer.refused] == ["no url"]
    assert answer.refused_count == 1
    assert system.received[-1].url == "http://a.test/9"


async def test_a_status_that_is_not_above_the_last_does_not_count():
    """It is of a coordinator that had not read those before it."""
    system = System()
    await system.apply()
    await system.report(2, stored=1)
    system.version -= 1
    await system.report(2, stored=0, done=True)
    assert (await system.job()).stored == 1


async def test_the_rate_of_a_job_comes_from_its_reports():
    """What ended before this program began is no rate."""
    system = System()
    await system.apply()
    await system.report(2, stored=1000, at=system.clock.now() - 60.0)
    assert (await system.job()).rate == 0.0
    await system.report(2, stored=1000, at=system.clock.now())
    system.clock.advance(20.0)
    await system.report(2, stored=1030, failed=10, at=system.clock.now())
    assert (await system.job()).rate == pytest.approx(2.0)


async def test_one_that_follows_ends_with_the_job(monkeypatch):
    """A job that somebody pauses is waited for."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    system = System()
    answer = await system.apply()
    following = asyncio.create_task(remote.follow(system.control, "j", answer.generation, quiet=True))
    await system.report(1, done=True)
    await system.control.pause_job(job_types.JobName(name="j"))
    await system.report(3, paused=True, done=True)
    assert not following.done()
    await system.control.resume_job(job_types.JobName(name="j"))
    await system.report(4, done=True, stored=7)
    assert (await following).stored == 7


async def test_one_that_follows_a_deleted_job_is_told_in_one_line(monkeypatch):
    """Somebody has deleted it in the meantime."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    system = System()
    answer = await system.apply()
    following = asyncio.create_task(remote.follow(system.control, "j", answer.generation, quiet=True))
    await system.control.delete_job(job_types.JobName(name="j"))
    with pytest.raises(UserError, match="job 'j' was deleted"):
        await following


async def test_a_silence_counts_only_while_the_broker_is_there(monkeypatch, capsys):
    """Without one nobody can report; with one, a scheduler would."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    monkeypatch.setattr(remote, "LOOK_S", 0.0)
    monkeypatch.setattr(remote, "SILENT_S", 0.02)
    system = System()
    answer = await system.apply()
    system.clock.advance(60.0)
    system.bus.slow, system.bus.broker.failures = True, 10**9
    following = asyncio.create_task(remote.follow(system.control, "j", answer.generation, quiet=True))
    for _ in itertools.count():
        await asyncio.sleep(0)
        if "does not answer: waiting" in capsys.readouterr().err:
            break
    system.bus.slow, system.bus.broker.failures = False, 0
    with pytest.raises(UserError, match=r"no scheduler has reported on job 'j' .*: the job is withdrawn"):
        await following
    assert (await system.control.list_jobs(job_types.ListJobs())).jobs == []


async def test_a_silence_counts_from_the_return_of_the_broker(monkeypatch):
    """Also when no question met the broker while it was away: the crawl is not over when it comes back."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    monkeypatch.setattr(remote, "LOOK_S", 0.0)
    monkeypatch.setattr(remote, "SILENT_S", 10.0)
    began = remote.time.monotonic() - 1000.0
    monkeypatch.setattr(remote.time, "monotonic", lambda: began + system.clock.monotonic())
    system = System()
    answer = await system.apply()
    await system.report(answer.generation, queued=3)
    following = asyncio.create_task(remote.follow(system.control, "j", answer.generation, quiet=True))
    await asyncio.sleep(0)
    system.clock.advance(300.0)
    system.bus.answering_since = system.clock.monotonic()
    for passed_s, ends in ((0.0, False), (9.0, False), (2.0, True)):
        system.clock.advance(passed_s)
        for _ in range(20):
            await asyncio.sleep(0)
        assert following.done() is ends
    with pytest.raises(UserError, match="the job stays, and continues when a scheduler runs"):
        await following


async def test_one_that_follows_waits_for_a_server_that_restarts(monkeypatch, capsys):
    """The crawl goes on there; a server that stays away is given up."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    monkeypatch.setattr(remote, "GONE_S", 0.02)
    system = System()
    answer = await system.apply()
    await system.report(answer.generation, done=True, stored=7)
    get_job, refusals = system.control.get_job, 3

    async def restarting(request: job_types.JobName) -> object:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise NotReadyError("http://api cannot be reached")
        return await get_job(request)

    monkeypatch.setattr(system.control, "get_job", restarting)
    assert (await remote.follow(system.control, "j", answer.generation, quiet=True)).stored == 7
    assert capsys.readouterr().err.count("cannot be reached: waiting") == 1
    refusals = 10**9
    with pytest.raises(NotReadyError, match=r"cannot be reached, for .*: the job j stays"):
        await remote.follow(system.control, "j", answer.generation, quiet=True)


async def test_a_failed_backup_does_not_excuse_a_silence(monkeypatch):
    """Only what keeps reports away does."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    monkeypatch.setattr(remote, "SILENT_S", 0.01)
    system = System()
    now = system.clock.now()
    await publish_result(system.bus, now, now, "the frontier of partition 3 cannot be read")
    answer = await system.apply()
    system.clock.advance(60.0)
    with pytest.raises(UserError, match="no scheduler has reported"):
        await remote.follow(system.control, "j", answer.generation, quiet=True)


async def test_a_job_that_a_scheduler_has_read_is_not_withdrawn(monkeypatch):
    """Its scheduler may come back; the pages so far are kept."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    monkeypatch.setattr(remote, "SILENT_S", 0.02)
    system = System()
    answer = await system.apply()
    await system.report(answer.generation, queued=3)
    system.clock.advance(60.0)
    with pytest.raises(UserError, match="the job stays, and continues when a scheduler runs"):
        await remote.follow(system.control, "j", answer.generation, quiet=True)
    assert [one.name for one in (await system.control.list_jobs(job_types.ListJobs())).jobs] == ["j"]


async def test_a_broker_that_does_not_confirm_is_one_line(monkeypatch):
    """A person who changes a job is not left waiting for ever."""
    monkeypatch.setattr(backend, "TAKEN_S", 0.01)
    system = System()
    await system.apply()
    system.bus.slow, system.bus.broker.failures = True, 10**9
    with pytest.raises(NotReadyError, match=r"the broker at broker:1 has not confirmed this .* may still take it"):
        await system.control.pause_job(job_types.JobName(name="j"))
    assert (await system.control.status(requests.Empty())).problems == ["the broker at broker:1 does not answer"]


async def test_a_status_waits_five_seconds_for_a_silent_broker(monkeypatch):
    """Neither more, since a person or a probe waits for it, nor less, since a busy broker is not away."""
    system = System()
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)

    async def silent(*_: object) -> None:
        await loop.create_future()

    monkeypatch.setattr(system.bus, "bounds", silent)
    asking = asyncio.create_task(system.control.status(requests.Empty()))
    for passed_s, answered in ((0.0, False), (4.9, False), (0.2, True)):
        now += passed_s
        for _ in range(20):
            await asyncio.sleep(0)
        assert asking.done() is answered
    assert (await asking).problems == ["the broker at broker:1 does not answer"]


async def test_one_that_follows_gives_a_broker_up_that_is_gone(monkeypatch):
    """In one line; the crawl itself goes on when the broker is back."""
    monkeypatch.setattr(remote, "POLL_S", 0.0)
    monkeypatch.setattr(remote, "SILENT_S", 0.01)
    monkeypatch.setattr(remote, "GONE_S", 0.02)
    monkeypatch.setattr(remote, "LOOK_S", 0.0)
    system = System()
    answer = await system.apply()
    system.clock.advance(60.0)
    system.bus.broker.failures = 10**9
    with pytest.raises(NotReadyError, match=r"broker:1 does not answer, for .*: the job j stays"):
        await remote.follow(system.control, "j", answer.generation, quiet=True)


async def test_one_that_waits_for_seeds_gives_a_broker_up_that_is_gone(monkeypatch):
    """The job stays paused, and the line says how it continues."""
    monkeypatch.setattr(held_jobs, "RELEASE_S", 0.0)
    monkeypatch.setattr(held_jobs, "LOOK_S", 0.0)
    monkeypatch.setattr(held_jobs, "GONE_S", -1.0)
    monkeypatch.setattr(job_types, "SEED_BATCH", 2)
    system = System()
    await system.apply(5)
    assert system.backend.held.waiting == ["j"]
    system.bus.broker.failures = 10**9
    with pytest.raises(NotReadyError, match="j stays paused until the seeds are read"):
        await system.backend.held.finish()
    system.backend.close()


async def test_a_job_that_the_topic_lost_is_named_and_can_be_applied_again():
    """Schedulers that still have it ignore an earlier generation: the new one is above what they report."""
    system = System()
    system.bus.publish(JOB_STATUS, 0, JobStatus("j", 7, version=3))
    (problem,) = (await system.control.status(requests.Empty())).problems
    assert problem.startswith("the topic jobs has no job j, and schedulers report on it")
    await system.apply()
    assert [generation for generation, _ in jobs(system.received)] == [8, 9]
    assert (await system.control.status(requests.Empty())).problems == []


async def test_dead_letters_of_a_crawl_are_counted_by_topic():
    """Those of the job and those that name none, since the crawl began; over all pages of the answer."""
    rows = [("outlinks", "j", 90.0), ("outlinks", "j", 110.0), ("pages", "other", 120.0), ("pages", "", 130.0)]

    class Letters:
        async def list_dead_letters(self, request):
            number = int(request.after or 0)
            topic, job, at = rows[number]
            letter = system_types.DeadLetter(
                id=str(number), at=at, service="s", topic=topic, message="", job=job, url="", url_key="", partition=0,
                attempts=1, error="", bytes=0, refused="",
            )  # fmt: skip
            return system_types.DeadLetterList(
                dead_letters=[letter], next=str(number + 1) if number + 1 < len(rows) else ""
            )

    assert await remote.dead_letters(Letters(), "j", 100.0) == {"outlinks": 1, "pages": 1}


def report(system: System, id: str, *partitions: int, ago_s: float = 0.0, **fields: object) -> None:
    """A member reports."""
    service, _, name = id.partition("/")
    fields = {"state": MemberState.READY, "at": system.clock.now() - ago_s, "interval_s": 5.0, **fields}
    system.bus.publish(MEMBERS, 0, MemberStatus(id, service, name, partitions=list(partitions), **fields))


async def test_disks_and_refusing_hosts_are_those_of_members_that_report():
    system = System()
    for ago_s in (1200.0, 600.0, 0.0):
        system.clock.advance(600)
        report(system, "scheduler/s", disk_free_bytes=int(1e6 + ago_s), disk_size_bytes=int(1e7))
    refusing = [RefusingHost("a.test", 5.0, 7), RefusingHost("b.test", 3.0, 1)]
    report(system, "scheduler/s", disk_free_bytes=int(1e6), disk_size_bytes=int(1e7), refusing_hosts=refusing)
    report(system, "storage/fuller", disk_free_bytes=1, disk_size_bytes=100)
    report(system, "storage/silent", ago_s=60.0, disk_free_bytes=1, disk_size_bytes=100)
    report(system, "parser/without")
    status = await system.control.status(requests.Empty())
    assert [disk.member for disk in status.disks] == ["storage/fuller", "scheduler/s"]
    assert status.disks[1].full_in_s == pytest.approx(1e6)
    assert [host.host for host in status.refusing_hosts] == ["b.test", "a.test"]


async def test_a_member_that_falls_silent_and_is_replaced_makes_events():
    system = System()
    report(system, "scheduler/a", 1, 2)
    report(system, "scheduler/b", 3)
    system.clock.advance(FIRST_S)
    await system.control.list_events(event_types.ListEvents())
    system.clock.advance(30)
    report(system, "scheduler/b", 1, 2, 3)
    events = (await system.control.list_events(event_types.ListEvents())).events
    assert [(event.kind, event.subject) for event in events] == [
        ("takeover", "scheduler/b"),
        ("member_silent", "scheduler/a"),
        ("program_started", ""),
    ]


async def test_the_table_of_members_has_each_partition_once():
    """Of the member that was the last to report it; one that is silent or has ended has none."""
    system = System()
    report(system, "scheduler/killed", 0, 1, 2, 3, ago_s=10.0, address="10.0.0.1:9100")
    report(system, "scheduler/next", 2, 3, ago_s=1.0, address="10.0.0.2:9100")
    report(system, "parser/p", 2, ago_s=2.0)
    report(system, "storage/silent", 1, ago_s=60.0)
    report(system, "storage/ended", 2, state=MemberState.ENDED)
    members = (await system.control.list_members(requests.Empty())).members
    assert {f"{one.service}/{one.name}": one.partitions for one in members} == {
        "scheduler/killed": [0, 1], "scheduler/next": [2, 3], "parser/p": [2], "storage/silent": [],
        "storage/ended": [],
    }  # fmt: skip
    silent = {one.name: (one.state, system.clock.now() - one.silent_since) for one in members if one.silent_since}
    assert silent == {"killed": ("ready", 10.0), "silent": ("silent", 60.0)}
    assert [one.address for one in members if one.service == "scheduler"] == ["10.0.0.1:9100", "10.0.0.2:9100"]


async def test_no_member_is_silent_because_the_broker_was_away():
    """Their intervals count from its return; each keeps its partitions until then."""
    system = System()
    report(system, "scheduler/s", 0, 1)
    for passed_s, back, state, overdue in (
        (300.0, True, "ready", False),
        (8.0, False, "ready", True),
        (8.0, False, "silent", True),
    ):
        system.clock.advance(passed_s)
        if back:
            system.bus.answering_since = system.clock.monotonic()
        (member,) = (await system.control.list_members(requests.Empty())).members
        assert (member.state, bool(member.silent_since)) == (state, overdue)
        assert member.partitions == ([] if state == "silent" else [0, 1])
        assert member.reported_s >= 300.0


async def test_a_failed_backup_is_a_problem_until_one_works():
    """The status has its line, the table of members as well."""
    system = System()
    now = system.clock.now()
    await publish_result(system.bus, now, now, "the frontier of partition 3 cannot be read")
    status = await system.control.status(requests.Empty())
    assert any("the newest backup failed 0.0 h ago" in line and "partition 3" in line for line in status.problems)
    (row,) = [one for one in (await system.control.list_members(requests.Empty())).members if one.name == "backup"]
    assert (row.state, row.problem) == ("not_ready", "the frontier of partition 3 cannot be read")
    await publish_result(system.bus, now, now, "")
    status = await system.control.status(requests.Empty())
    assert not any("backup" in line for line in status.problems)


async def test_the_age_of_the_newest_backup_counts_from_its_end():
    system = System()
    assert system.backend.backup_age_s is None
    now = system.clock.now()
    await publish_result(system.bus, now, now, "")
    system.clock.advance(90.0)
    assert system.backend.backup_age_s == 90.0


async def test_a_setting_of_one_member_is_stored_under_its_name():
    """The member is found by its name; where several services have it, by the service that reads the setting."""
    system = System()
    for id in ("downloader/a", "scheduler/a", "downloader/b"):
        report(system, id)
    kept = []
    system.bus.subscribe(SETTINGS, "test", lambda d: (kept.append(d.message.name), d.ack()), credits=99)

    async def change(member: str, **settings: object) -> dict[str, object]:
        return (
            await system.control.change_settings(system_types.ChangeSettings(settings=settings, member=member))
        ).settings

    assert await change("a", speed=2, connections=5) == {"downloader/a:connections": 5, "downloader/a:speed": 2}
    await change("a", depth=1)
    await change("scheduler/a", log_level="debug")
    await change("downloader/a", speed=None)
    assert kept == [
        "downloader/a:speed", "downloader/a:connections", "scheduler/a:depth", "scheduler/a:log_level",
        "downloader/a:speed",
    ]  # fmt: skip
    for member, settings, line in (
        ("c", {"speed": 1}, "there is no member 'c'; there are a, b"),
        ("b", {"depth": 1}, "depth is a setting of scheduler, and b is a downloader"),
        ("a", {"log_level": "debug"}, "several members are called a: downloader/a, scheduler/a"),
        ("b", {"speed": -1}, "none of the numbers above 0"),
    ):
        with pytest.raises(UsageError, match=line):
            await change(member, **settings)


ROWS = b'{"hosts": [{"name": "%s.test", "why": "delay", "wait_s": %d, "queued": 1, "in_flight": 0, "delay_s": 1,\
 "address": "", "jobs": [], "recent": [1, 0.1, 0.2, 200, 0, 1]}], "total": 7}'


def scheduler_of(system: System, partitions: list[int], rows: bytes) -> list[ExplainQuery]:
    """A scheduler that lists the same hosts whatever it is asked; returns its queries."""
    received: list[ExplainQuery] = []

    def answer(delivery) -> None:
        query = delivery.message
        delivery.ack()
        received.append(query)
        slot = f"{query.slot}/{partitions[0]}"
        system.bus.publish(EXPLAIN_ANSWERS, 0, ExplainAnswer(slot, query.id, partitions=partitions, hosts=rows))

    system.bus.subscribe(EXPLAIN_QUERIES, f"scheduler-{partitions[0]}", answer, credits=100)
    return received


async def test_hosts_of_schedulers_are_merged_and_a_missing_answer_is_counted(monkeypatch):
    monkeypatch.setattr(queries, "HOSTS_S", 0.05)
    system = System()
    received = scheduler_of(system, [*range(8)], ROWS % (b"late", 9))
    scheduler_of(system, [8, 9, 10, 11], ROWS % (b"soon", 3))
    answer = await system.control.list_hosts(screen_types.ListHosts(limit=5))
    assert [host.name for host in answer.hosts] == ["soon.test", "late.test"]
    assert (answer.total, answer.partitions, answer.answered) == (14, 16, 12)
    first = await system.control.list_hosts(screen_types.ListHosts(limit=1))
    assert [host.name for host in first.hosts] == ["soon.test"]
    assert [query.url for query in received] == ["", ""]


async def test_a_list_of_hosts_without_any_answer_says_so(monkeypatch):
    """Of one host, its partition alone is asked."""
    monkeypatch.setattr(queries, "HOSTS_S", 0.02)
    system = System()
    answer = await system.control.list_hosts(screen_types.ListHosts())
    assert (answer.hosts, answer.partitions, answer.answered) == ([], 16, 0)
    answer = await system.control.list_hosts(screen_types.ListHosts(name="a.test"))
    assert (answer.hosts, answer.partitions, answer.answered) == ([], 1, 0)
    with pytest.raises(UsageError, match="is no host"):
        await system.control.list_hosts(screen_types.ListHosts(name="a b"))


async def test_rows_of_another_version_are_an_error():
    system = System()
    scheduler_of(system, [*range(16)], b'{"hosts": [{"title": 1}], "total": 1}')
    with pytest.raises(NotReadyError, match="another version"):
        await system.control.list_hosts(screen_types.ListHosts())
