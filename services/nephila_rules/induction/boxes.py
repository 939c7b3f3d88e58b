"""The box of one item on a page with many: from two values of one field, a selector of the elements that hold one each.

The two elements are followed up to where their ways meet; what is just below is the first and the second item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from nephila.parser.page.html_tree import css

from nephila_rules.induction.css_paths import paths
from nephila_rules.runtime.document import Document

MAX_BOXES: Final = 1000


class Boxes(NamedTuple):
    """A selector of items."""

    expression: str
    items: int
    """Items on the page."""
    cost: float


def boxes_around(document: Document, nodes: Sequence[Any]) -> list[Boxes]:
    """Selectors of boxes that hold exactly one of the elements each, the best first; none for fewer than two elements
    or where one holds another."""
    if len(nodes) < 2:
        return []
    chains = [_above(node) for node in nodes]
    shared = {node.mem_id for node in chains[0]}.intersection(
        *({node.mem_id for node in chain} for chain in chains[1:])
    )
    if any(node.mem_id in shared for node in nodes):
        return []
    # The children of the common element, and elements between a child and the value: a card in a grid cell.
    selectors = [boxes for level in _levels(chains, shared) if (boxes := _selector(document, level)) is not None]
    return sorted(selectors, key=lambda boxes: boxes.cost)


def _above(node: Any) -> list[Any]:
    """The element and all above it."""
    chain = []
    while node is not None and not node.tag.startswith("-"):
        chain.append(node)
        node = node.parent
    return chain


def _below_shared(chain: Sequence[Any], shared: set[int]) -> list[Any]:
    return [node for node in chain if node.mem_id not in shared]


def _levels(chains: Sequence[Sequence[Any]], shared: set[int]) -> list[list[Any]]:
    own = [list(reversed(_below_shared(chain, shared))) for chain in chains]
    return [[elements[depth] for elements in own] for depth in range(min(3, *(len(elements) for elements in own)))]


def _selector(document: Document, level: Sequence[Any]) -> Boxes | None:
    ids = {node.mem_id for node in level}
    best: Boxes | None = None
    depth = 1.0 if level[0].child is None else 0.0
    for path in paths(level[0]):
        nodes = css(document.tree.root, path.expression)[:MAX_BOXES]
        if not ids.issubset({node.mem_id for node in nodes}) or _nested(nodes):
            continue
        # Boxes that are siblings are items; a selector of few letters may take others of the page as well.
        strangers = sum(node.parent.mem_id != level[0].parent.mem_id for node in nodes if node.parent is not None)
        cost = path.cost + depth + 4.0 * strangers / len(nodes)
        if best is None or cost < best.cost:
            best = Boxes(path.expression, len(nodes), cost)
    return best


def _nested(nodes: Sequence[Any]) -> bool:
    ids = {node.mem_id for node in nodes}
    return any(above.mem_id in ids for node in nodes for above in _above(node.parent))
