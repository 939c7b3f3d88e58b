"""The screens of jobs answer how far each job is, when it will be done and what went wrong. Their forms create and
change jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml
from nephila.kernel.documents import job_document
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control import job_types, screen_types
from starlette.responses import Response

from nephila_console.estimate import estimate
from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.view import View, go
from nephila_console.words import path

FILE = "job"
"""Name of the form in error lines, before line and column."""
OFFERED_OWNERS = 200
"""Owners in the list of the filter."""


class Problem(NamedTuple):
    field: str
    line: int
    """Line of the YAML text; 0 if the line is unknown."""
    text: str


async def jobs(view: View) -> Response:
    """GET /console/jobs"""
    listed = await view.control.list_jobs(job_types.ListJobs())
    owners = sorted({job.owner for job in listed.jobs if job.owner})
    owner = view.field("owner")
    rows = [job for job in listed.jobs if not owner or job.owner == owner]
    state = view.field("state")
    states: dict[str, int] = {}
    for job in rows:
        states[_state(job)] = states.get(_state(job), 0) + 1
    text = view.field("q").strip().lower()
    chosen = [job for job in rows if (not state or _state(job) == state) and text in job.name.lower()]
    return view.render(
        "jobs.html",
        live=True,
        jobs=chosen[:200],
        total=len(chosen),
        states=states,
        state=state,
        q=view.field("q"),
        owner=owner,
        owners=owners[:OFFERED_OWNERS],
    )


def _state(job: job_types.Job) -> str:
    """Returns failed for a job that ended with nothing stored."""
    return "failed" if job.failure is not None else job.state


async def job(view: View) -> Response:
    """GET /console/jobs/NAME"""
    name = job_types.JobName(name=view.name)
    detail = await view.control.get_job(name)
    of_job = screen_types.OfJob(job=view.name)
    outcomes, series, quarantines = await asyncio.gather(
        view.control.count_outcomes(of_job),
        view.control.get_series(screen_types.GetSeries(job=view.name, range=view.range)),
        optional(view.control.list_quarantines(name)),
    )
    limit = int(detail.document.get("spec", {}).get("scope", {}).get("maxPages", 0) or 0)
    return view.render(
        "job.html",
        live=True,
        job=detail.status,
        document=_text(detail.document),
        outcomes=outcomes,
        series=series,
        limit=limit,
        estimate=estimate(detail.status, series.samples, limit),
        quarantines=quarantines.quarantines if quarantines is not None else [],
    )


# ---- create and change


async def new(view: View) -> Response:
    """GET /console/jobs/new: three fields, or a document in YAML with form=yaml."""
    return _form(view, {"text": _EXAMPLE}, [], yaml=view.field("form") == "yaml")


async def create(view: View) -> Response:
    """POST /console/jobs"""
    if "text" in view.form:
        return await _apply_text(view, "", 0)
    urls, name, pages = (view.form.get(field, "").strip() for field in ("url", "name", "pages"))
    seeds = [url if "://" in url else f"https://{url}" for url in urls.split()]
    problems = []
    if not seeds:
        problems.append(Problem("url", 0, _("a job begins at a URL")))
    if pages and not (pages.isascii() and pages.isdecimal()):
        problems.append(Problem("pages", 0, _("a whole number, or nothing")))
    if problems:
        return _form(view, view.form, problems, yaml=False)
    try:
        host = urlsplit(seeds[0]).hostname or ""
    except ValueError:
        host = ""
    named = name or "".join(c if c.isalnum() and c.isascii() else "-" for c in host).strip("-")[:60]
    spec: dict[str, Any] = {"seeds": seeds}
    if pages and int(pages):
        spec["scope"] = {"maxPages": int(pages)}
    try:
        document = job_document.from_json(job_document.crawl_job(named, spec), FILE)
        return await _apply(view, document, "")
    except NotReadyError:
        raise
    except UserError as error:
        return _form(view, view.form, [_problem(fault) for fault in _all(error)], yaml=False)


async def edit(view: View) -> Response:
    """GET /console/jobs/NAME/edit"""
    detail = await view.control.get_job(job_types.JobName(name=view.name))
    values = {"text": _text(detail.document), "generation": str(detail.status.generation)}
    return _form(view, values, [], yaml=True, name=view.name)


async def change(view: View) -> Response:
    """POST /console/jobs/NAME/edit: refused when the job was changed since the form was loaded."""
    generation = view.form.get("generation", "")
    return await _apply_text(view, view.name, int(generation) if generation.isdecimal() else 0)


async def _apply_text(view: View, name: str, generation: int) -> Response:
    text = view.form.get("text", "")
    values = {"text": text, "generation": str(generation)}
    try:
        documents = job_document.load(text.replace("\r\n", "\n").encode("utf-8", "replace"), FILE)
        if len(documents) != 1:
            raise UsageError(_("the form takes one job; several are applied with nephila jobs apply"))
        if name and documents[0].name != name:
            raise UsageError(_("the name of a job cannot be changed; create another job"))
        if documents[0].files:
            raise UsageError(_("files of seeds are read by nephila jobs apply, not by the console"))
        if name:
            status = (await view.control.get_job(job_types.JobName(name=name))).status
            if status.generation != generation:
                values["generation"] = str(status.generation)
                raise UserError(
                    _("the job was changed by someone else while this form was open; nothing is changed yet. "
                      "Compare your text with the job, then save again")
                )  # fmt: skip
        return await _apply(view, documents[0], name)
    except NotReadyError as error:
        return _form(view, values, [Problem("", 0, str(error))], yaml=True, name=name, status=503)
    except UserError as error:
        return _form(view, values, [_problem(fault) for fault in _all(error)], yaml=True, name=name)


async def _apply(view: View, document: job_document.JobDocument, name: str) -> Response:
    if not name:
        present = await optional(view.control.get_job(job_types.JobName(name=document.name)))
        if present is not None:
            raise UserError(
                _("there is a job %(name)s already; edit it, or choose another name") % {"name": document.name}
            )
    answer = await view.control.apply_job(job_types.ApplyJob(job=document.content))
    return go(path("jobs", answer.name, notice=answer.verdict))


def _all(error: UserError) -> list[UserError]:
    return [error, *(error.others if isinstance(error, UsageError) else ())]


def _problem(error: UserError) -> Problem:
    """An error line begins with job:LINE:COLUMN: KEY: for a fault in a document."""
    location, _colon, rest = str(error).partition(": ")
    parts = location.split(":")
    line = int(parts[1]) if len(parts) == 3 and parts[0] == FILE and parts[1].isdecimal() else 0
    text = rest if line or location == FILE else str(error)
    key = text.partition(":")[0]
    field = "name" if key.startswith("metadata.name") else "url" if key.startswith("spec.seeds") else ""
    return Problem(field or ("pages" if "maxPages" in key else ""), line, text)


def _form(
    view: View, values: Mapping[str, str], problems: list[Problem], *, yaml: bool, name: str = "", status: int = 0
) -> Response:
    return view.render(
        "job_form.html", status or (400 if problems else 200), values=values, problems=problems, yaml=yaml, name=name
    )


def _text(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100)


_EXAMPLE = f"""apiVersion: {API_VERSION}
kind: CrawlJob
metadata:
  name: example
spec:
  seeds:
    - https://example.com/
  scope:
    maxPages: 1000
"""

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
