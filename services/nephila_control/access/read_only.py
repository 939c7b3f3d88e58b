"""The control API of a finished crawl: what reads is answered, what changes something is refused.

The rule studio belongs to what reads: a draft is in the client's hands, and a page that the studio fetches stays in
memory.
"""

from __future__ import annotations

from typing import Any

from nephila_control.api import Control, Forbidden
from nephila_control.declaration import Operation


def read_only(control: Control, remedy: str) -> Control:
    """Removes the operations that change something. `remedy` names the command that makes a change possible."""
    return _ReadOnly(control, remedy)


class _ReadOnly(Control):
    def __init__(self, control: Control, remedy: str) -> None:
        self._control = control
        self._remedy = remedy

    async def call(self, operation: Operation, request: Any) -> Any:
        if operation.log is not None:
            raise Forbidden(f"{operation.name}: this crawl is served read-only; {self._remedy}")
        return await operation.of(self._control, request)
