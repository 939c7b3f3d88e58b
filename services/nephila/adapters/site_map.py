"""The URLs of a site without fetching them all: links of one page, and the sitemaps that robots.txt names.

A job fetches the page and the sitemaps and follows nothing else; its links are the map.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import msgspec

from nephila.adapters.scrapes import WAIT_S, NotStored, WaitTimeout, url_key
from nephila.control import requests, screen_types
from nephila.control.api import Control, NotFound
from nephila.kernel.documents.job_document import crawl_job
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import sleep

MAX_DOCUMENTS: Final = 200
"""Sitemaps of one map at most, the page included."""
POLL_S: Final = 0.2
SITEMAP: Final = r"(?i)sitemap[^?]*\.(xml|txt)(\.gz)?([?]|$)"
"""Sitemaps that other sitemaps name."""


class FoundUrl(msgspec.Struct, kw_only=True, frozen=True):
    """A URL of the site."""

    url: str
    title: str
    """Text of the link; empty in sitemaps."""


async def site_map(
    control: Control, clock: Clock, url: str, *, search: str = "", limit: int = 1000, wait_s: float = WAIT_S
) -> list[FoundUrl]:
    """URLs of the site of a page, first those of the page, then those of the sitemaps, each once. `search`: part of
    the URL or of the link's text. Raises `NotStored`, `WaitTimeout`, and what the control API raises."""
    key = url_key(url)
    job = f"map-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    try:
        await control.delete_job(requests.JobName(name=job))
    except NotFound:
        pass
    applied = await control.apply_job(requests.ApplyJob(job=crawl_job(job, _spec(url))))
    if applied.refused:
        raise UserError(f"{url[:500]}: {applied.refused[0].reason}")
    deadline = clock.monotonic() + wait_s
    while True:
        status = (await control.get_job(requests.JobName(name=job))).status
        ended = status.stored + status.denied + status.failed + status.dropped
        if ended and not status.queued and not status.in_flight:
            break
        if clock.monotonic() >= deadline:
            if not status.stored:
                raise WaitTimeout(f"{url[:500]} has not ended in time: the job {job} is {status.state}")
            break
        await sleep(clock, POLL_S)
    return await _links(control, job, key, search.lower(), limit)


async def _links(control: Control, job: str, key: str, search: str, limit: int) -> list[FoundUrl]:
    rows = (await control.list_pages(screen_types.ListPages(job=job, limit=200))).pages
    rows.sort(key=lambda row: row.url_key != key)
    found: dict[str, FoundUrl] = {}
    for row in rows:
        if row.outcome != "stored":
            if row.url_key == key and row.reason != "redirect":
                raise NotStored(row)
            continue
        detail = await control.get_page(screen_types.GetPage(url=row.url, job=job))
        for link in detail.links:
            if search in link.url.lower() or search in link.text.lower():
                found.setdefault(link.url, FoundUrl(url=link.url, title=link.text))
            if len(found) >= limit:
                return list(found.values())
    return list(found.values())


def _spec(url: str) -> dict[str, Any]:
    bounds = {
        "mode": "domain",
        "include": [f"^{re.escape(url)}/?$", SITEMAP],
        "maxDepth": 3,
        "maxPages": MAX_DOCUMENTS,
    }
    return {"seeds": [url], "scope": bounds, "sitemaps": True, "links": True}
