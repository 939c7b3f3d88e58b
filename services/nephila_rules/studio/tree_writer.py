"""The walk of a writer of pages: iterative, bounded in size and depth. What is written for a node is its subclass's."""

from __future__ import annotations

from typing import Any, Final

MAX_DEPTH: Final = 200
"""Deeper elements are written without tags."""


class TreeWriter:
    def __init__(self, max_chars: int) -> None:
        self.whole = True
        self._left = max_chars

    def write(self, root: Any) -> None:
        """Writes the element and all below it."""
        node, opened = root, []  # type: ignore[var-annotated]
        while node is not None:
            end = self._open(node, len(opened)) if self._left > 0 else None
            if end is not None and node.child is not None:
                opened.append(end)
                node = node.child
                continue
            if end:
                self._put(end)
            while node is not None and node.next is None:
                if node.mem_id == root.mem_id or not opened:
                    return
                self._put(opened.pop())
                node = node.parent
            if node is None or node.mem_id == root.mem_id:
                return
            node = node.next
        self.whole = self._left > 0

    def _put(self, text: str) -> None:
        self._append(text)
        self._left -= len(text)
        if self._left <= 0:
            self.whole = False

    def _append(self, text: str) -> None:
        raise NotImplementedError

    def _open(self, node: Any, depth: int) -> str | None:
        """Writes the start of a node; returns its end, or None where what is below it is left out."""
        raise NotImplementedError
