"""Which sitemaps a job with `sitemaps` asks a site for."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import CrawlJob
from nephila.kernel.robots import Robots, parse
from nephila.scheduler.sources import MAX_SITEMAPS, sitemap_seeds

WANTED = CrawlJob(uid="j", sitemaps=True)


def asked(robots: str | None, job: CrawlJob = WANTED) -> list[str]:
    """URLs for https://a.test:8443."""
    parsed: Robots | None = None if robots is None else parse(robots.encode())
    return [parts.href for parts in sitemap_seeds(job, "https://a.test:8443", parsed)]


def test_only_for_jobs_that_want_them() -> None:
    """The default is to crawl what was asked for."""
    assert asked("Sitemap: https://a.test/s.xml", CrawlJob(uid="j")) == []


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
    lines = [f"Sitemap: {'/rel' if n % 2 else 'http://a.test'}/{n}.xml" for n in range(1000)]
    assert asked("\n".join(lines)) == [f"http://a.test/{n}.xml" for n in range(0, 2 * MAX_SITEMAPS, 2)]
