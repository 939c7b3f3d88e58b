"""Sites: which lists bring news, which are broken, what does a page cost? One table, the broken ones first."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from nephila_control import job_types, requests, site_types
from starlette.responses import Response

from nephila_console.screens.attention import optional
from nephila_console.view import View

SHOWN: Final = 100
"""Lists on one screen."""


class Row(NamedTuple):
    """A list of a site, or a site without one."""

    site: site_types.Directory
    list: site_types.ListState | None
    cost: float
    """Fetches for each stored page, of the whole job; 0: none is stored."""

    @property
    def broken(self) -> bool:
        """Whether it needs a person."""
        return self.list.fault if self.list is not None else bool(self.site.why)

    @property
    def news(self) -> int:
        """New pages and recorded links of the last run."""
        return self.site.new_pages + self.site.recorded

    @property
    def order(self) -> tuple[bool, bool, str, str]:
        """Broken ones first, then those without news."""
        return not self.broken, self.news > 0, self.site.name, self.list.url if self.list is not None else ""


async def sites(view: View) -> Response:
    """GET /console/sites"""
    found, jobs = await asyncio.gather(
        optional(view.control.list_directories(requests.Empty())), view.control.list_jobs(requests.Empty())
    )
    directories = found.directories if found is not None else []
    rows = sorted(rows_of(directories, jobs.jobs), key=lambda row: row.order)
    asked = {"q": view.field("q").strip()[:500], "broken": "1" if view.field("broken") else ""}
    chosen = [row for row in rows if _fits(row, asked["q"].lower()) and (row.broken or not asked["broken"])]
    skip = min(view.number("skip"), len(chosen))
    return view.render(
        "sites.html",
        sites=len(directories),
        lists=sum(len(one.lists) for one in directories),
        broken=sum(row.broken for row in rows),
        silent=sum(not one.new_pages + one.recorded for one in directories),
        rows=chosen[skip : skip + SHOWN],
        skip=skip,
        next=skip + SHOWN if len(chosen) > skip + SHOWN else 0,
        asked=asked,
    )


def rows_of(directories: list[site_types.Directory], jobs: list[job_types.Job]) -> list[Row]:
    """The rows of all sites."""
    costs = {job.name: (job.stored + job.denied + job.failed + job.dropped) / job.stored for job in jobs if job.stored}
    return [
        Row(directory, one, costs.get(directory.name, 0.0))
        for directory in directories
        for one in (directory.lists or (None,))
    ]


def _fits(row: Row, text: str) -> bool:
    return text in row.site.name.lower() or (row.list is not None and text in row.list.url.lower())
