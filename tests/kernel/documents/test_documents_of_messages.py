"""The document of a job reads as the same job: each section alone, all together, and none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nephila.kernel.documents.job_document import LOGOUT, document_of, from_json, lists_of, spec_of, with_spec
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.messages import CrawlJob

SCHEMES = {
    "schemes": [
        {
            "name": "solar",
            "spec": {"platforms": [{"name": "news"}], "groups": {"all": {"event": {"any": ["solar power"]}}}},
        }
    ],
    "platforms": [{"name": "news", "search": {"url": "http://news.test/?q={keyword}"}}],
    "incomplete": True,
}
FIELDS = [{"name": "user", "value": "me"}, {"name": "pw", "env": "NEPHILA_SECRET_PW"}, {"name": "key", "file": "k"}]
SECTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "paused": {"paused": True},
    "seeds": {"seeds": ["http://a.test/", "http://b.test/x"]},
    "strategy": {"strategy": "best-first", "keywords": ["solar power", "no"]},
    "depth first": {"strategy": "dfs"},
    "scope": {"scope": {"mode": "domain", "include": ["/a"], "exclude": ["/b"], "maxDepth": 0, "maxPages": 7}},
    "politeness": {
        "politeness": {
            "delay": "0.125s",
            "concurrencyPerHost": 3,
            "respectRobots": False,
            "adaptive": True,
            "hosts": [
                {"host": "a.test", "delay": "0"},
                {"host": "b.test", "concurrency": 4},
                {"host": "*.c.test", "delay": "1m30s", "concurrency": 5},
            ],
        }
    },
    "no delay": {"politeness": {"delay": "0"}},
    "rules": {"rules": ["one", "two"], "sitemaps": True, "links": True, "cookies": True},
    "shares": {"weight": 2.5, "tenant": "news", "quota": {"pages": 1, "bytes": 2, "browserSeconds": 3, "per": "day"}},
    "quota of pages": {"quota": {"pages": 1}},
    "quota of bytes": {"quota": {"bytes": 1, "per": "month"}},
    "quota of a browser": {"quota": {"browserSeconds": 1}},
    "site": {"site": {"name": "s"}},
    "site with a quota": {"site": {"name": "s", "quota": {"pages": 9, "per": "month"}}},
    "between": {"recrawl": {"min": "1h", "max": "1d"}},
    "every": {"recrawl": {"every": "6h", "monitor": True, "goneAfter": 9, "freshness": "7h"}},
    "once": {"recrawl": {"refreshAt": "2026-11-22T06:00:00Z"}},
    "schedule": {"schedule": "0 6 * * 1"},
    "zone": {"schedule": "0 6 * * 1", "timeZone": "Europe/Paris", "recrawl": {"monitor": True}},
    "budget": {"hostBudget": {"pages": 1, "bytes": 2, "time": "3s", "queued": 4}},
    "traps": {"traps": {"capFetches": 7, "capShare": 0.25}},
    "no traps": {"traps": {"off": True}},
    "parse": {
        "parse": {"follow": ["next", "feed"], "nofollow": "skip", "mainText": "none", "nearCopies": "mark"},
    },
    "near copies": {"parse": {"nearCopies": "skip"}},
    "connection": {"proxyClass": "residential/de", "language": "de, en;q=0.5", "maxPageBytes": 4096},
    "browser": {
        "render": "auto",
        "browser": {
            "wait": {"until": "load", "time": "1s"},
            "steps": [{"click": "a"}],
            "capture": ["pdf"],
            "budget": {"job": "1h"},
        },
    },
    "login": {"login": {"url": "http://a.test/login", "fields": FIELDS, "check": "Welcome", "lost": "(?i)log in"}},
    "login by scripts": {
        "render": "always",
        "login": {"url": "http://a.test/login", "fields": FIELDS, "steps": [{"type": "#u", "field": "user"}]},
    },
    "schemes": {"schemes": SCHEMES},
}
ALL = {
    key: value
    for name, spec in SECTIONS.items()
    if name not in ("depth first", "no delay")
    for key, value in spec.items()
}


def job_of(spec: dict[str, Any]) -> CrawlJob:
    """The message of a document with this spec, which has gone through JSON."""
    head = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "news"}}
    return from_json(json.loads(json.dumps({**head, "spec": {"seeds": ["http://a.test/"], **spec}}))).job


@pytest.mark.parametrize("name", SECTIONS)
def test_each_section_comes_back(name: str) -> None:
    """With its values, which are others than those of a job without it."""
    job = job_of(SECTIONS[name])
    document = json.loads(json.dumps(document_of(job)))
    again = from_json(document)
    assert again.job == job
    assert document_of(again.job) == document
    assert name == "nothing" or job != job_of({})


def test_all_sections_come_back_together() -> None:
    """None of them hides another one."""
    spec = {key: value for key, value in ALL.items() if key not in ("recrawl", "schedule", "timeZone")}
    job = job_of({**spec, **SECTIONS["zone"]})
    assert from_json(json.loads(json.dumps(document_of(job)))).job == job


def test_sitemaps_and_feeds_come_back_and_files_do_not() -> None:
    """A file belongs to the program that reads the document."""
    job = job_of({"seeds": [{"sitemap": "http://a.test/s.xml"}, {"file": "seeds.txt"}, {"feed": "http://a.test/rss"}]})
    assert document_of(job)["spec"]["seeds"] == [{"sitemap": "http://a.test/s.xml"}, {"feed": "http://a.test/rss"}]
    assert lists_of(spec_of(job)) == [("sitemap", "http://a.test/s.xml"), ("feed", "http://a.test/rss")]


def test_the_pause_of_a_job_is_a_flag_of_its_message() -> None:
    """Control pauses a job without a change of its document."""
    paused, running = job_of({"paused": True}), job_of({})
    assert (paused.paused, paused.document) == (True, running.document)
    assert document_of(paused)["spec"]["paused"] is True
    assert document_of(running)["spec"]["paused"] is False


def test_a_shown_document_has_the_usual_keys_with_their_defaults() -> None:
    """A client that changes one of them, or merges its own defaults, finds what holds."""
    found = document_of(job_of({}))["spec"]
    limits = {"maxDepth": -1, "maxPages": 0, "linksPerPage": 0, "linksPerLevel": 0}
    assert found["scope"] == {"mode": "host", "include": [], "exclude": [], **limits}
    assert (found["politeness"]["delay"], found["render"], found["rules"], "quota" in found) == (
        "1s",
        "never",
        [],
        False,
    )


def test_a_value_that_is_its_default_changes_nothing() -> None:
    """At every level: the document is compared when a job is applied again."""
    written = {"strategy": "bfs", "weight": 1, "traps": {"capShare": 0.05}, "politeness": {"delay": "1s", "hosts": []}}
    assert job_of(written) == job_of({})
    scheme = {"name": "solar", "spec": {"platforms": [{"name": "news"}], "groups": {"a": {"event": {"any": ["b"]}}}}}
    schemes = {**SCHEMES, "schemes": [scheme], "incomplete": False}
    assert job_of({"schemes": schemes}) == job_of({"schemes": {**schemes, "incomplete": False}})


def test_a_changed_spec_keeps_the_rest_of_the_job() -> None:
    job = job_of({"paused": True, "cookies": True, "tenant": "news"})
    job.generation = 4
    new = with_spec(job, rules=["b", "a", "b"])
    assert (new.uid, new.generation, new.paused, new.tenant) == (job.uid, 4, True, "news")
    assert spec_of(new).rules == ["b", "a"]
    assert spec_of(job).rules == []


def test_a_service_skips_keys_of_a_later_version() -> None:
    """At their place, and within a section."""
    job = job_of({})
    job.document = b'{"new":1,"scope":{"maxDepth":3,"new":[]}}'
    assert spec_of(job).scope.max_depth == 3
    assert spec_of(job).politeness == JobSpec().politeness


@pytest.mark.parametrize("spec", [{"cookies": True}, SECTIONS["login"]], ids=["cookies", "login"])
def test_a_job_with_a_session_does_not_log_out(spec: dict[str, Any]) -> None:
    """The expression is added once, also when the document comes back; a job without a session has none."""
    job = job_of({**spec, "scope": {"exclude": ["/x"]}})
    assert spec_of(job).scope.exclude == ["/x", LOGOUT]
    assert spec_of(from_json(document_of(job)).job).scope.exclude == ["/x", LOGOUT]
    assert spec_of(job_of({"scope": {"exclude": ["/x"]}})).scope.exclude == ["/x"]


@pytest.mark.parametrize(
    ("render", "follow"), [("never", ["next"]), ("auto", ["next", ROUTE]), ("always", ["next", ROUTE])]
)
def test_routes_are_pages_in_a_job_that_renders(render: str, follow: list[str]) -> None:
    """Once, also when they were named."""
    for given in ([], [ROUTE]) if render != "never" else ([],):
        job = job_of({"render": render, "parse": {"follow": ["next", *given]}})
        assert spec_of(job).parse.follow == follow
