"""Where a named value stands in a page, as selections that give it: JSON-LD, microdata, meta elements, elements by CSS,
elements beside a label by XPath.

Each selection is one that some place of the value suggests; whether it gives the value, on this page and on others, is
for the caller to try. O(elements) per value, and a bounded number of selections.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from nephila.parser.page.html_tree import css

from nephila_rules.induction.css_paths import is_given_name, paths
from nephila_rules.induction.page_texts import ATTRIBUTES, MAX_CHARS, PageTexts, Place, elements_below
from nephila_rules.induction.wanted import folded, folded_quotes, is_same
from nephila_rules.runtime.document import Document, lexbor_text
from nephila_rules.runtime.spec import Selection

MAX_PLACES: Final = 12
"""Elements with the value that selectors are made of."""
MAX_ALIKE: Final = 3
"""Elements of the same tag and class below the same."""
MAX_TEXT_CHARS: Final = 20_000
"""An element with more text is not searched for a part."""
MAX_LABEL_CHARS: Final = 40
PAGES_KEPT: Final = 8
"""Pages whose texts are kept: those with named values."""
_SKIPPED: Final = frozenset(("script", "style", "template", "noscript", "html", "head", "-comment", "-text", None))
"""None: an instruction, as <?xml ?>."""
_LISTS: Final = frozenset(("ul", "ol", "dl", "table", "tbody", "tr", "select"))
"""Elements that hold several values; with one value they have the same text as it."""
_KEY: Final = re.compile(r"[A-Za-z_]\w*$")

LD, ITEMPROP, META, CSS, LABEL = 0.5, 1.0, 1.2, 1.5, 2.6
"""Cost of a source; the smaller, the longer it is likely to hold."""


class Candidate(NamedTuple):
    """A selection that may give a field."""

    selection: Selection
    cost: float


def candidates(document: Document, value: str, scope: Any = None) -> Iterator[Candidate]:
    """Selections for a value, each once. `scope`: the element that they are relative to; None: the document."""
    seen = set()
    for candidate in _all(document, value, scope):
        if candidate.selection not in seen:
            seen.add(candidate.selection)
            yield candidate


def _all(document: Document, value: str, scope: Any) -> Iterator[Candidate]:
    if scope is None:
        yield from _of_json_ld(document, value)
        yield from _of_itemprops(document, value)
        yield from _of_metas(document, value)
        yield from _of_links(document, value)
    whole = list(islice(nodes_with(document, value, scope), MAX_PLACES))
    for node, attribute in whole:
        yield from _of_node(node, attribute, scope)
    if not whole:
        for node in islice(_nodes_around(document, value, scope), MAX_PLACES):
            for candidate in _of_node(node, "", scope):
                yield Candidate(candidate.selection, candidate.cost + 2.0)


def _of_json_ld(document: Document, sought: str) -> Iterator[Candidate]:
    for entity in document.ld:
        kind = entity.get("@type")
        name = kind[0] if isinstance(kind, list) and kind else kind
        if not isinstance(name, str):
            continue
        for path, value in _leaves(entity, "$", 3):
            if is_same(value, sought, document.url):
                short = re.split("[/:#]", name)[-1]
                yield Candidate(Selection("jsonld", short, path="jsonpath", query=path), LD + 0.1 * path.count("."))


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        if depth:
            for key, member in value.items():
                if _KEY.match(key):
                    yield from _leaves(member, f"{path}.{key}", depth - 1)
    elif isinstance(value, list):
        if value:
            yield from _leaves(value[0], f"{path}[0]", depth)
    else:
        yield path, value


def _of_itemprops(document: Document, value: str) -> Iterator[Candidate]:
    from nephila_rules.runtime.select import select, value_or_text

    names = {
        name for node in css(document.tree.root, "[itemprop]") for name in (node.attributes["itemprop"] or "").split()
    }
    for name in sorted(names):
        selection = Selection("itemprop", name)
        if any(
            is_same(value_or_text(raw), value, document.url) for raw in islice(select(selection, document, None), 50)
        ):
            yield Candidate(selection, ITEMPROP)


def _of_metas(document: Document, value: str) -> Iterator[Candidate]:
    for name in dict.fromkeys(document.meta_names):
        if name and any(is_same(content, value, document.url) for content in document.metas(name)):
            yield Candidate(Selection("meta", name), META)


def _of_links(document: Document, sought: str) -> Iterator[Candidate]:
    """The link elements of the head: next, canonical and the like."""
    for node in css(document.tree.root, "link[rel]"):
        rel = node.attributes["rel"] or ""
        for attribute in ("href", "title"):
            value = node.attributes.get(attribute)
            if value and re.fullmatch(r"[\w-]+", rel) and is_same(value, sought, document.url):
                yield Candidate(Selection("css", f'link[rel="{rel}"]', attr=attribute), META)


def nodes_with(document: Document, value: str, scope: Any) -> Iterator[tuple[Any, str]]:
    """(element, attribute or "") whose text or attribute is the value, the innermost elements first. Few of a kind: a
    word of a list may stand in the text a hundred times."""
    indexed = scope is None and 3 * len(value) + 200 <= MAX_CHARS
    matches = [
        (-spot.depth, spot.node, spot.attribute)
        for spot in (_page_texts(document).of(value) if indexed else _scanned(document, value, scope))
        if spot.chars <= (4 if spot.attribute else 3) * len(value) + 200
    ]
    matches.sort(key=lambda match: match[0])
    alike: Counter[str] = Counter()
    for _, node, attribute in matches:
        key = f"{attribute} {_kind(node)} {_kind(node.parent)}"
        alike[key] += 1
        if alike[key] <= MAX_ALIKE:
            yield node, attribute


def _kind(node: Any) -> str:
    return (
        f"{node.tag}.{node.attributes.get('class') or ''}" if node is not None and node.attributes is not None else ""
    )


@lru_cache(maxsize=PAGES_KEPT)
def _page_texts(document: Document) -> PageTexts:
    return PageTexts(document)


def _scanned(document: Document, sought: str, scope: Any) -> Iterator[Place]:
    """The places of a long value, or of one in a part of the page."""
    plain = folded_quotes(sought)
    for node, depth in _elements(document, scope):
        for attribute in ATTRIBUTES:
            value = node.attributes.get(attribute)
            if value and len(value) <= 4 * len(sought) + 200 and is_same(value, sought, document.url):
                yield Place(0, depth, len(value), node, attribute)
        chars = len(node.text(deep=True))
        if chars <= 3 * len(sought) + 200 and _text_is(node, sought, plain, document.url):
            yield Place(0, depth, chars, node, "")


def _text_is(node: Any, value: str, plain: str, base: str) -> bool:
    text = folded(lexbor_text(node))
    return bool(text) and (folded_quotes(text) == plain or is_same(text, value, base))


def _nodes_around(document: Document, value: str, scope: Any) -> Iterator[Any]:
    """Elements whose text has the value as a part, the innermost first."""
    matches = []
    for node, depth in _elements(document, scope):
        if len(text := node.text(deep=True)) <= MAX_TEXT_CHARS and value in folded(text):
            matches.append((len(text), -depth, node))
    matches.sort(key=lambda match: match[:2])
    return (node for _, _, node in matches)


def _elements(document: Document, scope: Any) -> Iterator[tuple[Any, int]]:
    """Elements below the scope and their depth, in document order."""
    return elements_below(scope.node if scope is not None else document.tree.body)


def _of_node(node: Any, attribute: str, scope: Any) -> Iterator[Candidate]:
    extra = 0.3 if attribute in ("title", "alt") else 1.0 if node.tag in _LISTS else 0.0
    for path in paths(node, scope.node if scope is not None else None):
        yield Candidate(Selection("css", path.expression, attr=attribute), CSS + path.cost + extra)
    if scope is None:
        yield from _beside_labels(node, attribute)


def _beside_labels(node: Any, attribute: str) -> Iterator[Candidate]:
    """`//dt[normalize-space()="Price"]/following-sibling::dd[1]`, also where label and value have own boxes."""
    suffix = f"/@{attribute}" if attribute else ""
    inner, element = "", node
    for _ in range(3):
        label, tag = _label_before(element)
        if label:
            expression = f'//{tag}[normalize-space()="{label}"]/following-sibling::{element.tag}[1]{inner}{suffix}'
            yield Candidate(Selection("xpath", expression), LABEL + 0.5 * inner.count("/"))
        if element.parent is None or element.parent.tag in ("body", "html"):
            return
        inner, element = f"/{element.tag}[1]{inner}", element.parent


def _label_before(node: Any) -> tuple[str, str]:
    """Text and tag of the element before, if it is a label: short, ending in a colon, or a dt, th, label, strong, b."""
    before = node.prev
    while before is not None and before.tag in ("-text", "-comment"):
        if before.tag == "-text" and (before.text(deep=False) or "").strip():
            return "", ""
        before = before.prev
    if before is None or before.tag in _SKIPPED:
        return "", ""
    text = folded(before.text(deep=True))
    if not text or len(text) > MAX_LABEL_CHARS or '"' in text:
        return "", ""
    named = any(
        is_given_name(class_name) and re.search("label|name|key|title|term", class_name)
        for class_name in (before.attributes.get("class") or "").split()
    )
    if (
        before.tag in ("dt", "th", "label", "strong", "b")
        or text.endswith(":")
        or named
        or (before.tag == node.tag == "td")
    ):
        return text, str(before.tag)
    return "", ""
