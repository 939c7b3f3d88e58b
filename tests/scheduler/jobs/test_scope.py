"""Scope: which URLs belong to a job, and the rule that says so."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import FetchRequest
from nephila.kernel.net.public_suffix import registrable_domain
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import OUTLINKS
from nephila.native import parse_url, partition_of
from nephila.scheduler.engine import admission
from nephila.scheduler.jobs.scope import CompiledScope, anchored_in

from tests.scheduler.world import Answer, World, links_of


def decide(scope: Scope, seed: str, url: str, depth: int = 1) -> bool:
    """Whether a scope anchored at `seed` admits `url`."""
    compiled = CompiledScope(scope)
    parts = parse_url(seed)
    compiled.add_seed(parts.host_key, parts.path_query)
    target = parse_url(url)
    return compiled.decide(target.href, target.host_key, depth).admitted


@pytest.mark.parametrize(
    ("mode", "seed", "url", "admitted"),
    [
        ("HOST", "http://example.org/", "https://example.org/x", True),
        ("HOST", "http://example.org/", "https://www.example.org/x", True),
        ("HOST", "http://www.example.org/", "http://example.org/x", True),
        ("HOST", "http://example.org/", "http://example.org:8080/", False),
        ("HOST", "http://example.org/", "http://blog.example.org/", False),
        ("HOST", "http://wwwexample.org/", "http://example.org/", False),
        ("DOMAIN", "http://www.example.co.uk/", "http://shop.example.co.uk/", True),
        ("DOMAIN", "http://www.example.co.uk/", "http://other.co.uk/", False),
        ("DOMAIN", "http://127.0.0.1:80/", "http://127.0.0.1:80/x", True),
        ("PREFIX", "http://a.test/docs/index.html", "http://a.test/docs/deep/er?q=/x", True),
        ("PREFIX", "http://a.test/docs/index.html", "http://a.test/docs/", True),
        ("PREFIX", "http://a.test/docs/index.html", "http://a.test/docs", False),
        ("PREFIX", "http://a.test/docs/index.html", "http://a.test/other?u=/docs/", False),
        ("PREFIX", "http://a.test", "http://a.test/anything", True),
        ("ANY", "http://a.test/", "ftp+http://b.test/".replace("ftp+", ""), True),
    ],
)
def test_modes(mode, seed, url, admitted):
    """Host ignores scheme, default port and www.; domain is the registrable one; prefix is a directory."""
    assert decide(Scope(mode=mode.lower(), max_depth=-1), seed, url) is admitted


def test_include_and_exclude_are_searched_in_the_full_url():
    """Exclude wins over include; without a matching include nothing is admitted."""
    scope = Scope(mode="any", include=[r"/news/\d{4}/", "special"], exclude=[r"\?print"], max_depth=-1)
    assert decide(scope, "http://a.test/", "http://b.test/news/2026/x")
    assert decide(scope, "http://a.test/", "http://special.test/")
    assert not decide(scope, "http://a.test/", "http://b.test/news/x")
    assert not decide(scope, "http://a.test/", "http://b.test/news/2026/x?print=1")


def test_depth_limit():
    """Links deeper than the limit stay out; -1 means no limit; 0 means seeds only."""
    assert decide(Scope(max_depth=2), "http://a.test/", "http://a.test/x", depth=2)
    assert not decide(Scope(max_depth=2), "http://a.test/", "http://a.test/x", depth=3)
    assert not decide(Scope(max_depth=0), "http://a.test/", "http://a.test/x", depth=1)
    assert decide(Scope(max_depth=-1), "http://a.test/", "http://a.test/x", depth=10_000)


def test_the_verdict_names_its_rule():
    """explain shows these words."""
    scope = CompiledScope(Scope(exclude=["/login"], max_depth=-1))
    scope.add_seed("a.test", "/")
    assert scope.decide("http://a.test/login", "a.test").rule == "excluded by '/login'"
    assert scope.decide("http://b.test/", "b.test").rule == "host b.test is not a seed host"
    assert scope.decide("http://a.test/", "a.test").rule == "host a.test is a seed host"
    deep = CompiledScope(Scope(mode="any", include=["/x"], max_depth=1))
    assert deep.decide("http://a.test/", "a.test", 2).rule == "depth 2 is beyond the limit of 1"
    assert deep.decide("http://a.test/", "a.test", 1) == (False, "matches no include pattern")
    assert deep.decide("http://a.test/x", "a.test", 1) == (True, "included by '/x'")
    assert CompiledScope(Scope(mode="any", max_depth=0)).decide("http://a.test/", "a.test") == (True, "scope any")
    domain = CompiledScope(Scope(mode="domain", max_depth=0), ["example.org"])
    assert domain.decide("http://b.example.org/", "b.example.org").rule == "domain example.org is a seed domain"
    assert domain.decide("http://example.net/", "example.net").rule == "domain example.net is not a seed domain"
    prefix = CompiledScope(Scope(mode="prefix", max_depth=0), ["a.test/docs/"])
    assert prefix.decide("http://www.a.test/docs/x?/y/", "www.a.test").rule == "below seed directory a.test/docs/"
    assert prefix.decide("http://a.test/docs?/y/", "a.test").rule == "a.test/docs is below no seed directory"


@pytest.mark.parametrize("pattern", ["(", "[a-", "(?=x)", "*"])
def test_a_bad_expression_is_one_line(pattern):
    """Option, pattern and reason; nothing about Python."""
    with pytest.raises(UsageError, match=r"exclude .* is not a valid RE2 expression: "):
        CompiledScope(Scope(exclude=[pattern], max_depth=0))


def test_hostile_expressions_stay_linear():
    """RE2 has no backtracking: this pattern would take Python's re longer than the universe has."""
    scope = CompiledScope(Scope(mode="any", include=["(a+)+$"], max_depth=-1))
    assert not scope.decide("http://h.test/" + "a" * 50_000 + "!", "h.test").admitted


