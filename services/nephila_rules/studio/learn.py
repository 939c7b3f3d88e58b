"""What a click changes in a draft: fields, their selectors, boxes of items, the link to the next page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.page.html_tree import css

from nephila_rules.induction.boxes import boxes_around
from nephila_rules.runtime.document import Document
from nephila_rules.studio.browser_steps import OF_CLICK, selector_of, with_step
from nephila_rules.studio.draft import MAX_FIELDS, MAX_PICKS, Draft, DraftField, Pick, Source, Step
from nephila_rules.studio.names import name_of
from nephila_rules.studio.numbering import element, numbers, value_of
from nephila_rules.studio.seen import Offer
from nephila_rules.studio.suggest import Pages, best, boxes, css_of, offers, pick_of
from nephila_rules.studio.suggested import with_suggested

MAX_MARKED: Final = 500


def step(draft: Draft, kind: Step, node: int, pages: Pages) -> Draft:
    """The draft after a step. Raises `UsageError` for one that cannot be taken."""
    if kind == "items":
        return _items(draft, pages)
    if kind == "suggested":
        return with_suggested(draft, pages)
    if kind == "page":
        return _relearned(replace(draft, each=""), pages)
    if kind in ("wider", "learn"):
        field = _active(draft)
        picks = _wider(field, pages) if kind == "wider" else field.picks
        return _learned(draft, draft.active, replace(field, picks=picks), pages)
    clicked = element(pages.shown, node)
    if clicked is None:
        raise UsageError(f"the page has no element {node}: it has changed since it was shown; reload it")
    if kind == "next":
        return _next(draft, clicked, pages)
    if kind in OF_CLICK:
        return with_step(draft, OF_CLICK[kind], selector_of(clicked, pages.shown))
    if kind == "new":
        return _new(draft, clicked, node, pages)
    field, pick = _active(draft), pick_of(clicked, node, draft.url, wrong=kind == "not")
    if len(field.picks) >= MAX_PICKS:
        raise UsageError(f"a field has at most {MAX_PICKS} examples")
    remaining = [other_pick for other_pick in field.picks if (other_pick.url, other_pick.node) != (pick.url, pick.node)]
    if kind == "here" and not field.many:
        remaining = [other_pick for other_pick in remaining if other_pick.url != draft.url or other_pick.wrong]
    many = field.many or (kind == "more" and not draft.each)
    return _learned(
        replace(draft, mode="new"), draft.active, replace(field, picks=(*remaining, pick), many=many), pages
    )


def _active(draft: Draft) -> DraftField:
    if draft.field is None:
        raise UsageError("no field is chosen; click a value on the page first")
    return draft.field


def _new(draft: Draft, clicked: Any, node: int, pages: Pages) -> Draft:
    field_number = next(
        (number for number, marked_node in marked(draft, pages.shown) if marked_node.mem_id == clicked.mem_id), None
    )
    if field_number is not None:
        return replace(draft, active=field_number)
    if len(draft.fields) >= MAX_FIELDS:
        raise UsageError(f"a rule made here has at most {MAX_FIELDS} fields")
    pick = pick_of(clicked, node, draft.url)
    if not value_of(clicked, pick.attr):
        raise UsageError("this element is empty; click a text or an image")
    field = DraftField(name="field", picks=(pick,))
    offer = best(offers(draft, field, pages))
    taken = {draft_field.name for draft_field in draft.fields}
    name = name_of(clicked, offer.take if offer is not None else Source(), offer.type if offer else "text", taken)
    fields = (*draft.fields, _with_offer(replace(field, name=name), offer))
    return replace(draft, fields=fields, active=len(fields) - 1, mode="new")


def _learned(draft: Draft, number: int, field: DraftField, pages: Pages) -> Draft:
    return draft.with_field(number, _with_offer(field, best(offers(draft, field, pages)), first=False))


def _with_offer(field: DraftField, offer: Offer | None, *, first: bool = True) -> DraftField:
    """The field with the selector. `first`: type and required are found as well; later they are the person's."""
    if offer is None:
        return replace(field, take=Source())
    kind = offer.type if first or field.type == "text" else field.type
    required = (bool(offer.others) and offer.filled == offer.others) if first else field.required
    return replace(field, take=offer.take, type=kind, required=required and not field.many)


def _relearned(draft: Draft, pages: Pages) -> Draft:
    for number, field in enumerate(draft.fields):
        if field.picks:
            draft = _learned(draft, number, field, pages)
    return draft


def _wider(field: DraftField, pages: Pages) -> tuple[Pick, ...]:
    *rest, last = field.picks or (None,)
    document = pages.named.get(last.url) if last is not None else None
    if last is None or document is None:
        raise UsageError("the field has no example; click a value on the page")
    node = element(document, last.node)
    above = node.parent if node is not None else None
    if above is None or above.tag in ("body", "html", "-document"):
        raise UsageError("there is no larger part of the page around this element")
    return (*rest, replace(last, node=numbers(document)[above.mem_id], attr=""))


def _items(draft: Draft, pages: Pages) -> Draft:
    field = _active(draft)
    nodes = [
        node for pick in field.picks if pick.url == draft.url and not pick.wrong
        if (node := element(pages.shown, pick.node)) is not None
    ]  # fmt: skip
    candidates = boxes_around(pages.shown, nodes)
    if not candidates:
        raise UsageError("two values of one field are needed on this page, each in a box of its own: click the second")
    fields = tuple(replace(draft_field, many=False) for draft_field in draft.fields)
    return _relearned(replace(draft, each=candidates[0].expression, fields=fields), pages)


def _next(draft: Draft, clicked: Any, pages: Pages) -> Draft:
    link = clicked
    while link is not None and link.tag != "a":
        link = link.parent
    if link is None or not link.attributes.get("href"):
        raise UsageError("this is no link; click the link to the next page")
    node = numbers(pages.shown)[link.mem_id]
    field = DraftField(name="next", picks=(Pick(draft.url, node, "href"),))
    candidates = [offer for offer in offers(replace(draft, each=""), field, pages) if offer.kind == "css"]
    chosen = best(candidates)
    if chosen is None:
        raise UsageError("no selector leads to this link; click another one")
    return replace(draft, next_page=replace(chosen.take, attr=""), mode="new")


def marked(draft: Draft, document: Document) -> Iterator[tuple[int, Any]]:
    """(field, element) for what the fields take on a page; of structured data, and of XPath, what was clicked."""
    for number, field in enumerate(draft.fields):
        yield from ((number, node) for node in _taken(draft, field, document))


def _taken(draft: Draft, field: DraftField, document: Document) -> Sequence[Any]:
    if expression := css_of(field.take):
        scopes = boxes(draft.each, document) if draft.each else [document.tree.root]
        groups = [css(scope, expression)[: MAX_MARKED if field.many else 1] for scope in scopes]
        return [node for pick in groups for node in pick][:MAX_MARKED]
    picked = (element(document, pick.node) for pick in field.picks if pick.url == document.url and not pick.wrong)
    return [node for node in picked if node is not None]
