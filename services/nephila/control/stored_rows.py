"""The operations on stored rows: lists of pages and items, and one page. They read the database in a thread."""

from __future__ import annotations

from typing import Any

import msgspec

from nephila.control import api, job_view, screen_types
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.reasons.table import words
from nephila.kernel.runtime.errors import UNREADABLE, UsageError, UserError
from nephila.kernel.seeds import url_errors
from nephila.native import parse_url
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.read import item_table, recent_rows
from nephila.storage.search.passages import Fragment
from nephila.storage.search.query import parse
from nephila.storage.search.search import search
from nephila.storage.source import Source

NO_ROWS = (
    "rows are read from the database of the rows, and this API has none: set api.store "
    "(for --bootstrap: NEPHILA_STORAGE__STORE)"
)


def page_list(source: Source | None, request: screen_types.ListPages) -> screen_types.PageList:
    """See `Control.list_pages`."""
    if not job_view.is_there(there(source)):
        return screen_types.PageList(pages=[])
    values = msgspec.structs.asdict(request)
    found = recent_rows.rows(there(source), **values)
    return screen_types.PageList(pages=[_row(row) for row in found.rows], next=found.next)


def search_results(source: Source | None, request: screen_types.SearchPages) -> screen_types.SearchResults:
    """See `Control.search_pages`."""
    place = there(source)
    parse(request.query)  # a search that cannot be read is told where there are no rows, too
    if not job_view.is_there(place):
        return screen_types.SearchResults(hits=[], total=0, complete=True, behind=0)
    try:
        found = search(place, request.query, job=request.job, skip=request.skip, limit=request.limit)
    except NoTables:
        return screen_types.SearchResults(hits=[], total=0, complete=True, behind=0)
    hits = [
        screen_types.SearchHit(
            **{name: getattr(hit, name) for name in ("url", "url_key", "job", "lang", "fetched_at")},
            title=_fragments(hit.title),
            passage=_fragments(hit.passage),
        )
        for hit in found.hits
    ]
    return screen_types.SearchResults(hits=hits, total=found.total, complete=found.complete, behind=found.behind)


def _fragments(found: list[Fragment]) -> list[screen_types.Fragment]:
    return [screen_types.Fragment(text=one.text, hit=one.hit) for one in found]


def page_detail(source: Source | None, request: screen_types.GetPage) -> screen_types.PageDetail:
    """See `Control.get_page`."""
    with url_errors(request.url):
        keys = [*dict.fromkeys((parse_routed(request.url).fingerprint, parse_url(request.url).fingerprint))]
    place = there(source)
    found = recent_rows.stored_row(place, request.job, keys) if job_view.is_there(place) else None
    if found is None:
        raise api.NotFound(f"there is no row of {request.url[:200]!a}; see nephila explain")
    row = found.row
    return screen_types.PageDetail(
        page=_row(row),
        **{name: row[name] for name in ("final_url", "lang", "sha256", "first_at", "changed_at", "near_copy_of")},
        meta=_object(row["meta"]),
        text=row["text"],
        text_chars=found.text_chars,
        links=[screen_types.Link(url=url, text=text, outcome=outcome) for url, text, outcome in found.links],
        items=[
            screen_types.PageItem(rule=rule, version=version, data=_json(data)) for rule, version, data in found.items
        ],
        fetches=job_view.fetches(place, row["job"], row["url"]),
        previous=screen_types.PageVersion(**found.previous) if found.previous is not None else None,
    )


def item_list(source: Source | None, request: screen_types.ListItems) -> screen_types.ItemList:
    """See `Control.list_items`."""
    place = there(source)
    if not job_view.is_there(place):
        return screen_types.ItemList(items=[], rules=[])
    wanted = item_table.Wanted(**{name: getattr(request, name) for name in item_table.Wanted._fields})
    if wanted.test and not wanted.field:
        raise UsageError("field: name the field that is compared")
    if wanted.test in ("above", "below") and not item_table.is_number(wanted.value):
        raise UsageError(f"value: {wanted.value[:100]!a} is not a number; above and below compare numbers")
    try:
        found = item_table.items(place, wanted, after=request.after, limit=request.limit)
    except (ValueError, RecursionError):
        raise UsageError(f"after: {request.after[:100]!a} is not the `next` of an answer") from None
    items = [screen_types.Item(**{**item._asdict(), "data": _json(item.data)}) for item in found.items]
    rules = item_table.rules_of_items(place, request.job)
    return screen_types.ItemList(items=items, rules=rules, next=found.next, complete=found.complete)


def there(source: Source | None) -> Source:
    """Where the rows are. Raises `UserError` where that is not known."""
    if source is None:
        raise UserError(NO_ROWS)
    return source


def _row(row: dict[str, Any]) -> screen_types.PageRow:
    return screen_types.PageRow(
        **{name: row[name] for name in recent_rows.ROW}, words=words(row["outcome"], row["reason"])
    )


def _json(data: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        return data


def _object(data: str) -> dict[str, Any]:
    found = _json(data)
    return found if isinstance(found, dict) else {}
