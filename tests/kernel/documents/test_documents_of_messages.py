"""A document that is made of a message reads as the same message: each section alone, all together, and none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nephila.kernel.documents.job_document import LOGOUT, from_json
from nephila.kernel.documents.job_to_document import to_document
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.messages import CrawlJob, Politeness, Scope

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
    document = json.loads(json.dumps(to_document(job)))
    again = from_json(document)
    assert again.job == job
    assert to_document(again.job) == document
    assert name == "nothing" or job != job_of({})


def test_all_sections_come_back_together() -> None:
    """None of them hides another one."""
    spec = {key: value for key, value in ALL.items() if key not in ("recrawl", "schedule", "timeZone")}
    job = job_of({**spec, **SECTIONS["zone"]})
    assert from_json(json.loads(json.dumps(to_document(job)))).job == job


def test_a_section_that_a_message_lacks_is_left_out() -> None:
    """A message of a program that sets no scope and no politeness is a document, too."""
    document = to_document(CrawlJob(uid="j", seeds=["http://a.test/"]))
    assert not {"scope", "tenant", "quota", "site", "recrawl", "hostBudget", "traps", "parse", "login"} & {
        *document["spec"]
    }
    job = from_json(document).job
    assert job.politeness == Politeness(0.0, 1, False, False, [])
    assert job.scope == Scope(max_depth=-1)


def test_seeds_that_are_no_urls_are_added_by_the_caller() -> None:
    """Their kinds and order are kept."""
    sources = (("sitemap", "http://a.test/sitemap.xml"), ("feed", "http://a.test/rss"))
    assert from_json(to_document(job_of({}), sources)).sources == sources


@pytest.mark.parametrize("spec", [{"cookies": True}, SECTIONS["login"]], ids=["cookies", "login"])
def test_a_job_with_a_session_does_not_log_out(spec: dict[str, Any]) -> None:
    """The expression is added once, also when the document comes back; a job without a session has none."""
    job = job_of({**spec, "scope": {"exclude": ["/x"]}})
    assert job.scope is not None
    assert job.scope.exclude == ["/x", LOGOUT]
    again = from_json(to_document(job)).job
    assert again.scope is not None
    assert again.scope.exclude == ["/x", LOGOUT]
    without = job_of({"scope": {"exclude": ["/x"]}}).scope
    assert without is not None
    assert without.exclude == ["/x"]


@pytest.mark.parametrize(
    ("render", "follow"), [("never", ["next"]), ("auto", ["next", ROUTE]), ("always", ["next", ROUTE])]
)
def test_routes_are_pages_in_a_job_that_renders(render: str, follow: list[str]) -> None:
    """Once, also when they were named."""
    for given in ([], [ROUTE]) if render != "never" else ([],):
        parse = job_of({"render": render, "parse": {"follow": ["next", *given]}}).parse
        assert parse is not None
        assert parse.follow == follow
    assert (job_of({"render": render}).parse is None) == (render == "never")
