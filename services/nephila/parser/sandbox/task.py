"""A task of the sandbox, its limits, and the error of a failed call. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Out = TypeVar("Out")

ATTEMPTS: Final = 2
"""A child may fail because of an earlier payload: a second attempt in a new child decides."""

TIMEOUT: Final = "timeout"
MEMORY: Final = "memory"
CRASH: Final = "crash"
RESULT: Final = "result"
"""The result is too long or malformed: the child is no longer trusted."""
ERROR: Final = "error"
"""The task's own code raised an exception; the child continues."""
UNAVAILABLE: Final = "unavailable"
"""The task cannot run here at all: a library is missing, or the system cannot start children."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Out]):
    """One kind of work. Payloads and results are untrusted."""

    name: str
    module: str
    """Module that the child imports. It has `run(payload: bytes) -> bytes` and imports all that `run` needs: later no
    file can be opened."""
    decode: Callable[[bytes], Out]
    """Decodes and checks a result; raises `ValueError` or `msgspec.MsgspecError` for a malformed one."""
    arguments: tuple[str, ...] = ()
    """What `prepare(*arguments)` of the module gets before the child is locked down; empty: it is not called. A task
    with other arguments gets new children."""
    wall_s: float = 10.0
    """Time limit of one call, seconds."""
    memory_bytes: int = 512 << 20
    """Address space of a child beyond that at its start."""
    max_result_bytes: int = 16 << 20


class ChildError(Exception):
    """A failed call; `reason` is one of the constants above, `detail` is for people."""

    def __init__(self, task: str, reason: str, detail: str = "", attempts: int = 1) -> None:
        text = (
            f"{task}: {reason}"
            + (f" ({detail})" if detail else "")
            + (f", tried {attempts} times" if attempts > 1 else "")
        )
        super().__init__(text)
        self.task = task
        self.reason = reason
        self.detail = detail
        self.attempts = attempts

    @property
    def retryable(self) -> bool:
        """Whether a new child may succeed."""
        return self.reason not in (ERROR, UNAVAILABLE)
