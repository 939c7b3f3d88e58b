"""What can be run in the sandbox, what it may cost, and how a run that failed is told. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Out = TypeVar("Out")

ATTEMPTS: Final = 2
"""A child may die of what the payload before left in it: a second try in a new one decides."""

TIMEOUT: Final = "timeout"
MEMORY: Final = "memory"
CRASH: Final = "crash"
RESULT: Final = "result"
"""The answer is too long or not what the task has to give: the child is not to be trusted any more."""
ERROR: Final = "error"
"""The task's own code raised an exception; the child lives."""
UNAVAILABLE: Final = "unavailable"
"""The task cannot run here at all: a library is missing, or the system cannot start children."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Out]):
    """One kind of work. Its payloads may be hostile; so may be whatever comes back."""

    name: str
    module: str
    """Imported in the child. Has `run(payload: bytes) -> bytes`, and imports all that this needs: after the import
    nothing can be opened."""
    decode: Callable[[bytes], Out]
    """Reads and checks what came back; `ValueError` or `msgspec.MsgspecError` when it is not what was agreed."""
    wall_s: float = 10.0
    """Of one call."""
    memory_bytes: int = 512 << 20
    """Address space of a child beyond what it has when it is ready."""
    max_result_bytes: int = 16 << 20


class ChildError(Exception):
    """A call came to nothing; `reason` is one of the words above, `detail` for people."""

    def __init__(self, task: str, reason: str, detail: str = "", attempts: int = 1) -> None:
        said = (
            f"{task}: {reason}"
            + (f" ({detail})" if detail else "")
            + (f", tried {attempts} times" if attempts > 1 else "")
        )
        super().__init__(said)
        self.task = task
        self.reason = reason
        self.detail = detail
        self.attempts = attempts

    @property
    def retryable(self) -> bool:
        """Whether a new child may do better."""
        return self.reason not in (ERROR, UNAVAILABLE)
