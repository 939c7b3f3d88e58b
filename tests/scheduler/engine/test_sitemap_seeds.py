"""Which sitemaps a job with `sitemaps` asks a site for."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import JobSpec, Mode, Scope
from nephila.kernel.net.robots import Robots, parse
from nephila.native import HostStore
from nephila.scheduler.engine.sitemap_seeds import MAX_SITEMAPS, sitemap_seeds
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.seen import new_seen

from tests.jobs import crawl_job

WANTED = JobSpec(sitemaps=True)


def asked(robots: str | None, job: JobSpec = WANTED) -> list[str]:
    """URLs for https://a.test:8443."""
    parsed: Robots | None = None if robots is None else parse(robots.encode())
    return [parts.href for parts in sitemap_seeds(job, "https://a.test:8443", parsed)]


@pytest.mark.parametrize(
    ("mode", "yes", "no"),
    [
        ("any", "a.test", "www.a.test"),
        ("host", "www.a.test", "b.a.test"),
        ("domain", "a.test", "b.test"),
        ("prefix", "a.test", "b.a.test"),
    ],
)
def test_of_the_hosts_of_seeds_alone(mode: Mode, yes: str, no: str) -> None:
    """Whatever the scope and however the seed is spelled; a pattern for pages does not stand in the way."""
    seeds = ["HTTP://A.test:80/x/y", "http://c.test/"]
    spec = crawl_job(uid="j", seeds=seeds, scope=Scope(mode=mode, include=["page"], max_depth=0), sitemaps=True)
    job = Job(spec, 0, HostStore(""), new_seen("", 0))
    job.scope.add_seed("a.test", "/x/y")
    assert job.is_seed_host(yes)
    assert not job.is_seed_host(no)
    assert job.is_seed_host("c.test") == (mode == "any")
    job.scope.add_seed("c.test", "/")
    job.scope.anchors.add("d.test/" if mode == "prefix" else "d.test")
    assert job.is_seed_host("c.test")
    assert job.is_seed_host("d.test") == (mode != "any")


def test_only_for_jobs_that_want_them() -> None:
    """The default is to crawl what was asked for."""
    assert asked("Sitemap: https://a.test/s.xml", JobSpec()) == []


@pytest.mark.parametrize(
    "robots", [None, "", "User-agent: *\nDisallow:", "Sitemap:\nSitemap: /s.xml\nSitemap: ftp://a/"]
)
def test_the_usual_place_when_none_is_named(robots: str | None) -> None:
    """No robots.txt, one that names none, or none that can be fetched."""
    assert asked(robots) == ["https://a.test:8443/sitemap.xml"]


def test_those_that_are_named() -> None:
    """Each once by its canonical form, on other hosts as well: to name it is to vouch for it."""
    text = "Sitemap: https://a.test/s.xml#x\nsitemap: https://a.test:443/s.xml\nSitemap: http://Maps.test/é.xml?b&a\n"
    text += "Sitemap: relative.xml\nSitemap: http://a.test/" + "x" * 9000
    assert asked(text) == ["https://a.test/s.xml", "http://maps.test/%C3%A9.xml?b&a"]


def test_a_thousand_are_not_all_taken() -> None:
    """The first hundred; lines that are no address do not count."""
    address_queue = [f"Sitemap: {'/rel' if n % 2 else 'http://a.test'}/{n}.xml" for n in range(1000)]
    assert asked("\n".join(address_queue)) == [f"http://a.test/{n}.xml" for n in range(0, 2 * MAX_SITEMAPS, 2)]


def test_userinfo_of_a_sitemap_is_dropped() -> None:
    """A robots.txt has no credentials to give."""
    assert asked("Sitemap: https://u:p@b.test/s.xml") == ["https://b.test/s.xml"]
