"""The screen of changes answers who changed what over the control API, the console or an adapter, and when."""

from __future__ import annotations

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila_control import system_types
from nephila_control.api import OPERATIONS
from starlette.responses import Response

from nephila_console.view import View


async def control_log(view: View) -> Response:
    """GET /console/log"""
    query = {name: view.field(name) for name in ("who", "operation", "search", "before")}
    try:
        request = msgspec.convert(query, system_types.ListControlLog)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
    page = await view.control.list_control_log(request)
    changing = sorted(name for name, operation in OPERATIONS.items() if operation.log is not None)
    return view.render("control_log.html", entries=page.entries, next=page.next, query=query, operations=changing)
