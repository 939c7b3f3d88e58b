"""The sandbox for commands, which have no event loop: one child per task, calls block.

Invariant: no child outlives the `with` block.
"""

from __future__ import annotations

from typing import Any

from nephila.parser.sandbox.process import ChildProcess
from nephila.parser.sandbox.task import ATTEMPTS, UNAVAILABLE, ChildError, Out, Task


class BlockingSandbox:
    """`Sandbox` without a loop; a context manager, not thread-safe."""

    def __init__(self) -> None:
        self._children: dict[str, ChildProcess] = {}
        self._unavailable: dict[str, ChildError] = {}

    def __enter__(self) -> BlockingSandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the running children."""
        return [child.pid for child in self._children.values()]

    def call(self, task: Task[Out], payload: bytes, *, wall_s: float = 0.0, attempts: int = ATTEMPTS) -> Out:
        if task.name in self._unavailable:
            raise self._unavailable[task.name]
        for count in range(1, attempts + 1):
            try:
                answer: Out = self._call_once(task, payload, wall_s or task.wall_s)
            except ChildError as failure:
                if failure.reason == UNAVAILABLE:
                    self._unavailable[task.name] = failure
                if count < attempts and failure.retryable:
                    continue
                raise ChildError(task.name, failure.reason, failure.detail, count) from None
            return answer
        raise ValueError(f"attempts must be at least 1, got {attempts}")

    def _call_once(self, task: Task[Any], payload: bytes, wall_s: float) -> Any:
        child = self._children.pop(task.name, None)
        if child is not None and child.task != task:
            child.stop_blocking()
            child = None
        try:
            if child is None:
                child = ChildProcess(task)
                child.ready_blocking()
            answer = child.request_blocking(payload, wall_s)
        except BaseException as error:
            if child is not None and isinstance(error, ChildError) and not error.retryable and child.calls:
                self._children[task.name] = child
            elif child is not None:
                child.stop_blocking()
            raise
        self._children[task.name] = child
        return answer

    def close(self) -> None:
        while self._children:
            self._children.popitem()[1].stop_blocking()
