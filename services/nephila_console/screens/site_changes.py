"""Changes of sites by the grid or by a table (CSV): each is previewed with its differences, and applied as a whole.

No edit is lost: a refused form is shown again as it was typed, and a site that somebody else has changed since is
refused by its etag.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterable, Mapping
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila_control import requests, site_types
from nephila_control.api import Forbidden
from nephila_harvest.sites import csv_table, site_documents
from starlette.responses import Response

from nephila_console import site_plan
from nephila_console.messages import translate as _
from nephila_console.screens.sites import grid, may_edit
from nephila_console.site_plan import Plan, RowChange
from nephila_console.view import View, go
from nephila_console.words import path

TABLE: Final = "table"
"""Name of a table in its errors, as table:LINE:COLUMN."""
SHOWN: Final = 500
"""Differences of one preview that are shown."""
PROBLEMS: Final = 100
"""Mistakes of a table that are shown."""
_PLACE = re.compile(r"^sites\[(\d+)\][^:]*: (?:spec\.?(?:directories\[(\d+)\]\.?)?)?")


async def preview_grid(view: View) -> Response:
    """POST /console/sites?edit=1"""
    sites = await _sites(view)
    plan = Plan([], [], {})
    try:
        plan = site_plan.from_cells(sites, view.form)
        effects = await _previewed(view, plan)
    except UserError as error:
        return await grid(view, status=400, problems=_lines(error, plan), cells=view.form)
    return _preview(view, sites, plan, effects, {})


async def show_table(view: View) -> Response:
    """GET /console/sites/table"""
    return _table(view)


async def preview_table(view: View) -> Response:
    """POST /console/sites/table"""
    sites = await _sites(view)
    plan = Plan([], [], {})
    try:
        documents = await asyncio.to_thread(csv_table.load, view.form.get("text", "").encode(), TABLE)
        contents = [document.content for document in site_documents.distinct(documents)]
        plan = site_plan.from_table(sites, contents, delete_others=bool(view.form.get("delete_others")))
        effects = await _previewed(view, plan)
    except UserError as error:
        return _table(view, 400, _lines(error, plan))
    return _preview(view, sites, plan, effects, dict(_line_numbers(documents)))


async def apply(view: View) -> Response:
    """POST /console/sites/apply"""
    plan = site_plan.unpacked(view.form.get("plan", ""))
    await view.control.apply_sites(plan.request)
    return go(path("sites", notice="changed"))


async def csv(view: View) -> Response:
    """GET /console/sites.csv: the table of `nephila sites export`."""
    stream = io.StringIO()
    csv_table.write(stream, [site_documents.from_json(site.document) for site in await _sites(view)])
    headers = {"content-disposition": 'attachment; filename="sites.csv"'}
    return Response(stream.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


async def _sites(view: View) -> list[site_types.Site]:
    return (await view.control.list_sites(requests.Empty())).sites


async def _previewed(view: View, plan: Plan) -> list[site_types.SiteChange]:
    """Raises `UserError`."""
    if not plan.documents and not plan.deleted:
        return []
    return (await view.control.preview_sites(plan.request)).sites


def _preview(
    view: View,
    sites: list[site_types.Site],
    plan: Plan,
    effects: list[site_types.SiteChange],
    lines: Mapping[str, int],
) -> Response:
    changes = site_plan.differences(sites, plan, lines)
    return view.render(
        "sites_preview.html",
        changes=changes[:SHOWN],
        total=len(changes),
        counts={verdict: _count(changes, verdict) for verdict in ("created", "changed", "deleted")},
        running=[name for effect in effects for name in effect.running],
        plan=site_plan.packed(plan),
        with_lines=bool(lines),
    )


def _count(changes: Iterable[RowChange], verdict: str) -> int:
    return sum(change.verdict == verdict for change in changes)


def _table(view: View, status: int = 200, problems: list[str] | None = None) -> Response:
    if not may_edit(view):
        raise Forbidden(_("Sites cannot be changed here."))
    return view.render(
        "sites_table.html",
        status,
        problems=(problems or [])[:PROBLEMS],
        total=len(problems or []),
        text=view.form.get("text", ""),
        delete_others=bool(view.form.get("delete_others")),
        columns=csv_table.COLUMNS,
    )


def _lines(error: UserError, plan: Plan) -> list[str]:
    """Returns the mistakes as lines with names of sites and directories instead of places in the request."""
    return [_named(str(mistake), plan) for mistake in (error, *getattr(error, "others", ()))]


def _named(text: str, plan: Plan) -> str:
    match = _PLACE.match(text)
    if match is None or int(match[1]) >= len(plan.documents):
        return text
    document = plan.documents[int(match[1])]
    name = document["metadata"]["name"]
    if match[2] is not None:
        name = f"{name}.{document['spec']['directories'][int(match[2])]['name']}"
    return f"{name}: {text[match.end() :]}"


def _line_numbers(sites: Iterable[site_documents.SiteDocument]) -> Iterable[tuple[str, int]]:
    for site in sites:
        yield site.name, _line(site.location)
        for directory in site.directories:
            yield f"{site.name}.{directory.name}", _line(directory.location)


def _line(location: str) -> int:
    number = location.split(":")[1]
    return int(number) if number.isdecimal() else 0
