"""Deaths of pods on a cluster without volumes: a new broker has no topics, a new database no tables."""

from __future__ import annotations

import time

from tests.cluster.release import Release
from tests.cluster.sections import finish, start
from tests.cluster.web import Web

ORDER = ("scheduler", "downloader", "parser", "storage", "api", "operator", "postgres", "kafka")
"""The broker is the last one: jobs of CrawlJobs start over then, and all rows come back."""


def losses(release: Release, web: Web) -> None:
    """Every component is killed in turn without a StorageClass, and the crawl goes on each time."""
    began = time.monotonic()
    release.install()
    release.step("helm install --wait", began)
    crawl = start(release, web)
    for component in ORDER:
        release.kill(component)
        began, before = time.monotonic(), len(web.requests())
        goes_on = release.until(lambda before=before: len(web.requests()) > before + len(web.hosts), 300)
        release.step(f"until further pages are fetched, after {component}", began, f"{release.rows():,} rows")
        release.rule(f"the crawl goes on after {component}", float(goes_on), 1)
    finish(release, web, crawl)
