"""Trees of HTML pages (lexbor), queries on them, and the bounds within which a tree may be built in this process.

With the nesting depth of the page pass, building a tree walks up some of the open elements for every tag, 4 ns each.
If not, the time grows with the square of the page's size. Invariant: a tree within `tree_fits` takes at most 0.05 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

MAX_BYTES: Final = 256 << 10
"""Bytes of a page. A larger page is read in a child process: its trees alone take milliseconds."""
MAX_DEPTH: Final = 120
"""Nested elements. Real pages have fewer than 60."""
MAX_LEVELS: Final = 50_000_000
"""Tags times depth of a tree that a command builds in its own process: 0.2 s."""


def tree_fits(size_bytes: int, depth: int) -> bool:
    """Whether a tree of the page may be built on the event loop; `depth` is `PagePass.depth`."""
    return size_bytes <= MAX_BYTES and depth <= MAX_DEPTH


def tree_is_linear(body: bytes, depth: int) -> bool:
    """Whether a command may build a tree of the page in its own process. O(bytes)."""
    return body.count(b"<") * max(depth, 1) <= MAX_LEVELS


def html_tree(source: str | bytes) -> Any:
    """lexbor's tree of HTML. Bytes must be UTF-8; a text is encoded first, which takes longer than the tree. O(n)
    within `tree_is_linear`, else up to O(n^2)."""
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    # With events each <option> walks through all options before it. Without events <selectedcontent> stays empty; no
    # code reads it.
    return LexborHTMLParser(source, options=int(LexborDocumentOptions.WO_EVENTS))


def content_of_template(node: Any) -> str:
    """The source of the content of a <template>, which is no part of its tree, in a <div>. O(bytes)."""
    source = str(node.html)
    return f"<div{source[len('<template') : -len('</template>')]}</div>"


@cache
def _selector() -> Any:
    # Shared by all trees, not thread-safe. A selector per tree would cost the time of five selections.
    from selectolax.lexbor import LexborCSSSelector

    made: Any = LexborCSSSelector
    return made()


def css(node: Any, expression: str) -> list[Any]:
    """Elements that a selector matches in `node` and below it, in document order."""
    elements: list[Any] = _selector().find(expression, node)
    return elements


def css_first(node: Any, expression: str) -> Any:
    """The first element that a selector matches, or None."""
    elements = _selector().find_first(expression, node)
    return elements[0] if elements else None


def one_by_one(node: Any, expression: str) -> Iterator[Any]:
    """As `css`, lazily: the first element by a search that stops there, the others only on demand."""
    first = css_first(node, expression)
    if first is not None:
        yield first
        yield from css(node, expression)[1:]
