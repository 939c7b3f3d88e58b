"""CSS selectors of an element, the ones that last first: names that people gave before positions.

Classes and ids made by programs (hashes, counters) are left out: they change with the next build of the site. Bounded:
at most `MAX_PATHS` selectors per element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

MAX_PATHS: Final = 120
MAX_ABOVE: Final = 8
"""Elements above that a selector may begin at."""
MAX_CLASSES: Final = 6
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,60}$")
_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_VOWEL: Final = re.compile(r"[aeiouy]", re.IGNORECASE)
_SHORT: Final = frozenset(
    ("btn", "nav", "hd", "bd", "txt", "img", "lg", "md", "sm", "xs", "xl", "tbl", "ctr", "src", "col")
)
_STATE: Final = re.compile(
    r"^(active|selected|open|closed|hidden|visible|first|last|odd|even|current|hover|focus|disabled|in|clearfix|row)$"
)
"""Classes that say in which state or where an element is, not what it is."""
_KEPT_ATTRIBUTES: Final = (
    "itemprop",
    "data-testid",
    "data-test",
    "data-qa",
    "data-field",
    "property",
    "rel",
    "name",
    "role",
)
_OWN: Final = 1.0
_STEP: Final = 0.5
_TAG: Final = 2.5
_POSITION: Final = 4.0


class CssPath(NamedTuple):
    """A selector; the smaller the cost, the longer it is likely to hold."""

    expression: str
    cost: float


def is_given_name(name: str) -> bool:
    """Whether a class or id looks like a word that a person wrote; hashes and counters do not."""
    if not _NAME.match(name) or _STATE.match(name):
        return False
    parts = [part for word in re.split("[-_]+", name) if word for part in _PARTS.findall(word)]
    digits = [part for part in parts if part.isdigit()]
    words = [part for part in parts if not part.isdigit()]
    if not words or sum(map(len, digits)) > 2 or len(digits) > 1:
        return False
    spoken = [word for word in words if word.lower() in _SHORT or (len(word) > 2 and _VOWEL.search(word))]
    # "kQzRt", "sc1aBq": many short parts of mixed case within one word.
    mixed = any(len(_PARTS.findall(word)) > 4 for word in re.split("[-_]+", name))
    return bool(spoken) and 2 * len(spoken) >= len(words) and not mixed


def paths(node: Any, root: Any = None) -> Iterator[CssPath]:
    """Selectors that match the element, the cheapest not always first. `root`: the element that they are relative to;
    None: the document."""
    return islice(_paths(node, root), MAX_PATHS)


def _paths(node: Any, root: Any) -> Iterator[CssPath]:
    own = list(_features(node))
    yield from own
    above, steps, position = _parent(node, root), 1, _position(node)
    while above is not None and steps <= MAX_ABOVE:
        for outer in islice(_features(above, tag=False), 3):
            for inner in own[:4]:
                yield CssPath(f"{outer.expression} {inner.expression}", outer.cost + inner.cost + _STEP * steps * 0.3)
            if steps == 1:
                yield CssPath(f"{outer.expression} > {node.tag}", outer.cost + _TAG)
            yield CssPath(f"{outer.expression} > {position}", outer.cost + _POSITION + _STEP * steps)
        position = f"{_position(above)} > {position}"
        above, steps = _parent(above, root), steps + 1
    yield CssPath(position, 3 * _POSITION + _STEP * steps)


def _features(node: Any, *, tag: bool = True) -> Iterator[CssPath]:
    """What names the element itself."""
    attributes, name = node.attributes, node.tag
    for attribute in _KEPT_ATTRIBUTES:
        value = attributes.get(attribute)
        if value and len(value) < 60 and _quotable(value):
            yield CssPath(f'{name}[{attribute}="{value}"]', _OWN)
    own_id = attributes.get("id") or ""
    if is_given_name(own_id):
        yield CssPath(f"#{own_id}", _OWN)
    classes = [class_name for class_name in (attributes.get("class") or "").split() if is_given_name(class_name)][
        :MAX_CLASSES
    ]
    for class_name in classes:
        yield CssPath(f".{class_name}", _OWN + 0.2)
    for class_name in classes:
        yield CssPath(f"{name}.{class_name}", _OWN + 0.4)
    for class_name, next_class in pairwise(classes):
        yield CssPath(f".{class_name}.{next_class}", _OWN + 0.6)
    if tag:
        yield CssPath(name, _TAG if name not in ("h1", "time", "title", "main", "article") else _OWN + 0.5)


def _quotable(value: str) -> bool:
    return not any(sign in value for sign in '"\\\n') and value.isprintable()


def _position(node: Any) -> str:
    """Its tag, with its number among the siblings of the tag where there are several."""
    number, count, sibling = 0, 0, node.parent.child if node.parent is not None else node
    while sibling is not None:
        if sibling.tag == node.tag:
            count += 1
            if sibling.mem_id == node.mem_id:
                number = count
        sibling = sibling.next
    return f"{node.tag}:nth-of-type({number})" if count > 1 else str(node.tag)


def _parent(node: Any, root: Any) -> Any:
    above = node.parent
    if (
        above is None
        or above.tag in ("html", "-undef", "#document")
        or (root is not None and above.mem_id == root.mem_id)
    ):
        return None
    return above
