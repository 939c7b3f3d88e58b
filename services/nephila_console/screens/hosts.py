"""The screens of hosts answer why each host waits. A person may let a host go on, pause it, or leave it more time."""

from __future__ import annotations

from typing import get_args, get_type_hints

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila_control import screen_types
from nephila_control.api import NotFound
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.view import View, go
from nephila_console.words import path

WHY = {
    "in_flight": "a request is under way",
    "ready": "it is ready for the next free slot",
    "held": "a person has paused it",
    "delay": "the pause between two requests",
    "refused": "it refused a request or did not answer; the pause grows with each refusal",
    "robots": "its robots.txt cannot be read",
    "longer": "a longer pause that the server asked for",
    "address": "hosts at one server address take turns",
    "job": "its job can take no more now: paused, or a budget, quota or window",
    "budget": "the budget of its job for this host is spent",
    "domain": "its domain has used its share of the crawl",
    "idle": "no URL of it is queued",
}
"""Cause → words."""
SORTS = get_args(get_type_hints(screen_types.ListHosts)["sort"])
"""Orders that the screen may ask for."""
STUCK = ("held", "refused", "robots", "longer")
"""Causes that an operator can end by hand."""
PAUSES = (3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
"""Lengths of a pause that the screen offers, in seconds."""
NEWEST = 20
"""Pages of the host that its screen shows."""


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
        why=why_words(),
        stuck=STUCK,
        q=request.search,
        job=request.job,
        sort=sort,
    )


def why_words() -> dict[str, str]:
    return {name: _(text) for name, text in WHY.items()}


async def host(view: View) -> Response:
    """GET /console/hosts/NAME"""
    return await _host(view)


async def _host(view: View, problem: str = "") -> Response:
    name = view.name[:200]
    answer = await view.control.list_hosts(screen_types.ListHosts(name=name))
    pages = await optional(view.control.list_pages(screen_types.ListPages(search=f"://{name}/", limit=NEWEST)))
    hosts, is_unknown = answer.hosts, answer.answered < answer.partitions
    if not hosts and not is_unknown and not (pages is not None and pages.pages):
        raise NotFound(_("there is no host %(name)s here") % {"name": name})
    return view.render(
        "host.html",
        400 if problem else 200,
        live=not problem,
        name=name,
        host=hosts[0] if hosts else None,
        is_unknown=is_unknown,
        pages=pages.pages if pages is not None else [],
        why=why_words(),
        stuck=STUCK,
        pauses=PAUSES,
        problem=problem,
    )


async def change(view: View) -> Response:
    """POST /console/hosts/NAME: `back` is the list for a button of a row."""
    action, text = view.form.get("action", ""), view.form.get("seconds", "").strip().replace(",", ".") or "0"
    try:
        request = _request(view.name, action, float(text))
        await view.control.change_host(request)
    except ValueError:
        return await _host(view, _("a number of seconds, up to a day for a delay and 30 days for a pause"))
    except UsageError as error:
        return await _host(view, str(error))
    name = () if view.form.get("back") == "list" else (view.name,)
    return go(path("hosts", *name, notice=f"host_{action}"))


def _request(name: str, action: str, seconds: float) -> screen_types.ChangeHost:
    """Raises `ValueError` for fields of another form than those of the operation."""
    return msgspec.convert({"name": name, "action": action, "seconds": seconds}, screen_types.ChangeHost)
