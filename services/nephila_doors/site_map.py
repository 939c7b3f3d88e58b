"""The URLs of a site without fetching them all: links of one page, and the sitemaps that robots.txt names.

A job fetches the page and the sitemaps and follows nothing else; its links are the map.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final, Literal

import msgspec
from nephila.kernel.documents.job_document import crawl_job
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.net.public_suffix import registrable_domain
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.waits import sleep
from nephila.kernel.seeds import url_errors
from nephila_control import job_types, screen_types
from nephila_control.api import Control, NotFound

from nephila_doors.scrapes import WAIT_S, NotStored, WaitTimeout, absolute_url, url_key

MAX_DOCUMENTS: Final = 200
"""Sitemaps of one map at most, the page included."""
POLL_S: Final = 0.2
SITEMAP: Final = r"(?i)sitemap[^?]*\.(xml|txt)(\.gz)?([?]|$)"
"""Sitemaps that other sitemaps name."""


class FoundUrl(msgspec.Struct, kw_only=True, frozen=True):
    url: str
    title: str
    """Title of the page, else the text of the link; empty in sitemaps."""


class MapRequest(msgspec.Struct, kw_only=True, frozen=True):
    url: str
    search: str = ""
    """Part of the URL or of the link's text."""
    limit: int = 1000
    wait_s: float = WAIT_S
    sitemap: Literal["include", "skip", "only"] = "include"
    subdomains: bool = True
    """True takes all hosts of the registrable domain, False the host and its www variant."""


async def site_map(control: Control, clock: Clock, request: MapRequest) -> list[FoundUrl]:
    """Returns URLs of the site of a page: the page, those of its links, then those of the sitemaps, each once. URLs of
    other sites are left out. Raises `NotStored`, `WaitTimeout`, and the errors of the control API."""
    url = absolute_url(request.url)
    key = url_key(url)
    job = f"map-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    try:
        await control.delete_job(job_types.JobName(name=job))
    except NotFound:
        pass
    applied = await control.apply_job(job_types.ApplyJob(job=crawl_job(job, _spec(url, request))))
    if applied.refused:
        raise UserError(f"{url[:500]}: {applied.refused[0].reason}")
    deadline = clock.monotonic() + request.wait_s
    while True:
        status = (await control.get_job(job_types.JobName(name=job))).status
        if status.has_ended:
            break
        if clock.monotonic() >= deadline:
            if not status.stored:
                raise WaitTimeout(f"{url[:500]} has not ended in time: the job {job} is {status.state}")
            break
        await sleep(clock, POLL_S)
    return await _links(control, job, url, key, request)


async def _links(control: Control, job: str, url: str, key: str, request: MapRequest) -> list[FoundUrl]:
    site = _Site(url, request.subdomains)
    rows = (await control.list_pages(screen_types.ListPages(job=job, limit=200))).pages
    rows.sort(key=lambda row: row.url_key != key)
    urls: dict[str, FoundUrl] = {}
    for row in rows:
        if row.outcome != "stored":
            if row.url_key == key and row.reason != Reason.REDIRECT:
                raise NotStored(row)
            continue
        detail = await control.get_page(screen_types.GetPage(url=row.url, job=job))
        is_list = "list" in detail.meta
        # An earlier map of the page may have left rows of sitemaps.
        if request.sitemap == ("skip" if is_list else "only"):
            continue
        page = [] if is_list else [(row.url, row.title)]
        for address, title in (*page, *((link.url, link.text) for link in detail.links)):
            if site.has(address) and _mentions(request.search, address, title):
                urls.setdefault(address, FoundUrl(url=address, title=title))
            if len(urls) >= request.limit:
                return list(urls.values())
    return list(urls.values())


def _mentions(search: str, url: str, title: str) -> bool:
    return search.lower() in url.lower() or search.lower() in title.lower()


def _host_of(url: str) -> str:
    """Returns the host of a URL without www. Raises `UsageError`."""
    with url_errors(url):
        return parse_routed(url).host_key.removeprefix("www.")


class _Site:
    def __init__(self, url: str, subdomains: bool) -> None:
        self._host = _host_of(url)
        self._domain = registrable_domain(self._host) if subdomains else ""

    def has(self, url: str) -> bool:
        """Returns whether a URL belongs to the site; False for URLs that are no page of the web."""
        try:
            host = _host_of(url)
        except UsageError:
            return False
        if not self._domain or host == self._host:
            return host == self._host
        return registrable_domain(host) == self._domain or host.endswith(f".{self._host}")


def _spec(url: str, request: MapRequest) -> dict[str, Any]:
    bounds = {
        "mode": "domain",
        "include": [f"^{re.escape(url)}/?$", SITEMAP],
        "maxDepth": 3,
        "maxPages": MAX_DOCUMENTS,
    }
    return {"seeds": [url], "scope": bounds, "sitemaps": request.sitemap != "skip", "links": True}
