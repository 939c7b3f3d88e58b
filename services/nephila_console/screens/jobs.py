"""The screens of a job answer how far it is, when it will be done and what went wrong.

A job has more to show than one screen holds, so it has tabs. Each asks the control API for its own part alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control import job_types, screen_types, system_types
from starlette.responses import Response

from nephila_console.estimate import estimate
from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.screens.hosts import why_words
from nephila_console.screens.job_form import text_of
from nephila_console.view import View, go
from nephila_console.words import path

TABS = ("overview", "pages", "hosts", "errors", "document")
NEWEST = 50
"""Rows of a tab."""


async def job(view: View) -> Response:
    """GET /console/jobs/NAME?tab=…"""
    detail = await view.control.get_job(job_types.JobName(name=view.name))
    tab = view.field("tab") if view.field("tab") in TABS else TABS[0]
    values = await _PARTS[tab](view, detail)
    return view.render("job.html", live=tab != "document", job=detail.status, tab=tab, tabs=TABS, **values)


async def _overview(view: View, detail: job_types.JobDetail) -> dict[str, Any]:
    of_job = screen_types.OfJob(job=view.name)
    series_of = screen_types.GetSeries(job=view.name, range=view.range)
    outcomes, series = await asyncio.gather(view.control.count_outcomes(of_job), view.control.get_series(series_of))
    limit = int(detail.document.get("spec", {}).get("scope", {}).get("maxPages", 0) or 0)
    words = estimate(detail.status, series.samples, limit)
    return {"outcomes": outcomes, "series": series, "limit": limit, "estimate": words}


async def _pages(view: View, detail: job_types.JobDetail) -> dict[str, Any]:
    return {"pages": await _newest(view, "")}


async def _newest(view: View, outcome: Literal["", "failed"]) -> list[screen_types.PageRow]:
    request = screen_types.ListPages(job=view.name, outcome=outcome, limit=NEWEST)
    answer = await optional(view.control.list_pages(request))
    return answer.pages if answer is not None else []


async def _hosts(view: View, detail: job_types.JobDetail) -> dict[str, Any]:
    answer = await view.control.list_hosts(screen_types.ListHosts(job=view.name, limit=NEWEST))
    return {"hosts": answer, "why": why_words()}


async def _errors(view: View, detail: job_types.JobDetail) -> dict[str, Any]:
    name = job_types.JobName(name=view.name)
    outcomes, pages, quarantines, log = await asyncio.gather(
        view.control.count_outcomes(screen_types.OfJob(job=view.name)),
        _newest(view, "failed"),
        optional(view.control.list_quarantines(name)),
        _changes(view),
    )
    return {
        "reasons": [count for count in outcomes.counts if count.outcome == "failed"],
        "pages": pages,
        "quarantines": quarantines.quarantines if quarantines is not None else [],
        "log": log,
    }


async def _changes(view: View) -> list[system_types.Change]:
    """Who changed the job; empty for callers who may not read that."""
    if not view.may("list_control_log"):
        return []
    request = system_types.ListControlLog(search=f"job {view.name}"[:200], limit=NEWEST)
    answer = await optional(view.control.list_control_log(request))
    entries = answer.entries if answer is not None else []
    return [entry for entry in entries if entry.subject == f"job {view.name}"]


async def _document(view: View, detail: job_types.JobDetail) -> dict[str, Any]:
    return {"document": text_of(detail.document)}


_PARTS: Final[dict[str, Callable[[View, job_types.JobDetail], Awaitable[dict[str, Any]]]]] = {
    "overview": _overview,
    "pages": _pages,
    "hosts": _hosts,
    "errors": _errors,
    "document": _document,
}


# ---- changes by one button


async def pause(view: View) -> Response:
    """POST /console/jobs/NAME/pause"""
    answer = await view.control.pause_job(job_types.JobName(name=view.name))
    return go(path("jobs", view.name, notice=answer.verdict))


async def resume(view: View) -> Response:
    """POST /console/jobs/NAME/resume"""
    answer = await view.control.resume_job(job_types.JobName(name=view.name))
    return go(path("jobs", view.name, notice=answer.verdict))


async def ask_delete(view: View) -> Response:
    """GET /console/jobs/NAME/delete"""
    detail = await view.control.get_job(job_types.JobName(name=view.name))
    return view.render("job_delete.html", job=detail.status)


async def delete(view: View) -> Response:
    """POST /console/jobs/NAME/delete"""
    await view.control.delete_job(job_types.JobName(name=view.name))
    return go(path("jobs", notice="deleted"))


# ---- exclusions

PATTERNS = 20


async def exclude(view: View) -> Response:
    """GET /console/jobs/NAME/exclude?re=…: the expressions, one a line, and what they would remove."""
    detail = await view.control.get_job(job_types.JobName(name=view.name))
    return await _exclusions(view, detail, view.field("re"))


async def _exclusions(view: View, detail: job_types.JobDetail, text: str, refused: str = "") -> Response:
    """`refused` is the reason why the exclusion was not applied."""
    patterns = _lines(text)
    tried, problem = None, refused
    if patterns and not refused:
        try:
            _check_lines(patterns)
            tried = await view.control.try_exclusion(job_types.ExcludeUrls(name=view.name, exclude=patterns))
        except UsageError as error:
            problem = str(error)
    return view.render(
        "job_exclude.html",
        400 if problem else 200,
        job=detail.status,
        present=detail.document.get("spec", {}).get("scope", {}).get("exclude", []),
        text=text,
        tried=tried,
        problem=problem,
    )


def _lines(text: str) -> list[str]:
    return [*dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())]


def _check_lines(patterns: list[str]) -> None:
    if len(patterns) > PATTERNS:
        raise UsageError(_("at most %(count)s expressions at once") % {"count": PATTERNS})
    if long := next((pattern for pattern in patterns if len(pattern) > 2000), ""):
        raise UsageError(_("an expression has at most 2,000 characters: %(text)s") % {"text": long[:40] + "…"})


async def apply_exclusion(view: View) -> Response:
    """POST /console/jobs/NAME/exclude: refused when the job was changed since the exclusion was tried."""
    text, generation = view.form.get("re", ""), view.form.get("generation", "")
    patterns = _lines(text)
    try:
        _check_lines(patterns)
        if not patterns:
            raise UsageError(_("write an expression"))
        request = job_types.ExcludeUrls(
            name=view.name, exclude=patterns, generation=int(generation) if generation.isdecimal() else 0
        )
        answer = await view.control.exclude(request)
    except NotReadyError:
        raise
    except UserError as error:
        detail = await view.control.get_job(job_types.JobName(name=view.name))
        return await _exclusions(view, detail, text, str(error))
    return go(path("jobs", view.name, notice=answer.verdict))


async def release(view: View) -> Response:
    """POST /console/jobs/NAME/release"""
    host, pattern = view.form.get("host", ""), view.form.get("pattern", "")
    await view.control.release_quarantine(job_types.ReleaseQuarantine(name=view.name, host=host, pattern=pattern))
    return go(path("jobs", view.name, notice="released"))
