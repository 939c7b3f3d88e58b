"""The sandbox for commands, which have no loop: one child for each task, the caller waits.

Invariant: no child outlives the `with` block.
"""

from __future__ import annotations

from typing import Any

from nephila.parser.sandbox.process import Child
from nephila.parser.sandbox.task import TRIES, UNAVAILABLE, Broken, Out, Task


class BlockingSandbox:
    """`Sandbox` without a loop; a context manager. Not for several threads."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}
        self._refused: dict[str, Broken] = {}

    def __enter__(self) -> BlockingSandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the children there are."""
        return [child.pid for child in self._children.values()]

    def call(self, task: Task[Out], payload: bytes, *, wall_s: float = 0.0, tries: int = TRIES) -> Out:
        """See `Sandbox.call`."""
        if task.name in self._refused:
            raise self._refused[task.name]
        for count in range(1, tries + 1):
            try:
                found: Out = self._once(task, payload, wall_s or task.wall_s)
            except Broken as broken:
                if broken.reason == UNAVAILABLE:
                    self._refused[task.name] = broken
                if count < tries and broken.worth_another:
                    continue
                raise Broken(task.name, broken.reason, broken.detail, count) from None
            return found
        raise ValueError(f"tries must be at least 1, got {tries}")

    def _once(self, task: Task[Any], payload: bytes, wall_s: float) -> Any:
        child = self._children.pop(task.name, None)
        try:
            if child is None:
                child = Child(task)
                child.ready_now()
            found = child.ask_now(payload, wall_s)
        except BaseException as error:
            if child is not None and isinstance(error, Broken) and not error.worth_another and child.calls:
                self._children[task.name] = child
            elif child is not None:
                child.end_now()
            raise
        self._children[task.name] = child
        return found

    def close(self) -> None:
        """End all children."""
        while self._children:
            self._children.popitem()[1].end_now()
