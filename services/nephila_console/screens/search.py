"""The search of the rail spares the choice of a screen: a URL leads to its page, the name of a job to the job, any
other text to the rows."""

from __future__ import annotations

from nephila_control import job_types, requests
from starlette.responses import Response

from nephila_console.view import View, go
from nephila_console.words import path


async def search(view: View) -> Response:
    """GET /console/search?q=…"""
    text = view.field("q").strip()
    if text.startswith(("http://", "https://")):
        return go(path("page", url=text))
    jobs = (await view.control.list_jobs(job_types.ListJobs())).jobs
    if any(job.name == text for job in jobs):
        return go(path("jobs", text))
    if any(rule.name == text for rule in (await view.control.list_rules(requests.Empty())).rules):
        return go(path("rules", name=text))
    return go(path("pages", q=text))
