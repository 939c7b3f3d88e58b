"""Main text as Markdown (CommonMark with tables): headings, nested lists, tables, code with its language, quotes, links
and images of the parts that the page pass chose.

Reads a tree, which the hot path never builds. read.py cuts the tree into blocks, choose.py keeps those of the main
text, write.py writes them. Invariants: no recursion; at most MAX_NODES nodes are read, MAX_CHARS characters written and
MAX_DEPTH lists or quotes nested; what a page says cannot become markup of ours but by its own elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nephila.parser.markdown.choose import choose
from nephila.parser.markdown.read import MAX_DEPTH, MAX_NODES, read
from nephila.parser.markdown.write import MAX_CHARS, write

__all__ = ["MAX_CHARS", "MAX_DEPTH", "MAX_NODES", "markdown"]


def markdown(tree: Any, main_text: str, resolve: Callable[[str], str]) -> str:
    """Markdown of the blocks of `main_text`, found again in `tree` (selectolax); `resolve` makes a link absolute or "".

    A line that the tree has not (its markup was repaired otherwise) is missing. O(nodes).
    """
    body = tree.body
    if body is None or not main_text:
        return ""
    return write(choose(read(body, resolve), main_text))
