"""A CrawlJob document becomes the message, or one error line with location, key and remedy."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_document import (
    distinct,
    document_of,
    from_json,
    keywords,
    lists_of,
    load,
    spec_of,
    urls_of,
)
from nephila.kernel.documents.job_schema import JobSpec, Parse, Politeness, Scope, Traps
from nephila.kernel.runtime.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
HEAD = "apiVersion: nephila.dev/v1\nkind: CrawlJob\nmetadata: {name: news}\nspec:\n  seeds: [https://news.example/]\n"
FULL = """
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: news}
spec:
  paused: true
  seeds:
    - HTTPS://News.example
    - {url: http://b.example/x}
    - {file: seeds.txt}
    - {sitemap: https://news.example/sitemap.xml.gz}
    - {feed: https://news.example/rss}
  scope: {mode: domain, include: ['/a'], exclude: ["/login", no, 1.10, 0x10], maxDepth: 5, maxPages: 10000}
  strategy: best-first
  keywords: [Solar  Power, no, solar power]
  politeness:
    delay: 500ms
    concurrencyPerHost: 2
    respectRobots: false
    adaptive: true
    hosts: [{host: Slow.example, delay: 1m30s}, {host: "*.fast.example:8080", concurrency: 4}]
  render: never
  schedule: "0 6 * * mon-fri"
  recrawl: {min: 1h, max: 14d, monitor: true, goneAfter: 5, freshness: 2h, refreshAt: "2026-11-22T06:00:00+01:00"}
  hostBudget: {pages: 10, bytes: 1000000, time: 2h, queued: 500}
  traps: {capFetches: 7, capShare: 0.25}
  weight: 2
  tenant: news
  quota: {pages: 7, bytes: 70, browserSeconds: 700, per: month}
  site: {name: s, quota: {pages: 9, per: day}}
  sitemaps: true
  links: true
  parse: {follow: [next, route, next], nofollow: skip, mainText: none}
  rules: []
  sinks: [{type: jsonl}, {type: warc}]
"""


def refused(text: str | bytes) -> str:
    """The error line for a file."""
    with pytest.raises(UsageError) as error:
        load(text.encode() if isinstance(text, str) else text, "job.yaml")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_every_key_reaches_the_services():
    """As it is written, each value of a list once."""
    (document,) = load(FULL.encode(), "job.yaml")
    job, spec = document.job, document.spec
    assert (document.name, job.uid, job.generation, job.paused) == ("news", "news", 0, True)
    assert (job.tenant, job.site, job.deleted) == ("news", "s", False)
    assert spec_of(job) == msgspec.structs.replace(spec, paused=False)
    assert urls_of(spec) == ["https://news.example/", "http://b.example/x"]
    assert lists_of(spec) == [
        ("sitemap", "https://news.example/sitemap.xml.gz"),
        ("feed", "https://news.example/rss"),
    ]
    assert document.files == ("seeds.txt",)
    assert (spec.scope.mode, spec.scope.max_depth, spec.scope.max_pages) == ("domain", 5, 10000)
    assert (spec.scope.include, spec.scope.exclude) == (["/a"], ["/login", "no", "1.10", "0x10"])
    assert (spec.strategy, spec.keywords) == ("best-first", ["solar power", "no"])
    assert spec.parse == Parse(["next", "route"], "skip", "none")
    assert document.sinks == ("jsonl", "warc")


LOGIN = """apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: inside}
spec:
  seeds: ["http://a.test/"]
  render: %s
  login:
    url: http://a.test/#/login
    fields: [{name: user, value: me}, {name: pw, env: NEPHILA_SECRET_PW}]
    steps: [{type: "#u", field: user}, {type: "#p", field: %s}, {click: button}]
"""


def test_the_steps_of_a_login_are_kept_and_need_a_browser_and_its_fields() -> None:
    """From the document to the job and back; each fault names its place."""
    (found,) = load((LOGIN % ("always", "pw")).encode(), "job.yaml")
    assert found.spec.login is not None
    assert [step.field for step in found.spec.login.steps] == ["user", "pw", ""]
    (again,) = load(json.dumps(document_of(found.job)).encode(), "again.yaml")
    assert again.job == found.job
    with pytest.raises(UsageError, match=r"job.yaml:8.*spec.login.* need a browser"):
        load((LOGIN % ("never", "pw")).encode(), "job.yaml")
    with pytest.raises(UsageError, match=r"steps.*no field of the login is named 'other'"):
        load((LOGIN % ("always", "other")).encode(), "job.yaml")


def test_defaults_are_those_of_the_command_line():
    """One second, no depth limit, robots.txt obeyed, breadth first, no recrawl."""
    spec = load(HEAD.encode(), "job.yaml")[0].spec
    assert (spec.scope.mode, spec.scope.max_depth, spec.scope.max_pages) == ("host", -1, 0)
    manners = spec.politeness
    assert (manners.delay, manners.concurrency_per_host, manners.respect_robots) == ("1s", 1, True)
    assert (spec.strategy, spec.recrawl, spec.host_budget, spec.traps) == ("bfs", None, HostBudget(), Traps())


def test_through_json_and_back_it_is_the_same_job():
    """As over the control socket."""
    (document,) = load(FULL.encode(), "job.yaml")
    again = from_json(json.loads(json.dumps(document.content)))
    assert (again.job, again.files, again.sinks, again.content) == (
        document.job,
        document.files,
        document.sinks,
        document.content,
    )


def test_a_file_may_hold_many_jobs_but_none_twice():
    """Documents separated by ---."""
    two = f"{HEAD}---\n{HEAD.replace('name: news', 'name: other')}"
    documents = load(two.encode(), "job.yaml")
    assert [document.name for document in distinct(documents)] == ["news", "other"]
    with pytest.raises(UsageError, match=r"job.yaml:1:1: the job 'news' comes twice, first at job.yaml:1:1"):
        distinct([*documents, copy.copy(documents[0])])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shedule: x", "job.yaml:6:3: unknown key 'shedule' in spec; did you mean 'schedule'?"),
        ("scope: {maxdepth: 1}", "job.yaml:6:11: unknown key 'maxdepth' in spec.scope; did you mean 'maxDepth'?"),
        ("scope: 5", "job.yaml:6:10: spec.scope has to be a map with the keys mode, include"),
        ("scope: {mode: hosts}", "job.yaml:6:17: spec.scope.mode: 'hosts' is unknown; did you mean 'host'?"),
        ("scope: {include: /a}", "spec.scope.include has to be a list"),
        ("scope: {exclude: ['(']}", "job.yaml:6:21: spec.scope.exclude[0]: '(' is not a valid RE2 expression"),
        ("scope: {maxPages: many}", "'many' is not a whole number"),
        ('scope: {maxPages: "10"}', "'10' is a text; write a whole number without quotes"),
        ("scope: {maxPages: 0x10}", "'0x10' is not a whole number"),
        ("scope: {maxPages: 1_000}", "is not a whole number"),
        ("scope: {maxPages: 1e3}", "is not a whole number"),
        ("scope: {maxPages: -1}", "-1 is not within 0 and"),
        ("scope: {maxDepth: -2}", "-2 is not within -1 and"),
        ("scope: {maxPages: " + "9" * 30 + "}", "is not a whole number"),
        ("scope: {include: }", "spec.scope.include has to be a list"),
        ("paused: yes", "job.yaml:6:11: spec.paused: 'yes' is neither true nor false"),
        ("paused: no", "'no' is neither true nor false"),
        ("paused: 'true'", "write true or false without quotes"),
        ("paused:", "spec.paused has no value"),
        ("strategy: astar", "spec.strategy: 'astar' is unknown; known are best-first, bfs, dfs"),
        ("politeness: {delay: 1}", "'1' is no duration like 500ms, 1s, 2h or 14d; write 1s for seconds"),
        ("politeness: {delay: 1w}", "'1w' is no duration"),
        ("politeness: {delay: -1s}", "'-1s' is no duration"),
        ("politeness: {delay: 99999d}", "'99999d' is not within 0s and ten years"),
        ("politeness: {concurrencyPerHost: 0}", "0 is not within 1 and 1000"),
        ("politeness: {hosts: [{delay: 1s}]}", "spec.politeness.hosts[0] lacks the key 'host'"),
        ("politeness: {hosts: [{host: 'http://a.example/'}]}", "is no host like a.example"),
        ("politeness: {hosts: [{host: 'a*.example'}]}", "is no host like a.example"),
        ("render: sometimes", "spec.render: 'sometimes' is unknown; known are always, auto, never"),
        ("browser: {steps: [{click: a, type: b}]}", "give exactly one of click, type, select, scroll, wait, pause"),
        ("browser: {steps: [{}]}", "spec.browser.steps[0]: give exactly one of click, type"),
        ("browser: {steps: [{click: 'a['}]}", "spec.browser.steps[0].click: 'a[' is no CSS selector"),
        ("browser: {steps: [{click: a, text: x}]}", "spec.browser.steps[0].text: 'text' needs 'type'"),
        ("browser: {steps: [{scroll: 101}]}", "101 is not within 0 and 100"),
        ("browser: {steps: [{pause: 2m}]}", "'2m' is longer than 60s"),
        ("browser: {steps: [{script: 'x()'}]}", "unknown key 'script' in spec.browser.steps[0]"),
        ("browser: {capture: [video]}", "spec.browser.capture[0]: 'video' is unknown; known are pdf, screenshot, xhr"),
        ("rules: [News!]", "spec.rules[0]: 'News!' is not a name of lower-case letters"),
        ("sinks: [{type: mongodb, secretRef: db}]", "spec.sinks[0].type: 'mongodb' is not built yet; this version"),
        ("sinks: [{type: csv}]", "spec.sinks[0].type: 'csv' is unknown"),
        ("sinks: [{}]", "spec.sinks[0] lacks the key 'type'"),
        ("schedule: hourly", "is not five fields of cron"),
        ("schedule: '60 * * * *'", "bad minute"),
        ("schedule: '* * 31-1 * *'", "bad day-of-month"),
        ("schedule: '0 0 31 2 *'", "is no schedule"),
        ("recrawl: {min: 2h, max: 1h}", "spec.recrawl: min 2h is longer than max 1h"),
        ("recrawl: {min: 2h}", "spec.recrawl: it needs both min and max, or every"),
        ("recrawl: {every: 1h, min: 1h, max: 2h}", "every and min and max exclude each other"),
        ("recrawl: {monitor: true}", "spec.recrawl: it has no frequency"),
        ("parse: {follow: [nxt]}", "spec.parse.follow[0]: 'nxt' is unknown; did you mean 'next'?"),
        ("parse: {nofollow: no}", "spec.parse.nofollow: 'no' is unknown; known are follow, skip"),
        ("parse: {mainText: trafilature}", "did you mean 'trafilatura'?"),
        (
            "recrawl: {every: 1d, freshness: 6h}",
            "freshness 6h is shorter than the shortest interval, 1d",
        ),
        ("recrawl: {refreshAt: 2026-11-22T06:00}", "is no instant like 2026-11-22T06:00:00Z"),
        ("recrawl: {every: 0}", "'0' is not within 1s and ten years"),
        ("traps: {capShare: 1.5}", "1.5 is not above 0 and at most 1"),
        ("quota: {pages: -1}", "-1 is not within 0 and 1000000000000"),
        ("quota: {pages: 1, per: week}", "'week' is unknown; known are day, month, run"),
        ("site: {name: s, quota: {pages: 1}}", "spec.site.quota: a quota of a site is per day or per month"),
        ("tenant: a b", "'a b' is not a name of a-z, 0-9 and hyphens"),
        ("weight: 0", "0 is not above 0 and at most 1000"),
        ("weight: .5", "'.5' is not a number like 2 or 0.05"),
        ("keywords: [[a]]", "spec.keywords[0] is a list; it has to be a text"),
        ("keywords: ['']", "spec.keywords[0] is empty"),
        (r'keywords: ["a\u202eb"]', "control or other invisible characters"),
    ],
)
def test_errors_have_location_key_and_remedy(line, expected):
    """One line each; the location is that of the value, or of the key if the key is wrong."""
    error_line = refused(f"{HEAD}  {line}\n")
    assert error_line.startswith("job.yaml:6:")
    assert expected in error_line


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (
            "news.example",
            "; write http://news.example",
        ),
        ("'ftp://a.example/'", "is no URL that can be crawled"),
        ("{urls: x}", "unknown key 'urls' in spec.seeds[0]; did you mean 'url'?"),
        ("{url: 'http://a.example/', feed: 'http://a.example/'}", "exactly one of the keys"),
        ("{}", "exactly one of the keys url, file, sitemap, feed"),
        ("[a]", "spec.seeds[0] has to be a map"),
        ("'http://a.example/" + "x" * 9000 + "'", "longer than 8,192 characters"),
    ],
)
def test_invalid_seeds(seed, expected):
    """Seeds must be absolute URLs."""
    error_line = refused(HEAD.replace("https://news.example/", seed))
    assert error_line.startswith(("job.yaml:5:11: ", "job.yaml:5:12: "))
    assert expected in error_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "job.yaml: there is no job in it"),
        ("- a", "job.yaml:1:1: the document has to be a map with the keys apiVersion, kind, metadata, spec"),
        (HEAD.replace("v1", "v2"), "job.yaml:1:13: apiVersion: 'nephila.dev/v2' is unknown"),
        (HEAD.replace("CrawlJob", "ParseRule"), "job.yaml:2:7: kind: 'ParseRule' is unknown"),
        (HEAD.replace("name: news", "name: News"), "job.yaml:3:18: metadata.name: 'News' is not a name of lower-case"),
        (HEAD.replace("name: news", "name: a/../b"), "metadata.name: 'a/../b' is not a name"),
        (HEAD.replace("name: news", f"name: {'a' * 254}"), "metadata.name is longer than 253 characters"),
        (HEAD.replace("metadata: {name: news}\n", ""), "the document lacks the key 'metadata'"),
        (HEAD.split("  seeds")[0] + "  paused: true", "spec: it has no seeds"),
        (HEAD.replace("[https://news.example/]", "[]"), "spec: it has no seeds"),
    ],
)
def test_documents_that_are_no_jobs(text, expected):
    """The line names the wrong value."""
    assert expected in refused(text)


def test_names_that_yaml_would_read_as_something_else():
    """1.10 and no are valid names."""
    assert load(HEAD.replace("name: news", "name: 1.10").encode(), "j")[0].name == "1.10"
    assert load(HEAD.replace("name: news", "name: no").encode(), "j")[0].name == "no"


def test_json_numbers_and_texts_are_different():
    """A client that sends "5" for a number gets an error with the path."""
    content = load(HEAD.encode(), "j")[0].content
    content["spec"]["scope"] = {"maxPages": "5"}
    with pytest.raises(UsageError, match=r"job.spec.scope.maxPages: .* without quotes"):
        from_json(content)
    content["spec"]["scope"] = {"maxPages": True}
    with pytest.raises(UsageError, match="is not a whole number"):
        from_json(content)


def test_keywords_as_the_message_has_them():
    """Lower case, single spaces, no duplicates."""
    assert keywords(["A  b", "a B", " ", "c"]) == ["a b", "c"]


KEYS = [field.encode_name for section in (JobSpec, Scope, Politeness) for field in fields(section)]
WORDS = st.sampled_from([*KEYS, "x", "url", "type"])
SCALARS = st.one_of(st.sampled_from(["1s", "true", "http://a/", "0", "-1", "*", "bfs", "[", ""]), st.text(max_size=8))
VALUES = st.recursive(
    st.one_of(SCALARS, st.integers(), st.booleans(), st.none(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(spec=st.dictionaries(WORDS, VALUES, max_size=5))
def test_any_spec_is_taken_or_refused_in_one_line(spec):
    """No other exception, through JSON and through YAML (a superset of JSON)."""
    content = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "a"}, "spec": spec}
    spec.setdefault("seeds", ["http://a.test/"])
    for read in (lambda: from_json(content), lambda: load(json.dumps(content).encode(), "j")):
        try:
            read()
        except UsageError as error_line:
            assert "\n" not in str(error_line)  # noqa: PT017
