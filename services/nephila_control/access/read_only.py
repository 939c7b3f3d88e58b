"""The control API of a finished crawl: what reads is answered, what changes something is refused.

The rule studio belongs to what reads: a draft is in the client's hands, and a page that the studio fetches stays in
memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from nephila_control.access.roles import OPERATIONS, STUDIO, Role
from nephila_control.api import Control, Forbidden
from nephila_control.http.routes import ROUTES

READS = frozenset((*OPERATIONS[Role.VIEWER], *STUDIO, "list_control_log", "get_configuration"))


def read_only(control: Control, remedy: str) -> Control:
    """`control` without the operations that change something. `remedy`: what to run for a change."""
    return cast(Control, _ReadOnly(control, remedy))


class _ReadOnly:
    """`Control`: its methods are made from the routes."""

    def __init__(self, control: Control, remedy: str) -> None:
        for route in ROUTES:
            name = route.operation
            setattr(self, name, getattr(control, name) if name in READS else _refusal(name, remedy))


def _refusal(operation: str, remedy: str) -> Callable[[Any], Awaitable[Any]]:
    async def refuse(request: Any) -> Any:
        raise Forbidden(f"{operation}: this crawl is served read-only; {remedy}")

    return refuse
