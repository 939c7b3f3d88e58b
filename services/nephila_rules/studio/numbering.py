"""Elements of a page by number: their place in document order. The same bytes give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nephila_rules.induction.wanted import folded
from nephila_rules.runtime.document import Document, lexbor_text

MAX_ELEMENTS: Final = 200_000


def is_element(node: Any) -> bool:
    """Whether a node is an element: texts, comments, the document and instructions are not."""
    return node.tag is not None and not node.tag.startswith("-")


def elements(document: Document) -> Iterator[Any]:
    """All elements in document order, those that are not shown too. O(nodes), without recursion."""
    count, node, top = 0, document.tree.root, document.tree.root
    while node is not None and count < MAX_ELEMENTS:
        if is_element(node):
            yield node
            count += 1
        below = node.child
        while below is None and node is not None:
            if node.mem_id == top.mem_id:
                return
            below = node.next
            node = node.parent if below is None else node
        node = below


def numbers(document: Document) -> dict[int, int]:
    """Identity of an element → its number."""
    return {node.mem_id: number for number, node in enumerate(elements(document))}


def element(document: Document, number: int) -> Any:
    """The element of a number, or None."""
    return next((node for at, node in enumerate(elements(document)) if at == number), None)


def value_of(node: Any, attr: str) -> str:
    """What a pick of the element names."""
    return folded((node.attributes.get(attr) or "") if attr else lexbor_text(node))
