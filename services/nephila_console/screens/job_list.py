"""The list of jobs, in any order, and changes of several jobs at once.

A change of many jobs is as easy to send by mistake as a change of one, and costs more. So the selection leads to a
screen that says for each job what will be done, and one button does it. The result names each job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila_control import job_types
from nephila_control.api import Control
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.view import View

SHOWN: Final = 200
"""Jobs of one screen, and of one change."""
OFFERED_OWNERS: Final = 200
"""Owners in the list of the filter."""
MAX_WEIGHT: Final = 1000.0
Order = Callable[[job_types.Job], Any]
SORTS: Final[dict[str, Order]] = {
    "name": lambda job: job.name,
    "state": lambda job: _state(job),
    "rate": lambda job: job.rate,
    "queued": lambda job: job.queued,
    "stored": lambda job: job.stored,
    "failed": lambda job: job.failed,
    "denied": lambda job: job.denied,
    "dropped": lambda job: job.dropped,
    "error": lambda job: job.last_error.at if job.last_error is not None else 0.0,
}
"""Column → its value; texts are sorted upwards first, numbers downwards."""
TEXTS: Final = ("name", "state")


def sorted_jobs(jobs: Sequence[job_types.Job], sort: str) -> tuple[list[job_types.Job], str]:
    """Jobs in an order, and its name; an unknown one is that of the names."""
    name = sort.removeprefix("-")
    if name not in SORTS:
        name, sort = "name", "name"
    by_name = sorted(jobs, key=SORTS["name"])
    return sorted(by_name, key=SORTS[name], reverse=sort.startswith("-")), sort


async def jobs(view: View) -> Response:
    """GET /console/jobs"""
    listed = await view.control.list_jobs(job_types.ListJobs())
    owners = sorted({job.owner for job in listed.jobs if job.owner})
    query = {name: view.field(name) for name in ("q", "owner", "state")}
    rows = [job for job in listed.jobs if not query["owner"] or job.owner == query["owner"]]
    states: dict[str, int] = {}
    for job in rows:
        states[_state(job)] = states.get(_state(job), 0) + 1
    text = query["q"].strip().lower()
    chosen = [job for job in rows if query["state"] in ("", _state(job)) and text in job.name.lower()]
    ordered, sort = sorted_jobs(chosen, view.field("sort"))
    return view.render(
        "jobs.html",
        live=True,
        jobs=ordered[:SHOWN],
        total=len(chosen),
        states=states,
        owners=owners[:OFFERED_OWNERS],
        sort=sort,
        texts=TEXTS,
        all_checked=view.field("select") == "all",
        **query,
    )


def _state(job: job_types.Job) -> str:
    """Returns failed for a job that ended with nothing stored."""
    return "failed" if job.failure is not None else job.state


# ---- several jobs


class Bulk(NamedTuple):
    """A change of several jobs."""

    words: str
    """Name of the button."""
    operation: str
    """Operation of the control API that each job needs."""
    effect: Callable[[job_types.Job], str]
    """What will be done with a job, in words."""
    change: Callable[[Control, job_types.JobName, float], Awaitable[str]]
    """Changes one job and returns the verdict."""


def _pauses(job: job_types.Job) -> str:
    if job.state == "paused":
        return _("is paused already")
    if not job.in_flight:
        return _("dispatches nothing more")
    return _("dispatches nothing more; %(count)s requests under way still end") % {"count": f"{job.in_flight:,}"}


def _resumes(job: job_types.Job) -> str:
    if job.state != "paused":
        return _("is not paused")
    return _("goes on with %(count)s queued URLs") % {"count": f"{job.queued:,}"}


def _deletes(job: job_types.Job) -> str:
    words = _("forgets %(queued)s queued URLs and all that it has seen; %(stored)s stored pages stay")
    return words % {"queued": f"{job.queued:,}", "stored": f"{job.stored:,}"}


def _weighs(job: job_types.Job) -> str:
    return _("gets this share of the fetches, against the weights of the other jobs")


async def _pause(control: Control, name: job_types.JobName, weight: float) -> str:
    return (await control.pause_job(name)).verdict


async def _resume(control: Control, name: job_types.JobName, weight: float) -> str:
    return (await control.resume_job(name)).verdict


async def _delete(control: Control, name: job_types.JobName, weight: float) -> str:
    return (await control.delete_job(name)).verdict


async def _weigh(control: Control, name: job_types.JobName, weight: float) -> str:
    document = (await control.get_job(name)).document
    document = {**document, "spec": {**document["spec"], "weight": weight}}
    # The seeds stay as they are: none has to be sent again.
    return (await control.apply_job(job_types.ApplyJob(job=document, seeds_follow=True))).verdict


BULK: Final = {
    "pause": Bulk("Pause", "pause_job", _pauses, _pause),
    "resume": Bulk("Resume", "resume_job", _resumes, _resume),
    "weight": Bulk("Set the weight", "apply_job", _weighs, _weigh),
    "delete": Bulk("Delete", "delete_job", _deletes, _delete),
}


class Result(NamedTuple):
    name: str
    verdict: str
    """paused, resumed, changed, deleted or unchanged; empty if it was refused."""
    problem: str = ""


async def confirm(view: View) -> Response:
    """GET /console/bulk?do=pause&job=a&job=b: says what will be done; changes nothing."""
    names = [*dict.fromkeys(view.request.query_params.getlist("job"))][:SHOWN]
    return await _ask(view, view.field("do"), names)


async def _ask(view: View, do: str, names: Sequence[str], problem: str = "") -> Response:
    listed = {job.name: job for job in (await view.control.list_jobs(job_types.ListJobs())).jobs}
    rows = [listed[name] for name in names if name in listed]
    bulk = BULK.get(do)
    return view.render(
        "jobs_bulk.html",
        400 if problem else 200,
        do=do,
        bulk=bulk,
        rows=[(job, bulk.effect(job)) for job in rows] if bulk is not None else [],
        weight=view.form.get("weight", ""),
        problem=problem,
        results=None,
    )


async def apply(view: View) -> Response:
    """POST /console/bulk: one operation for each job, in turn. A job that is refused does not stop the others."""
    do, names = view.form.get("do", ""), view.form.get("jobs", "").split("\n")[:SHOWN]
    bulk, weight = BULK.get(do), _weight(view.form.get("weight", ""))
    if bulk is None or (do == "weight" and not weight):
        problem = _("a number above 0, up to 1,000") if bulk is not None else _("choose what to do")
        return await _ask(view, do, names, problem)
    results = [await _one(view.control, bulk, name, weight) for name in names if name]
    code = 200 if any(not result.problem for result in results) else 409
    return view.render("jobs_bulk.html", code, do=do, bulk=bulk, rows=[], weight="", problem="", results=results)


async def _one(control: Control, bulk: Bulk, name: str, weight: float) -> Result:
    try:
        return Result(name, await bulk.change(control, job_types.JobName(name=name), weight))
    except NotReadyError:
        raise
    except UserError as error:
        return Result(name, "", str(error))


def _weight(text: str) -> float:
    """Returns 0 for a text that is no weight."""
    try:
        weight = float(text.strip().replace(",", "."))
    except ValueError:
        return 0.0
    return weight if 0 < weight <= MAX_WEIGHT else 0.0
