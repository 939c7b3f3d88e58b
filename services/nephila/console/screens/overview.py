"""Overview: does everything run as it should? One sentence, what needs a person, then the curves."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from starlette.responses import Response

from nephila.console.messages import translate as _
from nephila.console.view import View
from nephila.console.words import path, rate
from nephila.control import answers, requests, screen_types
from nephila.control.api import Control
from nephila.kernel.figures import count
from nephila.kernel.runtime.errors import UserError


class Need(NamedTuple):
    """Something that needs a person."""

    text: str
    link: str


async def overview(view: View) -> Response:
    """GET /console/"""
    control = view.control
    status, jobs, outcomes, series, health = await asyncio.gather(
        control.status(requests.Empty()),
        control.list_jobs(requests.Empty()),
        control.count_outcomes(screen_types.OfJob()),
        control.get_series(screen_types.OfJob()),
        control.rule_health(requests.Empty()),
    )
    needs = await needs_of(control, status, jobs.jobs, health.rules)
    if view.access_problem and view.may("get_configuration"):
        needs.insert(0, Need(_("The access file is not used: %(why)s") % {"why": view.access_problem}, path("system")))
    return view.render(
        "overview.html",
        live=True,
        status=status,
        jobs=sorted(jobs.jobs, key=lambda job: (job.state != "running", -job.rate, job.name))[:20],
        jobs_total=len(jobs.jobs),
        outcomes=outcomes,
        series=series,
        needs=needs,
        sentence=sentence(status, needs),
    )


def sentence(status: answers.Status, needs: list[Need]) -> str:
    """The state in one sentence."""
    if not status.jobs:
        return _("There is no job yet.")
    parts = []
    if status.in_flight or status.rate:
        parts.append(_("%(rate)s pages/s") % {"rate": rate(status.rate)})
    elif status.queued:
        parts.append(_("nothing is fetched now"))
    else:
        parts.append(_("everything is fetched"))
    if status.queued:
        parts.append(_("%(count)s queued") % {"count": count(status.queued)})
    if status.hosts_waiting:
        parts.append(
            _("1 host waits for its next request")
            if status.hosts_waiting == 1
            else _("%(count)s hosts wait for their next request") % {"count": count(status.hosts_waiting)}
        )
    if needs:
        parts.append(
            _("1 thing needs you") if len(needs) == 1 else _("%(count)s things need you") % {"count": len(needs)}
        )
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + _(".")


async def needs_of(
    control: Control, status: answers.Status, jobs: list[answers.Job], health: list[answers.RuleHealth]
) -> list[Need]:
    """What needs a person, the most urgent first."""
    found = [Need(problem, path("system")) for problem in status.problems]
    found += [
        Need(
            _("Rule %(name)s no longer fits its site: %(why)s") % {"name": one.rule, "why": one.findings}, path("rules")
        )
        for one in health
        if one.degraded
    ]
    found += [
        Need(_("Job %(name)s has stopped: %(why)s") % {"name": job.name, "why": job.held_by}, path("jobs", job.name))
        for job in jobs
        if job.state == "quota"
    ]
    letters = await optional(control.list_dead_letters(requests.ListDeadLetters(limit=100)))
    if letters is not None and letters.dead_letters:
        number = f"{len(letters.dead_letters)}{'+' if letters.next else ''}"
        found.append(Need(_("%(count)s dead letters wait for a replay") % {"count": number}, path("system")))
    return found


async def optional(answer: Any) -> Any:
    """The answer of an operation that this kind of system may not have; None without one."""
    try:
        return await answer
    except UserError:
        return None
