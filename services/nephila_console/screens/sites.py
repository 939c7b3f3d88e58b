"""The screen of sites answers which lists bring news, which are broken, and what a page costs. Broken lists come
first."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from nephila_control import job_types, requests, site_types
from starlette.responses import Response

from nephila_console.screens.attention import optional
from nephila_console.view import View

SHOWN: Final = 100
"""Lists on one screen."""


class ListRow(NamedTuple):
    """A row stands for a list of a site, or for a site without lists."""

    site: site_types.Directory
    list: site_types.ListState | None
    cost: float
    """Fetches for each stored page of the job; 0 if none is stored."""

    @property
    def broken(self) -> bool:
        return self.list.fault if self.list is not None else bool(self.site.why)

    @property
    def news(self) -> int:
        """Number of new pages and recorded links of the last run."""
        return self.site.new_pages + self.site.recorded

    @property
    def order(self) -> tuple[bool, bool, str, str]:
        """Broken rows come first, then those without news."""
        return not self.broken, self.news > 0, self.site.name, self.list.url if self.list is not None else ""


async def sites(view: View) -> Response:
    """GET /console/sites"""
    listed, jobs = await asyncio.gather(
        optional(view.control.list_directories(requests.Empty())), view.control.list_jobs(job_types.ListJobs())
    )
    directories = listed.directories if listed is not None else []
    rows = sorted(rows_of(directories, jobs.jobs), key=lambda row: row.order)
    query = {"q": view.field("q").strip()[:500], "broken": "1" if view.field("broken") else ""}
    chosen = [row for row in rows if _fits(row, query["q"].lower()) and (row.broken or not query["broken"])]
    skip = min(view.number("skip"), len(chosen))
    return view.render(
        "sites.html",
        sites=len(directories),
        lists=sum(len(directory.lists) for directory in directories),
        broken=sum(row.broken for row in rows),
        silent=sum(not directory.new_pages + directory.recorded for directory in directories),
        rows=chosen[skip : skip + SHOWN],
        skip=skip,
        next=skip + SHOWN if len(chosen) > skip + SHOWN else 0,
        query=query,
    )


def rows_of(directories: list[site_types.Directory], jobs: list[job_types.Job]) -> list[ListRow]:
    costs = {job.name: (job.stored + job.denied + job.failed + job.dropped) / job.stored for job in jobs if job.stored}
    return [
        ListRow(directory, entry, costs.get(directory.name, 0.0))
        for directory in directories
        for entry in (directory.lists or (None,))
    ]


def _fits(row: ListRow, text: str) -> bool:
    return text in row.site.name.lower() or (row.list is not None and text in row.list.url.lower())
