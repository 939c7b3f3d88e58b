"""The screens of pages answer what the crawl got, and why or why not: a list with search and filters, and one page with
all its facts."""

from __future__ import annotations

import asyncio
import difflib
from typing import Any, NamedTuple

from nephila.kernel.reasons.table import words
from nephila.kernel.runtime.errors import UsageError
from nephila_control import job_types, screen_types
from starlette.responses import Response

from nephila_console.figures import span
from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.view import View
from nephila_console.words import cause

TABS = ("text", "screenshot", "markdown", "source", "links", "items", "history", "metadata")
OUTCOMES = ("stored", "denied", "failed", "dropped")
SEARCH_PAGE = 20
"""Pages of a search on one screen."""
BODY_CHARS = 200_000
"""Characters of a body on one screen."""
DIFF_LINES = 2000
"""Lines of a text, at most, that are compared with the version before."""


class TimelineStep(NamedTuple):
    """A step in the life of a URL."""

    kind: str
    """done, stop or wait."""
    title: str
    detail: str
    at: Any = ""


async def pages(view: View) -> Response:
    """GET /console/pages"""
    outcome = view.field("outcome") if view.field("outcome") in OUTCOMES else ""
    words_of = view.field("q").strip()[:500]
    # The index has stored pages; with an outcome, a reason or on request the search is a part of URL or title.
    if words_of and not outcome and not view.field("reason") and view.field("in") != "url":
        return await _search(view, words_of)
    request = screen_types.ListPages(
        job=view.field("job")[:1000],
        outcome=outcome,  # type: ignore[arg-type]
        reason=view.field("reason")[:200],
        search=words_of,
        before=view.number("before"),
    )
    batch, jobs = await asyncio.gather(view.control.list_pages(request), view.control.list_jobs(job_types.ListJobs()))
    query = {"q": request.search, "job": request.job, "outcome": outcome, "reason": request.reason}
    if words_of:
        query["in"] = "url"
    return view.render(
        "pages.html",
        batch=batch,
        query=query,
        first=not request.before,
        jobs=[job.name for job in jobs.jobs[:200]],
        outcomes=OUTCOMES,
        reason_words=cause(words(outcome, request.reason)) if request.reason else "",
        results=None,
        problem="",
    )


async def _search(view: View, text: str) -> Response:
    """Lists pages by their words. An invalid search is explained beside its box."""
    request = screen_types.SearchPages(
        query=text, job=view.field("job")[:1000], skip=min(view.number("skip"), 200), limit=SEARCH_PAGE
    )
    jobs = await view.control.list_jobs(job_types.ListJobs())
    results, problem = None, ""
    try:
        results = await view.control.search_pages(request)
    except UsageError as error:
        problem = str(error)
    return view.render(
        "pages.html",
        400 if problem else 200,
        live=results is not None and results.behind > 0,
        query={"q": text, "job": request.job, "outcome": "", "reason": ""},
        skip=request.skip,
        results=results,
        problem=problem,
        batch=None,
        jobs=[job.name for job in jobs.jobs[:200]],
        outcomes=OUTCOMES,
        reason_words="",
    )


async def page(view: View) -> Response:
    """GET /console/page?url=…"""
    url, job = view.field("url"), view.field("job")[:1000]
    tab = view.field("tab", "text") if view.field("tab") in TABS else "text"
    if not url:
        return view.render("page.html", 404, url="", explained=None, detail=None, tab=tab, tabs=TABS, steps=[], job=job)
    detail = await optional(view.control.get_page(screen_types.GetPage(url=url, job=job)))
    about = job_types.ExplainUrl(url=url, job=job or (detail.page.job if detail is not None else ""))
    explained = await optional(view.control.explain(about))
    return view.render(
        "page.html",
        200 if detail is not None or explained is not None else 404,
        url=url,
        job=job,
        tab=tab,
        tabs=[name for name in TABS if name != "screenshot" or (detail is not None and detail.screenshot)],
        links_in=await _links_in(view, detail) if detail is not None and tab == "links" else None,
        explained=explained.explanation if explained is not None else None,
        detail=detail,
        steps=steps(explained, detail),
        diff=difference(detail) if detail is not None and tab == "history" else [],
        body=await _body(view, url, tab) if detail is not None and tab in ("markdown", "source") else None,
    )


