"""The control API of a finished crawl: what reads is answered, what changes something is refused.

The rule studio belongs to what reads: a draft is in the client's hands, and a page that the studio fetches stays in
memory. Items of stored pages may be written by the one process that holds the directory.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from nephila_control import capability_types
from nephila_control.api import Control, Forbidden
from nephila_control.declaration import Operation

REASON = "this crawl is served read-only"


def read_only(control: Control, remedy: str, *, writes_items: bool = False) -> Control:
    """Removes the operations that change something. `remedy` names the command that makes a change possible.
    `writes_items`: this process holds the lock of the directory, so that items of stored pages can be written."""
    return _ReadOnly(control, remedy, {Control.extract_stored.declared.name} if writes_items else set())  # type: ignore[attr-defined]


class _ReadOnly(Control):
    def __init__(self, control: Control, remedy: str, allowed: set[str]) -> None:
        self._control = control
        self._remedy = remedy
        self._allowed = allowed

    async def call(self, operation: Operation, request: Any) -> Any:
        if operation.log is not None and operation.name not in self._allowed:
            raise Forbidden(f"{operation.name}: {REASON}; {self._remedy}")
        answer = await operation.of(self._control, request)
        return self._restricted(answer) if isinstance(answer, capability_types.Capabilities) else answer

    def _restricted(self, answer: capability_types.Capabilities) -> capability_types.Capabilities:
        return capability_types.Capabilities(
            capabilities=[
                structs.replace(entry, works=False, reason=REASON, remedy=self._remedy)
                if entry.changes and not (entry.name == "extract" and self._allowed)
                else entry
                for entry in answer.capabilities
            ]
        )
