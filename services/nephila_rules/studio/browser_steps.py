"""Steps of a browser in a draft: selectors for their elements, and picks that find their elements again afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace
from nephila.kernel.documents.browser_schema import Browser
from nephila.kernel.documents.browser_schema import Step as BrowserStep
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import from_builtins
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.page.html_tree import css

from nephila_rules.induction.css_paths import paths
from nephila_rules.runtime.document import Document
from nephila_rules.studio.draft import MAX_STEPS, Draft, Pick
from nephila_rules.studio.numbering import elements, value_of

OF_CLICK: Final[Mapping[str, str]] = {"step_click": "click", "step_more": "more", "step_wait": "wait"}
"""Click of a person → key of the step."""
_PRESSED: Final = frozenset(("a", "button", "summary", "label", "option"))
MAX_ABOVE: Final = 4
_SEVERAL: Final = 3.0
"""Cost of a selector whose first element of several is the right one."""


def with_step(draft: Draft, action: str, value: str | int, *, optional: bool = False) -> Draft:
    """The draft with one more step. Raises `UsageError` for a value that a step cannot have."""
    if len(draft.steps) >= MAX_STEPS:
        raise UsageError(f"a rule made here has at most {MAX_STEPS} steps")
    content: dict[str, Any] = {action: value, **({"optional": True} if optional else {})}
    (step,) = _checked([content])
    return replace(draft, steps=(*draft.steps, step), mode="new")


def browser_of(draft: Draft) -> Browser:
    """What a browser does for the pages of the draft. Raises `UsageError` for steps that were not made here."""
    return Browser(steps=_checked([content_of(step) for step in draft.steps]))


def content_of(step: BrowserStep) -> dict[str, Any]:
    """A step as people write it, without defaults."""
    defaults = zip(reversed(step.__struct_fields__), reversed(step.__struct_defaults__), strict=False)
    return {name: value for name, default in defaults if (value := getattr(step, name)) != default}


def _checked(steps: list[dict[str, Any]]) -> list[BrowserStep]:
    return read(from_builtins({"steps": steps}, "step"), Browser).steps


def selector_of(clicked: Any, document: Document) -> str:
    """CSS whose first element is this one, or the link or button around it. Raises `UsageError`."""
    node = _pressed(clicked)
    selectors = []
    for path in paths(node):
        matches = css(document.tree.root, path.expression)[:2]
        if matches and matches[0].mem_id == node.mem_id:
            selectors.append((path.cost + _SEVERAL * (len(matches) > 1), path.expression))
    if not selectors:
        raise UsageError("no selector leads to this element; click another one, or write the selector")
    return min(selectors)[1]


def _pressed(clicked: Any) -> Any:
    node = clicked
    for _ in range(MAX_ABOVE):
        if node is None or node.tag in ("body", "html"):
            break
        if node.tag in _PRESSED or node.attributes.get("role") == "button" or "onclick" in node.attributes:
            return node
        node = node.parent
    return clicked


def moved(draft: Draft, before: Document, after: Document) -> Draft:
    """The draft with the numbers that its elements have in the page rendered again. An element is found again by its
    tag, classes and text, and its place among those that are equal; a pick of one that is gone is dropped."""
    picked = {pick.node for field in draft.fields for pick in field.picks if pick.url == draft.url}
    if not picked:
        return draft
    picked_nodes = {number: node for number, node in enumerate(elements(before)) if number in picked}
    kinds = {_kind(node) for node in picked_nodes.values()}
    signs = _by_sign(after, kinds)
    places = {
        node.mem_id: (sign, at) for sign, nodes in _by_sign(before, kinds).items() for at, (_, node) in enumerate(nodes)
    }
    numbers: dict[int, int] = {}
    for number, node in picked_nodes.items():
        sign, at = places[node.mem_id]
        if at < len(signs[sign]):
            numbers[number] = signs[sign][at][0]
    fields = tuple(replace(field, picks=tuple(_moved(field.picks, draft.url, numbers))) for field in draft.fields)
    return replace(draft, fields=fields)


def _moved(picks: tuple[Pick, ...], url: str, numbers: Mapping[int, int]) -> list[Pick]:
    return [
        replace(pick, node=numbers[pick.node]) if pick.url == url else pick
        for pick in picks
        if pick.url != url or pick.node in numbers
    ]


_Kind = tuple[str, str]
_Sign = tuple[_Kind, str]


def _kind(node: Any) -> _Kind:
    return str(node.tag), " ".join(sorted((node.attributes.get("class") or "").split()))


def _by_sign(document: Document, kinds: set[_Kind]) -> defaultdict[_Sign, list[tuple[int, Any]]]:
    by_sign: defaultdict[_Sign, list[tuple[int, Any]]] = defaultdict(list)
    for number, node in enumerate(elements(document)):
        kind = _kind(node)
        if kind in kinds:
            text = value_of(node, "src" if node.tag == "img" else "")
            by_sign[kind, text].append((number, node))
    return by_sign