def test_anchors_are_taken_over_into_a_wider_mode():
    """A resumed crawl whose scope was widened keeps what seeds redirected to; a narrower one asks its seeds again."""
    prefix = CompiledScope(Scope(mode="prefix", max_depth=0), ["docs.a.test/x/", "a.co.uk/"])
    host = CompiledScope(Scope(max_depth=0))
    host.take_over(prefix)
    assert host.anchors == {"docs.a.test", "a.co.uk"}
    domain = CompiledScope(Scope(mode="domain", max_depth=0))
    domain.take_over(host)
    assert domain.anchors == {registrable_domain("docs.a.test"), "a.co.uk"}
    narrow = CompiledScope(Scope(mode="prefix", max_depth=0))
    narrow.take_over(domain)
    assert narrow.anchors == set()


@pytest.mark.parametrize(
    ("mode", "anchor", "anchors", "others"),
    [
        ("host", "a.test", ["a.test", "www.a.test"], ["b.a.test", "a.test:8080"]),
        ("domain", "example.org", ["www.example.org", "b.example.org"], ["example.net"]),
        ("prefix", "a.test/docs/", ["a.test", "www.a.test"], ["b.a.test"]),
        ("any", "", [], ["a.test"]),
    ],
)
def test_seed_hosts_are_known_by_their_anchors(mode, anchor, anchors, others):
    """Whether the anchors were there from the start, come from a seed, from a log or from an earlier scope."""
    scopes = [CompiledScope(Scope(mode=mode, max_depth=0), [anchor] if anchor else []) for _ in range(2)]
    scopes += [CompiledScope(Scope(mode=mode, max_depth=0)) for _ in range(3)]
    assert scopes[2].add_seed(f"www.{anchor.split('/')[0] or 'a.test'}", "/docs/x?y=/z/") == anchor
    assert scopes[2].add_seed(anchor.split("/")[0] or "a.test", "/docs/") == "", "it is known"
    scopes[3].is_anchor("other.test")
    scopes[3].anchors |= scopes[0].anchors
    scopes[4].take_over(scopes[0])
    for scope in scopes:
        assert [scope.is_anchor(host) for host in anchors] == [True] * len(anchors)
        assert [scope.is_anchor(host) for host in others] == [False] * len(others)
        assert scope.anchors == ({anchor} if anchor else set())


@pytest.mark.parametrize("mode", ["host", "prefix"])
def test_the_partitions_of_an_anchor_are_those_of_its_host_and_its_www_variant(mode):
    """A domain may have hosts everywhere."""
    hosts = [f"h{number}.test" for number in range(20)]
    anchors = [f"{host}/docs/" if mode == "prefix" else host for host in hosts]
    parts = anchored_in(mode, anchors, layout_of(8))
    for host, anchor in zip(hosts, anchors, strict=True):
        keys = [parse_url(f"http://{name}/docs/").fingerprint for name in (host, f"www.{host}")]
        assert {number for number, part in parts.items() if anchor in part} == {partition_of(key, 8) for key in keys}
    assert all(len(part) == len(set(part)) for part in parts.values())
    assert anchored_in("domain", ["a.test"], layout_of(8)) == {number: ["a.test"] for number in range(8)}


async def test_what_many_jobs_remember_as_refused_has_one_bound(tmp_path, monkeypatch):
    """A thousand links outside of each of ten jobs: no more than the bound of one is remembered, none is admitted."""
    monkeypatch.setattr(admission, "REJECTED_LIMIT", 200)
    world = await World(tmp_path, lambda request: Answer()).start()
    names = [f"job{n}" for n in range(10)]
    for name in names:
        world.crawl(f"http://{name}.test/", job=name)
    for name in names:
        parent = parse_url(f"http://{name}.test/")
        request = FetchRequest(name, parent.fingerprint, parent.href)
        for page in range(10):
            links = [f"http://elsewhere.test/{page}/{n}" for n in range(100)]
            world.bus.publish(OUTLINKS, 0, links_of(request, links))
    jobs = world.scheduler.frontier.jobs.values()
    assert 0 < sum(len(job.refused.rejected) for job in jobs) <= 200
    assert all(len(job.seen) == 1 for job in jobs)
    await world.scheduler.close()
