"""These screens show the settings in effect, DNS and proxies, and webhooks, as the program reports them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_control import requests, system_types
from nephila_control.api import Forbidden
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.view import View

T = TypeVar("T")


async def settings(view: View) -> Response:
    """GET /console/system/settings"""
    query = {"section": view.field("section"), "changed": bool(view.field("changed"))}
    try:
        request = msgspec.convert(query, system_types.ListConfiguration)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
    configuration, problem = await _or_problem(view.control.get_configuration(request))
    live = await optional(view.control.get_settings(requests.Empty()))
    search = view.field("q").strip()[:200]
    values = configuration.values if configuration is not None else []
    return view.render(
        "settings.html",
        values=[setting for setting in values if search.lower() in f"{setting.name} {setting.words}".lower()],
        search=search,
        problem=problem or (_("No setting is like that.") if values else ""),
        live_settings=live.settings if live is not None else {},
        query=query,
        sections=("scheduler", "downloader", "parser", "storage"),
    )


async def network(view: View) -> Response:
    """GET /console/system/network: DNS and proxies"""
    state, problem = await _or_problem(view.control.get_network(requests.Empty()))
    return view.render("network.html", live=True, state=state, problem=problem)


async def webhooks(view: View) -> Response:
    """GET /console/system/webhooks"""
    listed, problem = await _or_problem(view.control.list_webhooks(requests.Empty()))
    return view.render(
        "webhooks.html", live=True, webhooks=listed.webhooks if listed is not None else [], problem=problem
    )


async def _or_problem(answer: Awaitable[T]) -> tuple[T | None, str]:
    """Returns the answer, or the reason why this kind of system has none."""
    try:
        return await answer, ""
    except Forbidden:
        raise
    except UserError as error:
        return None, str(error)
