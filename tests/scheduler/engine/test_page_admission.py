"""Admission by the native core and by Python: the same log, queues, seen set and counts for any pages."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st
from nephila import native
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_schema import MODES, Scope, Traps
from nephila.kernel.messages import Context, CrawlJob, LinkSource, Outlinks
from nephila.native import HostStore, Trie, parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine import admission
from nephila.scheduler.engine.admission import add_links, anchor_scope
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.link_scope import is_common
from nephila.scheduler.jobs.queue_entry import unpacked_rows
from nephila.scheduler.jobs.scope import CompiledScope
from nephila.scheduler.jobs.strategies import STRATEGIES

from tests.jobs import crawl_job
from tests.links import outlinks
from tests.scheduler.deployments import deployed

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "rust", reason="the Rust core is not built here")

HOSTS = [
    "a.test", "www.a.test", "b.a.test", "c.co.uk", "d.c.co.uk", "e.test:81", "[::1]", "10.0.0.1", "l" * 40 + ".test",
]  # fmt: skip
PATHS = [
    "/", "/x", "/blog/", "/blog/2024/a", "/blog/2024/b?x=1", "/shop/i?sid=1234567890abcdef", "/i;jsessionid=a1",
    "/shop/i?sid=7", "/(S(0123456789abcdef))/q", "/assess?session=1", "/login", "/blog/a/b/c/d", "/p?PHPSESSID=x",
    "/é?ü",
    "/long/" + "y" * 300,
]  # fmt: skip
PATTERNS = [r"/blog/", r"\.test", r"^https?://[^/]*a\.test/", r"(?i)/LOGIN", r"\d{4}", r"\pL", r"x=1$", r"(a|b)+c?"]
SEED = "https://a.test/blog/2024/seed"

links = st.builds(lambda host, path: f"https://{host}{path}", st.sampled_from(HOSTS), st.sampled_from(PATHS))
contexts = st.none() | st.just(Context()) | st.just(Context(session="s", stage="detail"))


@st.composite
def pages(draw: st.DrawFn) -> Outlinks:
    """A message of links, each once."""
    urls = draw(st.lists(links, unique=True, max_size=12))
    count = len(urls)
    parent = parse_url(draw(links))
    return outlinks(
        *urls,
        job="t",
        parent_key=parent.fingerprint,
        parent_url=draw(st.sampled_from([parent.href, ""])),
        depth=draw(st.integers(0, 4)),
        flags=bytes(draw(st.lists(st.sampled_from([0, 1, 12, 16, 32]), min_size=count, max_size=count))),
        priorities=bytes(draw(st.lists(st.integers(0, 255), min_size=count, max_size=count)))
        if draw(st.booleans())
        else b"",
        source=draw(st.sampled_from([LinkSource.UNSPECIFIED] * 4 + [LinkSource.FEED, LinkSource.SITEMAP])),
        parent_priority=draw(st.sampled_from([0, 3, 200, 255])),
        context=draw(contexts),
    )


specs = st.builds(
    lambda mode, include, exclude, depth, strategy, held, off: crawl_job(
        "t",
        "t",
        1,
        [SEED],
        Scope(mode=mode, include=include, exclude=exclude, max_depth=depth),
        strategy=strategy,
        host_budget=HostBudget(queued=held) if held else None,
        traps=Traps(off=off),
    ),
    st.sampled_from(list(MODES)),
    st.lists(st.sampled_from(PATTERNS), max_size=2),
    st.lists(st.sampled_from(PATTERNS), max_size=1),
    st.sampled_from([-1, 2]),
    st.sampled_from(list(STRATEGIES)),
    st.sampled_from([0, 0, 2]),
    st.booleans(),
)
steps = st.one_of(
    pages(),
    pages(),
    pages(),
    specs,
    st.tuples(st.just("anchor"), st.sampled_from(HOSTS)),
    st.tuples(st.just("spend"), st.sampled_from(HOSTS)),
    st.tuples(st.just("commit"), st.just("")),
    st.tuples(st.just("again"), st.just("")),
)


class Side:
    """A frontier that admits in one of the two ways."""

    def __init__(self, is_native: bool, one: PartitionSlice | None) -> None:
        self._native = is_native
        config = SchedulerConfig(partitions=4 if one is None else 1)
        self.frontier = Frontier(config, HostStore(), lambda number: Trie(), **deployed(one))
        self.frontier.begin_turn(100.0, 1_000_000.0)

    def put(self, spec: CrawlJob) -> None:
        put_job(self.frontier, spec)
        for job in self.frontier.jobs.values():
            if not self._native:
                job.scope.native = None

    def step(self, step: Any) -> Any:
        """Apply a step; returns what can be compared beyond the state."""
        frontier = self.frontier
        job = frontier.jobs.get("t")
        if isinstance(step, Outlinks):
            return add_links(frontier, step)
        if isinstance(step, CrawlJob):
            generation = job.spec.generation + 1 if job is not None else 1
            self.put(msgspec.structs.replace(step, generation=generation))
        elif step[0] == "anchor" and job is not None:
            anchor_scope(frontier, job, step[1], "/blog/x")
        elif step[0] == "spend" and job is not None:
            job.queue.over_budget_hosts[frontier.store.host(step[1])] = None
        elif step[0] == "commit":
            return [msgspec.msgpack.encode(commit) for commit in frontier.pending.commits()]
        elif step[0] == "again" and job is not None:
            spec = job.spec
            self.put(msgspec.structs.replace(spec, deleted=True))
            self.put(msgspec.structs.replace(spec, generation=1))
        return None

    def state(self) -> Any:
        """Everything that a page may change."""
        frontier, store = self.frontier, self.frontier.store
        frontier.pending.merge_rows()
        pending = [
            (commit.partition, msgspec.msgpack.encode(commit), unpacked_rows(commit.queued))
            for partition in frontier.partitions
            if (commit := partition.pending) is not None
        ]
        queues = [(store.name(n), n, job, store.items(n, job)) for n in sorted(store.ids()) for job, _ in store.jobs(n)]
        jobs = [
            (
                job.uid,
                job.seen.dump(),
                job.refused.rejected.dump(),
                job.refused.out_of_scope,
                sorted(job.refused.held.packed()),
                job.refused.held.lost,
                sorted(job.queue.waiting_hosts),
            )
            for job in frontier.jobs.values()
        ]
        novelty = [
            (host.key, host.changed, [(uid, tracker.pack()) for uid, tracker in host.novelty.items()])
            for host in frontier.hosts.hot.values()
        ]
        hosts = [(n, store.name(n)) for n in sorted(store.ids())]
        return pending, queues, jobs, novelty, hosts, store.scheduled(0), frontier.for_other_partitions


@pytest.mark.parametrize("one", [None, PartitionSlice(1, 4)])
@settings(max_examples=250, deadline=None)
@given(spec=specs, script=st.lists(steps, max_size=14), limit=st.sampled_from([2, 5, 1000]))
def test_the_core_and_python_admit_the_same(
    one: PartitionSlice | None, spec: CrawlJob, script: list[Any], limit: int
) -> None:
    """Both paths give the same log bytes, queues, seen and refused links, counts, novelty and host numbers."""
    sides = Side(True, one), Side(False, one)
    before, admission.REJECTED_LIMIT = admission.REJECTED_LIMIT, limit
    try:
        for side in sides:
            side.put(spec)
            anchor_scope(side.frontier, side.frontier.jobs["t"], "a.test", "/blog/2024/seed")
        for step in script:
            assert sides[0].step(step) == sides[1].step(step)
            assert sides[0].state() == sides[1].state()
    finally:
        admission.REJECTED_LIMIT = before


def test_a_link_of_another_partition_stays_there_when_refused_links_are_forgotten() -> None:
    """The set of refused links is cleared when it is full, also in the middle of a page."""
    parent = parse_url("https://a.test/")

    def page(*urls: str) -> Outlinks:
        return outlinks(*urls, job="t", parent_key=parent.fingerprint, parent_url=parent.href, flags=bytes(len(urls)))

    side = Side(True, PartitionSlice(1, 4))
    side.put(crawl_job("t", "t", 1, [SEED], Scope(max_depth=-1)))
    anchor_scope(side.frontier, side.frontier.jobs["t"], "a.test", "/blog/2024/seed")
    before, admission.REJECTED_LIMIT = admission.REJECTED_LIMIT, 2
    try:
        assert parent.fingerprint[0] >> 6 == 2
        side.step(page("https://a.test/", "https://a.test/x"))
        assert side.step(page("https://[::1]/", "https://a.test/")) == 0
    finally:
        admission.REJECTED_LIMIT = before
    assert not side.frontier.store.ids()


@pytest.mark.parametrize("is_native", [True, False])
def test_links_without_the_url_of_their_page_are_admitted(is_native: bool) -> None:
    """They say nothing of the parts of a site; those of a page on a known host do."""
    side = Side(is_native, None)
    side.put(crawl_job("t", "t", 1, [SEED], Scope(max_depth=-1)))
    anchor_scope(side.frontier, side.frontier.jobs["t"], "a.test", "/blog/2024/seed")

    def linked(parent_url: str, *urls: str) -> tuple[int, list[str]]:
        message = outlinks(*urls, job="t", parent_key=b"p" * 16, parent_url=parent_url, flags=bytes(len(urls)))
        admitted = add_links(side.frontier, message)
        return admitted, [host.key for host in side.frontier.hosts.hot.values() if host.novelty]

    assert linked("", "https://a.test/x", "https://a.test/y") == (2, [])
    side.frontier.hosts.get_or_create("a.test")
    assert linked("", "https://a.test/z") == (1, [])
    assert linked("https://a.test/", "https://a.test/1/2") == (1, ["a.test"])


def test_most_pages_take_the_native_path() -> None:
    """An ordinary page is admitted by the core: the differential test compares two ways, not one with itself."""
    side = Side(True, None)
    side.put(crawl_job("t", "t", 1, [SEED], Scope(mode="any", include=[r"\.test"], max_depth=-1)))
    job: Job = side.frontier.jobs["t"]
    assert job.scope.native is not None
    parts = parse_url("https://a.test/x")
    at = parts.href.index("a.test")
    message = Outlinks(
        "t", b"p" * 16, "https://a.test/", 1, parts.fingerprint, parts.href.encode(),
        array("I", [len(parts.href)]).tobytes(), array("I", [at, at + 6]).tobytes(), flags=b"\0",
    )  # fmt: skip
    assert add_links(side.frontier, message) == 1
    side.frontier.pending.merge_rows()
    pending = [partition.pending for partition in side.frontier.partitions if partition.pending is not None]
    packed = [item for commit in pending for item in commit.queued]
    assert [type(item) for item in packed] == [msgspec.Raw]


@settings(max_examples=400, deadline=None)
@given(
    pattern=st.text(alphabet=r"ab1/.*+?()[]{},|^$\dws-:=i_%&<~", max_size=12),
    urls=st.lists(st.text(alphabet="ab1/.:=i_%&-AB", max_size=12), min_size=1, max_size=8),
)
def test_common_patterns_mean_the_same(pattern: str, urls: list[str]) -> None:
    """Every pattern that counts as common matches the same text in RE2 and in the core."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        return
    scope = CompiledScope(Scope(mode="any", include=[pattern], max_depth=-1))
    if not is_common(pattern):
        assert scope.native is None
    if scope.native is not None:
        for url in urls:
            assert scope.native.admits(url, "a") == scope.decide(url, "a").admitted, (pattern, url)


@pytest.mark.parametrize("pattern", [r"\pL", r"(?P<x>a)", r"[[:alpha:]]", r"\<a", r"a&&b[a&&b]", r"\Qa\E", r"\x61"])
def test_other_patterns_are_left_to_re2(pattern: str) -> None:
    """Syntax that the two engines read differently has no native form."""
    assert not is_common(pattern)
