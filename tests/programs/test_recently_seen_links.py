"""A link that was sent is not sent again, except where somebody needs it again."""

from __future__ import annotations

import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.budget_schema import DomainBudget, HostBudget
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.pages.chosen_links import only
from nephila.kernel.runtime.clock import ManualClock
from nephila.native import parse_url
from nephila.programs.recently_seen import FOUND_AGAIN_S, RecentLinks

from tests.jobs import crawl_job
from tests.links import outlinks, urls_of


def job(uid: str = "j", **settings: object) -> m.CrawlJob:
    """A job whose links may be left out."""
    return crawl_job(uid, scope=Scope(max_depth=-1), **settings)


@pytest.fixture
def recent() -> RecentLinks:
    """A cache that knows the job."""
    found = RecentLinks(ManualClock())
    found.job(job())
    return found


def test_the_second_time_a_link_is_left_out(recent):
    """What is new stays, whole and in order; a message without links is not sent at all."""
    first = outlinks("http://a/1", "http://a/2")
    assert recent.filter(first) is first
    left = recent.filter(
        outlinks("http://a/2", "http://b:81/3?q=ü", "http://a/1", "http://a/4", priorities=bytes(range(4)))
    )
    assert urls_of(left) == ["http://b:81/3?q=%C3%BC", "http://a/4"]
    assert left.priorities == bytes([1, 3])
    assert recent.filter(outlinks("http://a/4", "http://a/1")) is None
    assert recent.left_out == 4


def test_what_is_left_is_packed_as_the_parser_packs_it():
    """Every buffer of the rest equals that of a message made of these links alone."""
    urls = [f"http://h{n}.example/{'x' * n}?n={n}" for n in range(20)]
    chosen = [0, 3, 4, 11, 19]
    whole = outlinks(*urls, anchors=[f"text {n}" for n in range(20)], flags=bytes(range(20)))
    part = only(whole, chosen)
    assert part == outlinks(*[urls[n] for n in chosen], anchors=[f"text {n}" for n in chosen], flags=bytes(chosen))
    assert [parse_url(url).fingerprint for url in urls_of(part)] == [
        part.fingerprints[16 * n : 16 * n + 16] for n in range(5)
    ]


def test_jobs_are_apart(recent):
    """A link is new to every job once."""
    recent.job(job("other"))
    assert recent.filter(outlinks("http://a/1")) is not None
    assert recent.filter(outlinks("http://a/1", job="other")) is not None
    assert recent.filter(outlinks("http://a/1", job="other")) is None


@pytest.mark.parametrize(
    "needs",
    [{"host_budget": HostBudget(queued=5)}, {"host_budget": HostBudget(pages=5)}],
)
def test_jobs_that_need_every_link_get_it(needs):
    """A link that a host's budget refused may be wanted when it is found again."""
    recent = RecentLinks(ManualClock())
    recent.job(job(**needs))
    for _ in range(2):
        assert recent.filter(outlinks("http://a/1")) is not None


def test_a_job_with_budgets_of_domains_learns_which_domain_links_to_which_host():
    """A known link is sent once more from the first page of each domain that links to its host."""
    recent = RecentLinks(ManualClock())
    recent.job(crawl_job("j", scope=Scope(mode="any", max_depth=-1), domains=DomainBudget(2)))
    links = ("http://a.example/1", "http://a.example/2", "http://b.example/1")
    assert recent.filter(outlinks(*links, parent_url="http://www.one.example/")) is not None
    assert recent.filter(outlinks(*links, parent_url="http://one.example/other")) is None
    part = recent.filter(outlinks(*links[:2], "http://a.example/3", parent_url="http://two.example/"))
    assert urls_of(part) == ["http://a.example/1", "http://a.example/2", "http://a.example/3"]
    part = recent.filter(outlinks(*links, parent_url="http://two.example/more"))
    assert urls_of(part) == ["http://b.example/1"]
    assert recent.filter(outlinks(*links, parent_url="http://two.example/")) is None


def test_a_link_to_a_domain_over_its_budget_is_found_again_later():
    clock = ManualClock()
    recent = RecentLinks(clock)
    recent.job(crawl_job("j", scope=Scope(mode="any", max_depth=-1), domains=DomainBudget(2)))
    for _ in range(2):
        assert recent.filter(outlinks("http://a/1")) is not None
        assert recent.filter(outlinks("http://a/1")) is None
        clock.advance(FOUND_AGAIN_S + 1)


def test_a_budget_without_a_limit_needs_no_link_twice():
    """The command line writes no time as "0s", a document without it has "0"."""
    recent = RecentLinks(ManualClock())
    recent.job(job(host_budget=HostBudget(time="0s")))
    assert recent.filter(outlinks("http://a/1")) is not None
    assert recent.filter(outlinks("http://a/1")) is None


def test_messages_that_say_more_than_a_link_are_sent(recent):
    """Dates of a sitemap tell what has changed; and a job that is not known here yet decides nothing."""
    for message in (
        outlinks("http://a/1", lastmods=bytes(8)),
        outlinks("http://a/1", source=m.LinkSource.FEED),
        outlinks("http://a/1", job="unknown"),
    ):
        assert recent.filter(message) is message
        assert recent.filter(message) is message


def test_a_changed_job_and_a_wider_scope_begin_anew(recent):
    """What the old scope refused may be in the new one."""
    for forget in (lambda: recent.job(job(generation=2)), lambda: recent.forget("j")):
        recent.filter(outlinks("http://a/1"))
        assert recent.filter(outlinks("http://a/1")) is None
        forget()
        assert recent.filter(outlinks("http://a/1")) is not None
    recent.job(m.CrawlJob("j", deleted=True))
    recent.forget("j")
    for _ in range(2):
        assert recent.filter(outlinks("http://a/1")) is not None


def test_a_link_that_was_too_deep_is_sent_when_it_is_found_nearer():
    """One step too deep, it is sent once, for the scheduler to hold; deeper, it is neither sent nor remembered."""
    recent = RecentLinks(ManualClock())
    recent.job(crawl_job("j", scope=Scope(max_depth=2)))
    assert recent.filter(outlinks("http://a/1", depth=4)) is None
    assert recent.filter(outlinks("http://a/1", depth=3)) is not None
    assert recent.filter(outlinks("http://a/1", depth=3)) is None
    assert recent.filter(outlinks("http://a/1", depth=2)) is not None
    assert recent.filter(outlinks("http://a/1", depth=1)) is None


def test_memory_is_two_generations():
    """What was not seen for two generations is sent again; what is seen again stays known."""
    recent = RecentLinks(ManualClock(), keys=10)
    recent.job(job())
    recent.filter(outlinks("http://a/first"))
    for number in range(9):
        recent.filter(outlinks(f"http://a/{number}"))
    recent.filter(outlinks("http://a/young"))
    assert recent.filter(outlinks("http://a/first")) is None
    for number in range(20, 40):
        recent.filter(outlinks(f"http://a/{number}"))
    assert recent.filter(outlinks("http://a/first")) is not None
