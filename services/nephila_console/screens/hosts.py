"""The screen of hosts answers why each host waits."""

from __future__ import annotations

from typing import get_args, get_type_hints

from nephila_control import screen_types
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.view import View

WHY = {
    "in_flight": "a request is under way",
    "ready": "it is ready for the next free slot",
    "delay": "the pause between two requests",
    "refused": "it refused a request or did not answer; the pause grows with each refusal",
    "robots": "its robots.txt cannot be read",
    "longer": "a longer pause that the server asked for",
    "address": "hosts at one server address take turns",
    "job": "its job can take no more now: paused, or a budget, quota or window",
    "budget": "the budget of its job for this host is spent",
    "domain": "its domain has used its share of the crawl",
}
"""Cause → words."""
SORTS = get_args(get_type_hints(screen_types.ListHosts)["sort"])
"""Orders that the screen may ask for."""


async def hosts(view: View) -> Response:
    """GET /console/hosts"""
    sort = view.field("sort") if view.field("sort") in SORTS else "next"
    request = screen_types.ListHosts(
        job=view.field("job")[:1000],
        search=view.field("q")[:500],
        sort=sort,  # type: ignore[arg-type]
        limit=200,
    )
    answer = await view.control.list_hosts(request)
    return view.render(
        "hosts.html",
        live=True,
        answer=answer,
        why={name: _(text) for name, text in WHY.items()},
        q=request.search,
        job=request.job,
        sort=sort,
    )
