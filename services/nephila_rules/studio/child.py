"""The studio's work on pages, in a child process: selectors without known bounds on pages of strangers.

One call has all pages that it needs. This module imports everything that the work needs: in the child no file can be
opened later.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila.native import UrlError, parse_url
from nephila.parser.page.html_tree import css

from nephila_rules.runtime import task  # noqa: F401 - imports what rules need
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import base_of
from nephila_rules.studio.browser_steps import moved
from nephila_rules.studio.frame import fields_of, markup
from nephila_rules.studio.learn import marked, step
from nephila_rules.studio.numbering import numbers
from nephila_rules.studio.rule import selection_of
from nephila_rules.studio.seen import Offer
from nephila_rules.studio.styled.css import rewritten
from nephila_rules.studio.styled.page import write_page
from nephila_rules.studio.styled.pieces import Pieces, PieceWriter
from nephila_rules.studio.styled.svg import cleaned_svg
from nephila_rules.studio.suggest import Pages, boxes, offers, texts_of
from nephila_rules.studio.suggested import suggestion
from nephila_rules.studio.table import rows
from nephila_rules.studio.work import Answer, FieldView, FoundLink, Job, PageBody, View, Work

MAX_LINKS = 500
MAX_KEPT_BYTES = 24 << 20
"""Bodies of pages whose trees are kept from one call to the next, those of the present call besides: a click is three
calls on the same pages, and several people have drafts. A tree takes some ten times its body."""
_kept: OrderedDict[tuple[object, ...], Document] = OrderedDict()


def run(payload: bytes) -> bytes:
    """Entry point of the child."""
    work = msgspec.msgpack.decode(payload, type=Work)
    try:
        answer = _DONE[work.kind](work, _pages(work))
    except UsageError as error:
        answer = Answer(problem=str(error))
    return msgspec.msgpack.encode(answer)


def _pages(work: Work) -> Pages:
    documents = [_document(page) for page in work.pages]
    while len(_kept) > len(documents) and sum(len(document.body) for document in _kept.values()) > MAX_KEPT_BYTES:
        _kept.popitem(last=False)
    first = documents[0]
    picked = {pick.url for field in work.draft.fields for pick in field.picks} | {first.url}
    return Pages(first, {document.url: document for document in documents if document.url in picked}, documents[1:])


def _document(page: PageBody) -> Document:
    key = (page.url, page.encoding, page.content_type, page.body, tuple(sorted(page.facts.items())))
    document = _kept.pop(key, None) or Document(page.body, page.url, page.encoding, page.content_type, page.facts)
    _kept[key] = document
    return document


def _step(work: Work, pages: Pages) -> Answer:
    return Answer(draft=step(work.draft, work.step, work.node, pages))


def _moved(work: Work, pages: Pages) -> Answer:
    return Answer(draft=moved(work.draft, pages.others[0], pages.shown))


def _frame(work: Work, pages: Pages) -> Answer:
    frame = markup(pages.shown, *_labels(work, pages.shown))
    return Answer(html=frame.html, whole=frame.whole)


def _styled(work: Work, pages: Pages) -> Answer:
    writer = write_page(pages.shown, *_labels(work, pages.shown))
    return Answer(pieces=writer.pieces.pieces(), whole=writer.whole)


def _labels(work: Work, document: Document) -> tuple[dict[int, int], dict[int, int], dict[int, tuple[str, bool]]]:
    """Numbers, fields and notes of elements by their identity."""
    numbers_by_id = numbers(document)
    by_number = {number: node for node, number in numbers_by_id.items()} if work.notes else {}
    notes = {by_number[number]: note for number, note in work.notes.items() if number in by_number}
    return numbers_by_id, fields_of(marked(work.draft, document)), notes


def _sheet(work: Work, pages: Pages) -> Answer:
    writer = PieceWriter()
    for part in rewritten(pages.shown.source, pages.shown.url):
        if isinstance(part, str):
            writer.text(part)
        elif not writer.full:
            writer.file(part)
    return Answer(pieces=writer.pieces())


def _vector(work: Work, pages: Pages) -> Answer:
    text = cleaned_svg(pages.shown.body)
    return Answer(pieces=Pieces([text]) if text is not None else None)


def _links(work: Work, pages: Pages) -> Answer:
    document = pages.shown
    numbers_by_id, base, links = numbers(document), base_of(document) or document.url, []
    for node in css(document.tree.root, "a[href]")[:MAX_LINKS]:
        try:
            url = parse_url(document.reference(node.attributes.get("href") or ""), base).href
        except UrlError:
            url = ""
        if node.mem_id in numbers_by_id:
            links.append(FoundLink(numbers_by_id[node.mem_id], url))
    return Answer(links=links)


def _view(work: Work, pages: Pages) -> Answer:
    draft, document = work.draft, pages.shown
    offered: list[Offer] = offers(draft, draft.field, pages) if draft.field is not None and draft.field.picks else []
    table = rows(draft, [document, *pages.others])
    fields = [FieldView(_values(draft, number, document)) for number in range(len(draft.fields))]
    title = css(document.tree.root, "title")
    view = View(
        title=(title[0].text() or "").strip()[:300] if title else "",
        offers=offered,
        fields=fields,
        rows=table,
        boxes=len(boxes(draft.each, document)),
        suggestion=suggestion(document) if not draft.fields else None,
    )
    return Answer(view=view)


def _values(draft: Any, number: int, document: Document) -> int:
    field = draft.fields[number]
    if not (field.take.source or field.take.path):
        return 0
    if draft.each and field.take.source == "css":
        return sum(1 for at, _ in marked(draft, document) if at == number)
    return len(texts_of(selection_of(field.take), document))


_DONE: Mapping[Job, Any] = {
    "step": _step,
    "frame": _frame,
    "links": _links,
    "view": _view,
    "moved": _moved,
    "styled": _styled,
    "sheet": _sheet,
    "vector": _vector,
}