async def _links_in(view: View, detail: screen_types.PageDetail) -> screen_types.LinksIn | None:
    request = screen_types.GetPage(url=detail.page.url, job=detail.page.job)
    links: screen_types.LinksIn | None = await optional(view.control.list_links_in(request))
    return links


async def screenshot(view: View) -> Response:
    """GET /console/page/screenshot?url=…: the picture itself."""
    request = screen_types.GetScreenshot(url=view.field("url"), job=view.field("job")[:1000])
    picture = await view.control.get_screenshot(request)
    return Response(picture.body, media_type="image/png")


async def _body(view: View, url: str, form: str) -> screen_types.Body | None:
    request = screen_types.GetBody(url=url, form="source" if form == "source" else "markdown", limit=BODY_CHARS)
    body: screen_types.Body | None = await optional(view.control.get_body(request))
    return body


def steps(explained: job_types.Explained | None, detail: screen_types.PageDetail | None) -> list[TimelineStep]:
    """Shows the verdict as a time line, in the order in which the crawler decides."""
    line = _decisions(explained) if explained is not None else []
    explanation = explained.explanation if explained is not None else None
    explained_fetches = explanation.fetches if explanation is not None else []
    for fetch in explained_fetches or (detail.fetches if detail is not None else []):
        outcome, reason = str(fetch.get("outcome", "")), str(fetch.get("reason", ""))
        kind = "done" if outcome == "stored" else "stop"
        status = f"HTTP {fetch['status']} · " if fetch.get("status") else ""
        title = _("Fetch %(number)s: %(outcome)s") % {"number": fetch.get("fetch_no", ""), "outcome": _(outcome)}
        line.append(TimelineStep(kind, title, f"{status}{cause(words(outcome, reason))}", fetch.get("fetched_at", "")))
    if explanation is not None and explanation.recrawl is not None:
        every = _("every %(span)s") % {"span": span(explanation.recrawl.interval_s)}
        line.append(TimelineStep("wait", _("Fetched again"), every, explanation.recrawl.next_at))
    return line


def _decisions(explained: job_types.Explained) -> list[TimelineStep]:
    explanation = explained.explanation
    line = [TimelineStep("done" if explanation.scope.admitted else "stop", _("In scope") if explanation.scope.admitted
                 else _("Out of scope"), explanation.scope.rule)]  # fmt: skip
    line.append(TimelineStep("done", _("Found"), _("its job has seen this URL")) if explanation.seen
                else TimelineStep("wait", _("Not found yet"), _("no page and no seed named this URL")))  # fmt: skip
    if explanation.robots is not None:
        robots, detail = explanation.robots, ""
        if robots.line:
            detail = _("line %(line)s: %(rule)s") % {"line": robots.line, "rule": robots.rule}
        title = _("Allowed by robots.txt") if robots.allowed else _("Forbidden by robots.txt")
        line.append(TimelineStep("done" if robots.allowed else "stop", title, detail, robots.fetched_at))
    if explanation.queued is not None:
        position = f"{explanation.queued.position:,}" if explanation.queued.position else "?"
        detail = _("%(place)s of %(of)s at its host") % {"place": position, "of": f"{explanation.queued.of:,}"}
        line.append(TimelineStep("wait", _("Queued"), detail, explanation.queued.not_before))
    if explanation.host is not None and explanation.host.wait_s:
        line.append(TimelineStep("wait", _("Its host waits"), explanation.host.pause, explanation.host.not_before))
    if explanation.lease is not None:
        detail = _("try %(number)s") % {"number": explanation.lease.attempt}
        line.append(TimelineStep("wait", _("Under way"), detail, explanation.lease.since))
    return line


def difference(detail: screen_types.PageDetail) -> list[str]:
    """Returns the lines of a unified diff to the version before; empty without one."""
    if detail.previous is None:
        return []
    old, new = (text.splitlines()[:DIFF_LINES] for text in (detail.previous.text, detail.text))
    return list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]
