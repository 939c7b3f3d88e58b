"""The control API for one caller: role and tenants are checked, changes are logged, here and nowhere else.

Servers, console and adapters give each caller a `Control` made by `guarded`. Invariant: an operation that is not in
`roles.OPERATIONS` is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, cast

from nephila.kernel.runtime.errors import UserError

from nephila_control.access.caller import Caller
from nephila_control.access.change_log import ChangeLog
from nephila_control.access.described import DESCRIBED, Described, difference
from nephila_control.access.roles import NEEDS, NOT_FOR_TENANTS
from nephila_control.api import Control, Forbidden
from nephila_control.http.routes import ROUTES


class TenantControl(Protocol):
    """What a control API offers that can be limited to tenants and keeps a log: `Operations`."""

    log: ChangeLog

    def within(self, tenants: frozenset[str]) -> Control:
        """The same for jobs, rows and rules of these tenants alone."""


def guarded(control: Control, caller: Caller) -> Control:
    """`control` as this caller may use it. A control API of another server checks and logs there. Raises `Forbidden`
    for a caller with tenants over such a server."""
    own = cast("TenantControl | None", control if hasattr(type(control), "within") else None)
    if caller.tenants and own is None:
        raise Forbidden("callers are limited to tenants by the server that holds the jobs, not by a console before it")
    inner = own.within(caller.tenants) if caller.tenants and own is not None else control
    return cast(Control, _Guard(inner, caller, own.log if own is not None else None))


class _Guard:
    """`Control`: its methods are made from the routes."""

    def __init__(self, control: Control, caller: Caller, log: ChangeLog | None) -> None:
        self._control = control
        self._caller = caller
        self._log = log
        for route in ROUTES:
            setattr(self, route.operation, partial(self._call, route.operation))

    async def _call(self, operation: str, request: Any) -> Any:
        check(self._caller, operation)
        work: Callable[[Any], Awaitable[Any]] = getattr(self._control, operation)
        described = DESCRIBED.get(operation)
        if described is None or self._log is None:
            return await work(request)
        before = await self._state(described, request)
        answer = await work(request)
        after = await self._state(described, request)
        changed = difference(before, after) if described.state is not None else described.result(answer)
        await self._log.note(self._caller.name, operation, described.subject(request), changed)
        return answer

    async def _state(self, described: Described, request: Any) -> Any:
        if described.state is None:
            return None
        try:
            return await described.state(self._control, request)
        except UserError:
            return None  # it is not there


def allowed(caller: Caller, operation: str) -> bool:
    """Whether `check` lets this caller use the operation."""
    try:
        check(caller, operation)
    except Forbidden:
        return False
    return True


def check(caller: Caller, operation: str) -> None:
    """Raise `Forbidden` unless this caller may use the operation."""
    needed = NEEDS.get(operation)
    if needed is None:
        raise Forbidden(f"no role may use {operation}")
    if caller.role < needed:
        raise Forbidden(
            f"{operation} needs the role {needed.name.lower()}; {caller.name} is {caller.role.name.lower()}"
        )
    if caller.tenants and operation in NOT_FOR_TENANTS:
        raise Forbidden(f"{operation} is not for those who are limited to tenants")
