"""The control API for one caller: role and tenants are checked, changes are logged, here and nowhere else.

Servers, console and adapters give each caller a `Control` made by `guarded`. Invariant: an operation that is not
declared is refused.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from nephila.kernel.runtime.errors import UserError

from nephila_control.access.caller import Caller
from nephila_control.access.change_log import ChangeLog
from nephila_control.access.difference import difference
from nephila_control.api import OPERATIONS, Control, Forbidden
from nephila_control.declaration import Logged, Operation


class TenantControl(Protocol):
    """A control API of this type can be limited to tenants, and keeps a log."""

    log: ChangeLog

    def within(self, tenants: frozenset[str]) -> Control:
        """Returns the same API, limited to jobs, rows and rules of these tenants."""


def guarded(control: Control, caller: Caller) -> Control:
    """`control` as this caller may use it. A control API of another server checks and logs there. Raises `Forbidden`
    for a caller with tenants over such a server."""
    own = cast("TenantControl | None", control if hasattr(type(control), "within") else None)
    if caller.tenants and own is None:
        raise Forbidden("callers are limited to tenants by the server that holds the jobs, not by a console before it")
    inner = own.within(caller.tenants) if caller.tenants and own is not None else control
    return _Guard(inner, caller, own.log if own is not None else None)


class _Guard(Control):
    def __init__(self, control: Control, caller: Caller, log: ChangeLog | None) -> None:
        self._control = control
        self._caller = caller
        self._log = log

    async def call(self, operation: Operation, request: Any) -> Any:
        check(self._caller, operation.name)
        logged = operation.log
        if logged is None or self._log is None:
            return await operation.of(self._control, request)
        before = await self._state(logged, request)
        answer = await operation.of(self._control, request)
        after = await self._state(logged, request)
        changed = difference(before, after) if logged.state is not None else logged.result(answer)
        await self._log.note(
            self._caller.name, operation.name, logged.subject(request), changed, logged.author(request)
        )
        return answer

    async def _state(self, logged: Logged, request: Any) -> Any:
        if logged.state is None:
            return None
        try:
            return await logged.state(self._control, request)
        except UserError:
            return None  # it is not there


def allowed(caller: Caller, operation: str) -> bool:
    try:
        check(caller, operation)
    except Forbidden:
        return False
    return True


def check(caller: Caller, operation: str) -> None:
    """Raise `Forbidden` unless this caller may use the operation."""
    declared = OPERATIONS.get(operation)
    if declared is None:
        raise Forbidden(f"no role may use {operation}")
    if caller.role < declared.role:
        role = declared.role.name.lower()
        raise Forbidden(f"{operation} needs the role {role}; {caller.name} is {caller.role.name.lower()}")
    if caller.tenants and not declared.tenants:
        raise Forbidden(f"{operation} is not for those who are limited to tenants")
