"""The screen of sites answers which lists bring news, which are broken, and what a page costs. Broken ones come first.

A row is a directory of a site. With `edit` its settings are fields, and the form of all rows is previewed before it is
applied (`site_changes.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from nephila_control import job_types, requests, site_types
from starlette.responses import Response

from nephila_console import site_plan
from nephila_console.screens.attention import optional
from nephila_console.view import View

SHOWN: Final = 100
"""Rows on one screen."""
EDITED: Final = 40
"""Rows on one screen whose cells are fields."""
COSTLY: Final = 5.0
"""Fetches for each stored page above which a directory is costly."""
CHANGED_S: Final = 86_400.0
"""Age of the last news of a directory that counts as changed."""


class SiteRow(NamedTuple):
    """A row stands for a directory, or for a site without directories."""

    name: str
    """Name of the job, or of the site."""
    directory: site_types.Directory | None
    cost: float = 0.0
    """Fetches for each stored page of the job; 0 if none is stored."""

    @property
    def faults(self) -> list[site_types.ListState]:
        return [entry for entry in self.directory.lists if entry.fault] if self.directory is not None else []

    @property
    def broken(self) -> bool:
        return bool(self.faults) or (self.directory is not None and bool(self.directory.why))

    @property
    def news(self) -> int:
        """Number of new pages and recorded links of the last run."""
        return self.directory.new_pages + self.directory.recorded if self.directory is not None else 0

    @property
    def links(self) -> int:
        return sum(entry.links for entry in self.directory.lists) if self.directory is not None else 0

    @property
    def silent(self) -> bool:
        return self.directory is not None and bool(self.directory.last_run) and not self.news


def _score(row: SiteRow) -> float:
    return row.directory.score if row.directory is not None else 0.0


def _text_of(name: str) -> Callable[[SiteRow], str]:
    return lambda row: getattr(row.directory, name) if row.directory is not None else ""


ORDERS: Final[Mapping[str, Callable[[SiteRow], Any]]] = {
    "": lambda row: (not row.broken, not row.silent),
    "name": lambda row: row.name,
    "news": lambda row: -row.news,
    "days": lambda row: -sum(row.directory.days) if row.directory is not None else 0,
    "changed": lambda row: _newest(row, "news_at"),
    "last": lambda row: _newest(row, "last_run"),
    "next": lambda row: _text_of("next_run")(row) or "~",
    "cost": lambda row: -row.cost,
    "frequency": _text_of("frequency"),
    "score": lambda row: -_score(row),
}
"""Name of an order → its key; rows that are equal are in the order of their names."""


def _newest(row: SiteRow, name: str) -> float:
    return -instant(_text_of(name)(row))


VIEWS: Final[Mapping[str, Callable[[SiteRow], bool]]] = {
    "": lambda row: True,
    "broken": lambda row: row.broken,
    "silent": lambda row: row.silent,
    "changed": lambda row: instant(_text_of("news_at")(row)) > time.time() - CHANGED_S,
    "costly": lambda row: row.cost > COSTLY,
    "paused": lambda row: row.directory is not None and row.directory.paused,
}


async def sites(view: View) -> Response:
    """GET /console/sites"""
    return await grid(view)


async def grid(
    view: View, *, status: int = 200, problems: Sequence[str] = (), cells: Mapping[str, str] | None = None
) -> Response:
    """`cells` are fields of a form that was refused; they stay as they were typed."""
    edit = bool(view.field("edit")) and may_edit(view)
    listed, jobs, documents = await asyncio.gather(
        optional(view.control.list_directories(requests.Empty())),
        view.control.list_jobs(job_types.ListJobs()),
        _documents(view) if edit else _nothing(),
    )
    rows = rows_of(listed.directories if listed is not None else [], jobs.jobs)
    rows += [SiteRow(site.name, None) for site in documents if not site_plan.directories_of(site)]
    query = {
        "q": view.field("q").strip()[:500],
        "only": view.field("only") if view.field("only") in VIEWS else "",
        "sort": view.field("sort") if view.field("sort") in ORDERS else "",
        "edit": "1" if edit else "",
    }
    chosen = [row for row in rows if VIEWS[query["only"]](row) and query["q"].lower() in searched(row)]
    chosen.sort(key=lambda row: (ORDERS[query["sort"]](row), row.name))
    step = EDITED if edit else SHOWN
    skip = min(view.number("skip"), max(len(chosen) - 1, 0) // step * step)
    page = chosen[skip : skip + step]
    return view.render(
        "sites.html",
        status,
        rows=page,
        total=len(rows),
        matching=len(chosen),
        lists=sum(len(row.directory.lists) for row in rows if row.directory is not None),
        counts={name: sum(map(belongs, rows)) for name, belongs in VIEWS.items()},
        skip=skip,
        next=skip + step if len(chosen) > skip + step else 0,
        before=max(skip - step, 0),
        query=query,
        problems=problems,
        columns=site_plan.COLUMNS,
        can_edit=may_edit(view),
        cells=_cells(page, documents, cells or {}) if edit else {},
        etags=_etags(page, documents) if edit else {},
        sites=[site.name for site in documents],
        typed=cells or {},
    )


def may_edit(view: View) -> bool:
    return view.may("apply_sites") and view.lacks("write") is None


async def _documents(view: View) -> list[site_types.Site]:
    listed = await optional(view.control.list_sites(requests.Empty()))
    return listed.sites if listed is not None else []


async def _nothing() -> list[site_types.Site]:
    return []


def rows_of(directories: list[site_types.Directory], jobs: list[job_types.Job]) -> list[SiteRow]:
    costs = {job.name: (job.stored + job.denied + job.failed + job.dropped) / job.stored for job in jobs if job.stored}
    return [SiteRow(directory.name, directory, costs.get(directory.name, 0.0)) for directory in directories]


def searched(row: SiteRow) -> str:
    lists = [entry.url for entry in row.directory.lists] if row.directory is not None else []
    texts = [row.directory.country, row.directory.type] if row.directory is not None else []
    return "\n".join([row.name, *lists, *texts]).lower()


def instant(text: str) -> float:
    """Reads an instant of the API; 0 for none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


class Cell(NamedTuple):
    text: str
    """Text of the field: the own setting, or what a person has typed."""
    own: str
    """Setting of the directory in effect; empty if it is inherited."""
    inherited: str
    """Value in effect, if the directory does not give it."""


def _cells(
    rows: Sequence[SiteRow], sites: Sequence[site_types.Site], typed: Mapping[str, str]
) -> dict[str, dict[str, Cell]]:
    parts = {job: part for site in sites for job, part in site_plan.directories_of(site).items()}
    return {row.name: _cells_of(row, parts[row.name], typed) for row in rows if row.name in parts}


def _cells_of(row: SiteRow, part: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, Cell]:
    cells = {}
    for column in site_plan.COLUMNS:
        own = site_plan.cell(part, column.key)
        effective = getattr(row.directory, column.key, "")
        inherited = "" if own else site_plan.cell({"value": effective}, "value")
        cells[column.key] = Cell(typed.get(f"{column.key}@{row.name}", own), own, inherited)
    return cells


def _etags(rows: Sequence[SiteRow], sites: Sequence[site_types.Site]) -> dict[str, str]:
    """Maps each site with a row on the screen to the etag of its document."""
    names = {row.name for row in rows}
    return {
        site.name: site.etag for site in sites if site.name in names or names & site_plan.directories_of(site).keys()
    }
