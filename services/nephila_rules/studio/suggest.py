"""Selectors for a field of a draft: where the values are that a person pointed at, the kinds in a fixed order.

Structured data first (JSON-LD, microdata, meta), then CSS, then XPath. The one that is proposed is that of the lowest
cost (`induction`): how it does on the other pages counts more than its kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from cssselect import HTMLTranslator, SelectorError
from nephila.parser.page.html_tree import css

from nephila_rules.induction.css_paths import is_given_name, paths
from nephila_rules.induction.induce import Choice, Example, induce
from nephila_rules.induction.wanted import folded, type_of
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.select import LexborElement, select, value_or_text
from nephila_rules.runtime.spec import Selection
from nephila_rules.studio.draft import Draft, DraftField, Pick, Source
from nephila_rules.studio.numbering import element, value_of
from nephila_rules.studio.rule import selection_of
from nephila_rules.studio.seen import Offer

OF_KIND: Final = {"data": 2, "css": 3, "xpath": 2}
"""Selectors of a kind that are offered."""
_ELSEWHERE: Final = 3.0
"""Cost of a selector that gives the value from another element than the one pointed at."""
_ODD: Final = 6.0
"""Cost of a list of which no element stands where the picked ones do."""
_FEW: Final = 6.0
"""Cost of a list, divided by its elements that stand there: a second value means the whole list."""
MAX_VALUES: Final = 500


class Pages(NamedTuple):
    """The pages of a draft."""

    shown: Document
    named: Mapping[str, Document]
    """By URL, the shown one too: pages with picks."""
    others: Sequence[Document]


def kind_of(source: str) -> str:
    """The kind of a selector by its source."""
    return source if source in ("css", "xpath") else "data"


def source_of(selection: Selection) -> Source:
    """The selection as a draft has it."""
    return Source(**{name: getattr(selection, name) for name in Source.__struct_fields__})


def offers(draft: Draft, field: DraftField, pages: Pages) -> list[Offer]:
    """Selectors that give every picked value and none of the refused ones: structured data, CSS, XPath."""
    example = DraftField("field", many=field.many, picks=field.picks)
    return list(_offers(draft.each, example, pages.shown, tuple(pages.named.items()), tuple(pages.others)))


@lru_cache(maxsize=1)
def _offers(
    each: str,
    field: DraftField,
    first_page: Document,
    named: tuple[tuple[str, Document], ...],
    others: tuple[Document, ...],
) -> list[Offer]:
    """The last answer is kept: a click asks for it, and so does the screen behind it."""
    pages = Pages(first_page, dict(named), others)
    all_offers = _in_boxes(each, field, pages) if each else _of_pages(field, pages)
    all_offers.sort(key=lambda offer: offer.cost)
    chosen: list[Offer] = []
    for kind, most in OF_KIND.items():
        chosen += _distinct([offer for offer in all_offers if offer.kind == kind])[:most]
    return chosen


def best(candidates: Sequence[Offer]) -> Offer | None:
    """The offer that is proposed: the one of least cost."""
    return min(candidates, key=lambda offer: offer.cost, default=None)


def _distinct(candidates: Sequence[Offer]) -> list[Offer]:
    """Each selector once; of CSS selectors with the same effect those that differ from the first one most are kept
    last."""
    distinct: list[Offer] = []
    for offer in candidates:
        if all(offer.take != other.take for other in distinct):
            distinct.append(offer)
    return distinct


def _of_pages(field: DraftField, pages: Pages) -> list[Offer]:
    examples, picked = [], []
    for url, document in pages.named.items():
        values, refused, nodes = _values(field, url, document)
        if values or refused:
            named_values: str | list[str] = values if field.many else (values[:1] or [""])[0]
            examples.append(
                Example(
                    document,
                    {"f": named_values} if values else {},
                    frozenset(("f",)) if field.many else frozenset(),
                    {"f": refused},
                )
            )
            picked.append((document, nodes))
    if not any(example.values for example in examples):
        return []
    rest = [page for page in pages.others if page.url not in pages.named]
    choices = induce(
        examples,
        rest,
        max(OF_KIND.values()),
        kind=lambda selection: kind_of(selection.source),
        more_cost=lambda selection: _elsewhere(selection, picked),
    ).get("f", [])
    made = [_offer(choice, pages.shown, choice.cost) for choice in choices]
    return [*made, *_as_xpath(made, pages.shown)]


def _values(field: DraftField, url: str, document: Document) -> tuple[list[str], list[str], list[Any]]:
    """(values, refused values, elements) of the picks on a page, in document order."""
    values: list[str] = []
    refused: list[str] = []
    nodes: list[Any] = []
    for pick in sorted((pick for pick in field.picks if pick.url == url), key=lambda pick: pick.node):
        node = element(document, pick.node)
        text = value_of(node, pick.attr) if node is not None else ""
        if not text:
            continue
        (refused if pick.wrong else values).append(text)
        if not pick.wrong:
            nodes.append(node)
    return values, [text for text in refused if text not in values], nodes


def _elsewhere(selection: Selection, picked: Sequence[tuple[Document, Sequence[Any]]]) -> float:
    expression = css_of(source_of(selection))
    for document, nodes in picked if expression else ():
        ids_of_picks = {node.mem_id for node in nodes}
        matches = css(document.tree.root, expression)[:MAX_VALUES]
        ids = [node.mem_id for node in matches]
        if ids_of_picks and (not ids or not ids_of_picks.intersection(ids[:1] if len(ids_of_picks) == 1 else ids)):
            return _ELSEWHERE
        if len(ids_of_picks) > 1:
            return _unlike(matches, nodes)
    return 0.0


def css_of(take: Source) -> str:
    """The CSS selector of the elements that it takes; empty for XPath and for data that are no elements of the page."""
    if take.source == "itemprop" and '"' not in take.expression and "\\" not in take.expression:
        return f'[itemprop~="{take.expression}"]'
    return take.expression if take.source == "css" else ""


def _unlike(listed: Sequence[Any], nodes: Sequence[Any]) -> float:
    """Cost of a list: a picked element that is not in it; elements in other places of the page than those picked; few
    of those in the same places."""
    ids, shapes = {node.mem_id for node in listed}, {_shape(node) for node in nodes}
    missed = sum(node.mem_id not in ids for node in nodes)
    alike = sum(_shape(node) in shapes for node in listed)
    return _ELSEWHERE * missed + _ODD * (1 - alike / len(listed)) + _FEW / max(alike, 1)


def _shape(node: Any) -> tuple[str, ...]:
    """Tags from the element to the root, and the classes that people gave to it and to the element around it."""
    tags = [*_classes(node), *(_classes(node.parent) if node.parent is not None else ())]
    while node is not None and len(tags) < 100:
        tags.append(str(node.tag))
        node = node.parent
    return tuple(tags)


def _classes(node: Any) -> list[str]:
    return sorted(
        f".{class_name}" for class_name in (node.attributes.get("class") or "").split() if is_given_name(class_name)
    )


def _offer(choice: Choice, page: Document, cost: float) -> Offer:
    texts = texts_of(choice.selection, page)
    return Offer(
        source_of(choice.selection),
        kind_of(choice.selection.source),
        choice.type,  # type: ignore[arg-type]
        choice.many,
        len(texts),
        choice.filled,
        choice.others,
        [text[:200] for text in texts[:3]] or list(choice.sample),
        cost,
    )


def _as_xpath(made: Sequence[Offer], page: Document) -> list[Offer]:
    """The best CSS selectors as XPath, for those who prefer it; costlier, because they run in a child process."""
    offers_xpath = []
    for offer in sorted((offer for offer in made if offer.kind == "css"), key=lambda offer: offer.cost)[
        : OF_KIND["xpath"]
    ]:
        try:
            expression = HTMLTranslator().css_to_xpath(offer.take.expression)
        except SelectorError:
            continue
        take = msgspec.structs.replace(
            offer.take, source="xpath", expression=expression.replace("descendant-or-self::", "//", 1)
        )
        here = len(texts_of(selection_of(take), page))
        if here == offer.here:
            offers_xpath.append(msgspec.structs.replace(offer, take=take, kind="xpath", cost=offer.cost + 5.0))
    return offers_xpath


def texts_of(selection: Selection, document: Document, scope: Any = None, most: int = MAX_VALUES) -> list[str]:
    """The values of a selection on a page as texts; none for a selection that fails there."""
    try:
        values = [value_or_text(value) for value in islice(select(selection, document, scope), most)]
    except ValueError:
        return []
    return [text for value in values if value is not None and (text := folded(value))]


# ---- items in boxes


def boxes(expression: str, document: Document) -> list[Any]:
    """The elements that `each` selects."""
    return css(document.tree.root, expression)[:MAX_VALUES] if expression else []


def _in_boxes(each: str, field: DraftField, pages: Pages) -> list[Offer]:
    """Selectors relative to the box around a pick; each has to give the picked element first in its box."""
    picked = [
        (box, node, pick)
        for pick in field.picks
        if not pick.wrong
        and (document := pages.named.get(pick.url)) is not None
        and (node := element(document, pick.node)) is not None
        and (box := box_around(node, boxes(each, document))) is not None
    ]
    if not picked:
        return _of_pages(msgspec.structs.replace(field, many=False), pages)
    box, node, pick = picked[0]
    box_offers = []
    for path in paths(node, box):
        selection = Selection("css", path.expression, attr=pick.attr)
        if all(_first_is(selection, other, of) for other, of, _ in picked) and not _takes_wrong(
            selection, each, field, pages
        ):
            box_offers.append(_box_offer(selection, path.cost, each, pages))
    return box_offers


def box_around(node: Any, all_boxes: Sequence[Any]) -> Any:
    """The box that an element is in, or None."""
    ids = {box.mem_id: box for box in all_boxes}
    while node is not None:
        if node.mem_id in ids:
            return ids[node.mem_id]
        node = node.parent
    return None


def _first_is(selection: Selection, box: Any, node: Any) -> bool:
    matches = [match for match in css(box, selection.expression)[:2] if match.mem_id != box.mem_id]
    return bool(matches) and matches[0].mem_id == node.mem_id


def _takes_wrong(selection: Selection, each: str, field: DraftField, pages: Pages) -> bool:
    for pick in field.picks:
        document = pages.named.get(pick.url)
        if not pick.wrong or document is None:
            continue
        node = element(document, pick.node)
        box = box_around(node, boxes(each, document)) if node is not None else None
        if box is not None and _first_is(selection, box, node):
            return True
    return False


def _box_offer(selection: Selection, cost: float, each: str, pages: Pages) -> Offer:
    inside = [_in_box(selection, box, pages.shown) for box in boxes(each, pages.shown)]
    texts = [text for text in inside if text]
    others = [text for text in pages.others if text.url not in pages.named]
    texts_by_page = [[_in_box(selection, box, page) for box in boxes(each, page)] for page in others]
    share = len(texts) / max(len(inside), 1)
    return Offer(
        source_of(selection),
        "css",
        type_of(texts[:20], selection.attr),  # type: ignore[arg-type]
        many=False,
        here=len(texts),
        filled=sum(any(text) for text in texts_by_page),
        others=len(others),
        sample=[text[:200] for text in texts[:3]],
        cost=cost + 4.0 * (1 - share),
    )


def _in_box(selection: Selection, box: Any, document: Document) -> str:
    return next(iter(texts_of(selection, document, LexborElement(box), 1)), "")


def image_or_text(node: Any) -> str:
    """The attribute that a click on an element takes; empty: its text."""
    if node.tag == "img":
        return "src"
    if node.tag == "time" and node.attributes.get("datetime"):
        return "datetime"
    return "value" if node.tag == "input" else ""


def pick_of(node: Any, number: int, url: str, *, wrong: bool = False) -> Pick:
    """A click on an element."""
    return Pick(url, number, image_or_text(node), wrong)
