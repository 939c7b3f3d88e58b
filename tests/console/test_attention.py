"""What the overview says needs a person: a rate that fell, and whether it is errors or waiting hosts."""

from __future__ import annotations

import pytest
from nephila_console.screens.attention import needs_of
from nephila_control import api, job_types, rule_types, screen_types, site_types, system_types

from tests.cluster.operator.fake_control import job


class Quiet(api.Control):
    """A system without anything but what a test gives."""

    def __init__(self, directories=(), webhooks=(), members=(), rules=()):
        self._directories, self._webhooks = list(directories), list(webhooks)
        self._members, self._rules = list(members), list(rules)

    async def list_members(self, request):
        return system_types.MemberList(members=self._members)

    async def list_rules(self, request):
        return rule_types.RuleList(rules=self._rules)

    async def list_dead_letters(self, request):
        return system_types.DeadLetterList(dead_letters=[], next="")

    async def list_webhooks(self, request):
        return system_types.WebhookList(webhooks=self._webhooks)

    async def list_directories(self, request):
        return site_types.DirectoryList(directories=self._directories)


class Well:
    """A status without problems."""

    problems = ()
    disks = ()
    refusing_hosts = ()
    kind = "up"


class Cluster(Well):
    """Services over Kafka."""

    kind = "cluster"


def samples(*steps, queued=100):
    """Of (seconds, stored, failed) per step, after each other."""
    at = stored = failed = 0
    found = []
    for seconds, more, worse in ((0, 0, 0), *steps):
        at, stored, failed = at + seconds, stored + more, failed + worse
        values = {"queued": queued, "in_flight": 1, "stored": stored, "denied": 0, "failed": failed, "dropped": 0}
        found.append(screen_types.Sample(at=at, **values))
    return found


async def needs(given=(), jobs=(), status=None, **control):
    """Texts and links."""
    return [(need.text, need.link) for need in await all_needs(given, jobs, status, **control)]


async def all_needs(given=(), jobs=(), status=None, **control):
    series = screen_types.Series(samples=[], step_s=2.0, recent=list(given))
    return await needs_of(Quiet(**control), status or Well(), list(jobs), [], series)


async def test_a_rate_that_fell_by_waiting_leads_to_the_hosts():
    """From ten to two pages a second, without more errors."""
    (found,) = await needs(samples(*[(10, 100, 0)] * 60, *[(10, 20, 0)] * 6))
    assert found == ("The rate fell from 10.0 to 2.0 pages/s", "/console/hosts")


async def test_a_rate_that_fell_by_errors_leads_to_them():
    """Their share before is beside it."""
    (found,) = await needs(samples(*[(10, 98, 2)] * 60, *[(10, 4, 16)] * 6))
    assert found[0] == "The rate fell from 10.0 to 2.0 pages/s; 80 % of the fetches fail, 2.0 % before"
    assert found[1] == "/console/pages?outcome=failed"


@pytest.mark.parametrize(
    "given",
    [
        [],
        samples(),
        samples(*[(10, 100, 0)] * 12, *[(10, 0, 0)] * 6),
        samples(*[(10, 100, 0)] * 60, *[(10, 70, 0)] * 6),
        samples(*[(10, 100, 0)] * 60, *[(10, 0, 0)] * 6, queued=0),
        samples(*[(10, 4, 0)] * 60, *[(10, 0, 0)] * 6),
        samples(*[(10, 100, 0)] * 60, (10, -6000, 0), *[(10, 0, 0)] * 5),
    ],
    ids=["nothing", "one sample", "too short", "little less", "nothing queued", "slow before", "a job was deleted"],
)
async def test_a_rate_that_did_not_fall_is_not_named(given):
    """Nor one of which too little is known."""
    assert await needs(given) == []


def listed(url, *, fault):
    words = dict.fromkeys(("verdict", "reason", "target"), "x")
    times = {"since": "2026-11-28T10:00:00+00:00", "words": "the server fails", "proposal": "wait"}
    return site_types.ListState(url=url, fault=fault, status=0, links=0, **times, **words)


async def test_a_list_that_cannot_be_fetched_is_named_with_cause_since_when_and_remedy():
    lists = [listed(f"http://s.test/{number}", fault=number != 3) for number in range(8)]
    site = site_types.Directory(name="s", last_run="", ended="", why="", new_pages=0, lists=lists)
    (first, *_, rest) = await all_needs(directories=[site])
    assert first.text == "A list of site s cannot be fetched: http://s.test/0: the server fails"
    assert (first.link, first.since, first.remedy) == ("/console/sites?only=broken&q=s", 1795860000.0, "wait")
    assert rest.text == "2 more lists of sites cannot be fetched"


