"""What the overview says needs a person: a rate that fell, and whether it is errors or waiting hosts."""

from __future__ import annotations

import pytest
from nephila_console.screens.attention import needs_of
from nephila_control import api, rule_types, screen_types, site_types, system_types

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
    return [tuple(one) for one in await needs_of(Quiet(**control), status or Well(), list(jobs), [], given)]


async def test_a_rate_that_fell_by_waiting_leads_to_the_hosts():
    """From ten to two pages a second, without more errors."""
    (found,) = await needs(samples(*[(60, 600, 0)] * 20, *[(60, 120, 0)] * 2))
    assert found == ("The rate fell from 10.0 to 2.0 pages/s; see which hosts wait", "/console/hosts")


async def test_a_rate_that_fell_by_errors_leads_to_them():
    """Their share before is beside it."""
    (found,) = await needs(samples(*[(60, 588, 12)] * 20, *[(60, 24, 96)] * 2))
    assert found[0] == "The rate fell from 10.0 to 2.0 pages/s; 80 % of the fetches fail, 2.0 % before"
    assert found[1] == "/console/pages?outcome=failed"


@pytest.mark.parametrize(
    "given",
    [
        [],
        samples(),
        samples((60, 600, 0), (60, 0, 0), (60, 0, 0)),
        samples(*[(60, 600, 0)] * 20, *[(60, 400, 0)] * 2),
        samples(*[(60, 600, 0)] * 20, *[(60, 0, 0)] * 2, queued=0),
        samples(*[(60, 6, 0)] * 20, *[(60, 0, 0)] * 2),
    ],
    ids=["nothing", "one sample", "too short", "little less", "nothing queued", "slow from the beginning"],
)
async def test_a_rate_that_did_not_fall_is_not_named(given):
    """Nor one of which too little is known."""
    assert await needs(given) == []


async def test_broken_lists_and_silent_webhooks_need_a_person():
    """One line for all lists."""
    words = dict.fromkeys(("url", "verdict", "reason", "target", "since", "words", "proposal"), "x")
    lists = [site_types.ListState(fault=fault, status=0, links=0, **words) for fault in (True, False, True)]
    site = site_types.Directory(name="s", last_run="", ended="", why="", new_pages=0, lists=lists)
    hook = system_types.WebhookRow(
        name="h", position=1, newest=2, failures=3, failing_since=1.0, error="refused", dead=0
    )
    assert await needs(directories=[site], webhooks=[hook]) == [
        ("2 lists of sites are broken", "/console/sites?broken=1"),
        ("Webhook h gets nothing: refused", "/console/system/webhooks"),
    ]


def member(service, state="ready", **values):
    return system_types.Member(name=f"{service}-1", service=service, state=state, **values)


ALL = [member(service) for service in ("scheduler", "downloader", "parser", "storage")]


async def test_a_silent_member_and_one_that_cannot_work_are_named():
    silent = member("parser", "silent", silent_since=1.0)
    unready = member("storage", "not_ready", problem="the database is away")
    (first, second) = await needs(members=[*ALL[:2], silent, unready])
    assert first[0].startswith("Member parser-1 (parser) is silent; last report ")
    assert second[0] == "Member storage-1 (storage) cannot work: the database is away"
    assert {first[1], second[1]} == {"/console/system"}


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
        ("idle", {"failed": 3, "denied": 1}, "Job news ended with nothing stored: 3 failed, 1 denied"),
        ("idle", {"stored": 9, "failed": 11}, "Job news: 11 of 20 fetches failed"),
        ("running", {"stored": 9, "failed": 11}, "Job news: 11 of 20 fetches failed"),
        ("running", {"failed": 3}, ""),
        ("idle", {"stored": 10, "failed": 10}, ""),
        ("idle", {"stored": 1, "failed": 5}, ""),
        ("idle", {}, ""),
    ],
)
async def test_a_job_that_ended_with_nothing_or_failed_by_half_is_named(state, counts, text):
    texts = [text for text, _ in await needs(jobs=[job("news", state, **counts)])]
    assert texts == ([text] if text else [])


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
