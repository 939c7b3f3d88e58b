"""The overview answers whether everything runs as it should: one sentence, problems that need a person, then the
curves."""

from __future__ import annotations

import asyncio

from nephila_control import job_types, requests, screen_types, system_types
from starlette.responses import Response

from nephila_console.figures import count
from nephila_console.messages import translate as _
from nephila_console.screens.attention import Need, needs_of
from nephila_console.view import View
from nephila_console.words import path, rate


async def overview(view: View) -> Response:
    """GET /console/"""
    control = view.control
    status, jobs, outcomes, series, health = await asyncio.gather(
        control.status(requests.Empty()),
        control.list_jobs(job_types.ListJobs()),
        control.count_outcomes(screen_types.OfJob()),
        control.get_series(screen_types.GetSeries(range=view.range)),
        control.rule_health(requests.Empty()),
    )
    needs = await needs_of(control, status, jobs.jobs, health.rules, series)
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
        ended=sum(job.ended_urls for job in jobs.jobs),
        sentence=sentence(status, needs),
    )


def sentence(status: system_types.Status, needs: list[Need]) -> str:
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