async def test_a_webhook_that_gets_nothing_needs_a_person():
    hook = system_types.WebhookRow(
        name="h", position=1, newest=2, failures=3, failing_since=1.0, error="refused", dead=0
    )
    (need,) = await all_needs(webhooks=[hook])
    assert need[:3] == ("Webhook h gets nothing: refused", "/console/system/webhooks", 1.0)


GB = 1 << 30


@pytest.mark.parametrize(
    ("free", "full_in_s", "text"),
    [
        (5 * GB, None, "Disk: 5.0 % (5.0 GB) free"),
        (50 * GB, 5 * 3600.0, "Disk: 50 % (50.0 GB) free; full in 5 h at the present speed"),
        (50 * GB, 7 * 3600.0, ""),
        (11 * GB, None, ""),
    ],
)
async def test_a_disk_that_is_or_will_soon_be_full_needs_a_person(free, full_in_s, text):
    class Filling(Well):
        disks = (system_types.Disk(member="", free_bytes=free, size_bytes=100 * GB, full_in_s=full_in_s),)

    assert [need for need, _ in await needs(status=Filling())] == ([text] if text else [])


async def test_a_host_that_refuses_is_named_with_its_queue_and_since_when():
    hosts = [system_types.RefusingHost(host=f"h{number}.test", since=number + 1.0, queued=1200) for number in range(7)]

    class Refused(Well):
        refusing_hosts = hosts

    (first, *_, rest) = await all_needs(status=Refused())
    assert first.text == "Host h0.test refuses every request; 1,200 URLs wait for it"
    assert (first.link, first.since) == ("/console/pages?q=h0.test&outcome=failed", 1.0)
    assert rest.text == "2 more hosts refuse every request"


def member(service, state="ready", **values):
    return system_types.Member(name=f"{service}-1", service=service, state=state, **values)


ALL = [member(service) for service in ("scheduler", "downloader", "parser", "storage")]


async def test_a_silent_member_and_one_that_cannot_work_are_named():
    silent = member("parser", "silent", silent_since=1.0)
    unready = member("storage", "not_ready", problem="the database is away")
    (first, second) = await all_needs(members=[*ALL[:2], silent, unready])
    assert (first.text, first.since) == ("Member parser-1 (parser) is silent", 1.0)
    assert second.text == "Member storage-1 (storage) cannot work: the database is away"
    assert {first.link, second.link} == {"/console/system"}


async def test_a_service_without_a_member_is_named_over_kafka_alone():
    assert await needs(members=ALL, status=Cluster()) == []
    ((text, _),) = await needs(members=ALL[:3], status=Cluster())
    assert text == "The service storage has no member: nothing passes it"
    assert await needs(members=[member("crawl")]) == []
    texts = [text for text, _ in await needs(members=[], status=Cluster())]
    assert len(texts) == 4


async def test_a_silent_member_is_none_and_a_program_of_two_services_is_both():
    both = [member("scheduler"), member("fetchparse"), member("storage")]
    assert await needs(members=both, status=Cluster()) == []
    silent = [*ALL[:3], member("storage", "silent", silent_since=1.0)]
    texts = [text for text, _ in await needs(members=silent, status=Cluster())]
    assert "The service storage has no member: nothing passes it" in texts


@pytest.mark.parametrize(
    ("state", "counts", "text"),
    [
        ("idle", {"stored": 9, "failed": 11}, "Job news: 11 of 20 fetches failed"),
        ("running", {"stored": 9, "failed": 11}, "Job news: 11 of 20 fetches failed"),
        ("running", {"failed": 3}, ""),
        ("idle", {"stored": 10, "failed": 10}, ""),
        ("idle", {"stored": 1, "failed": 5}, ""),
        ("idle", {}, ""),
    ],
)
async def test_a_job_of_which_most_fetches_failed_is_named(state, counts, text):
    texts = [text for text, _ in await needs(jobs=[job("news", state, **counts)])]
    assert texts == ([text] if text else [])


async def test_a_job_that_failed_is_named_with_its_cause_and_since_when():
    failed = job("news", "idle", failed=30)
    failed.failure = job_types.Failure(cause="nothing was stored: 30 failed", since=5.0, remedy="see")
    (need,) = await all_needs(jobs=[failed])
    assert (need.text, need.since) == ("Job news has failed: nothing was stored: 30 failed", 5.0)
    assert need.link == "/console/pages?job=news&outcome=failed"


async def test_a_rule_that_no_job_uses_is_named_where_jobs_name_rules():
    rules = [
        rule_types.Rule(name="a", version=1, document={}),
        rule_types.Rule(name="b", version=1, document={}, jobs=["news"]),
    ]
    assert await needs(jobs=[job("news")], rules=rules) == [
        ("Rule a is used by no job; choose jobs for it", "/console/rules?name=a")
    ]

    class Crawl(Well):
        kind = "crawl"

    assert await needs(jobs=[job("news")], rules=rules, status=Crawl()) == []
