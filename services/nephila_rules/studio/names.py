"""A name for a field from what the page calls it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from nephila_rules.induction.css_paths import is_given_name
from nephila_rules.induction.wanted import folded
from nephila_rules.runtime.document import lexbor_text
from nephila_rules.studio.draft import Source
from nephila_rules.studio.numbering import is_element

_TAGS: Final = {
    "h1": "title",
    "h2": "title",
    "h3": "title",
    "title": "title",
    "time": "date",
    "img": "image",
    "address": "address",
}
_META: Final = {"article:published_time": "published", "og:title": "title", "og:image": "image"}
_LAYOUT_WORDS: Final = """
box block wrap wrapper container content inner outer text txt main left right top bottom item items list row col
column section body card cell value label field product page article entry post detail details info large small big
bold lead title-wrapper media widget module
"""
_LAYOUT: Final = frozenset(_LAYOUT_WORDS.split())
"""Words of class names that say where something is, not what."""


def name_of(node: Any, take: Source, kind: str, taken: Collection[str]) -> str:
    """A name that no other field has."""
    base = next((suggestion for text in _suggested(node, take, kind) if (suggestion := _as_name(text))), "field")
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base[:55]}_{number}"
    return name


def _suggested(node: Any, take: Source, kind: str) -> Any:
    """Words for it, the best first."""
    if take.source == "meta":
        yield _META.get(take.expression, take.expression.rpartition(":")[2])
    if take.source == "itemprop":
        yield take.expression
    if take.source == "jsonld":
        yield {"datePublished": "published", "headline": "title"}.get(_last(take.query), _last(take.query))
    attributes = node.attributes
    yield from (attributes.get("itemprop"), _META.get(attributes.get("property") or ""))
    yield _TAGS.get(node.tag, "")
    yield from _of_classes(node)
    if kind in ("price", "date"):
        yield kind
    yield _label(node)
    if node.parent is not None and node.parent.tag not in ("body", "html", "-document"):
        yield from _of_classes(node.parent)
    yield {"a": "link", "li": "item"}.get(node.tag, "")


def _last(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path).rpartition(".")[2]


def _of_classes(node: Any) -> Any:
    own = [node.attributes.get("id") or "", *(node.attributes.get("class") or "").split()]
    for label in own:
        if not is_given_name(label):
            continue
        words = [word for word in re.split("[-_]+", label) if word.lower() not in _LAYOUT and not word.isdecimal()]
        if words:
            yield words[-1]


def _label(node: Any) -> str:
    """The text before it where it ends in a colon or is a dt or th."""
    before = node.prev
    while before is not None and before.tag == "-text" and not (before.text_content or "").strip():
        before = before.prev
    if before is None or not is_element(before):
        return ""
    text = folded(lexbor_text(before))
    return (
        text if len(text) <= 30 and (text.endswith(":") or before.tag in ("dt", "th", "label", "strong", "b")) else ""
    )


def _as_name(text: str | None) -> str:
    if not text:
        return ""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)
    return re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_").lower().lstrip("0123456789_")[:60]
