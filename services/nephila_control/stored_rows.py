"""The operations on stored rows: lists of pages and items, and one page. They read the database in a thread."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.reasons.table import words
from nephila.kernel.runtime.errors import UNREADABLE, UsageError, UserError
from nephila.kernel.seeds import url_errors
from nephila.native import parse_url
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.read import item_table, recent_rows
from nephila.storage.source import Source

from nephila_control import api, job_view, screen_types

if TYPE_CHECKING:
    from nephila.storage.read.search_answer import Fragment

HISTORY = 100
"""Fetches of one URL that are listed."""
MAX_SCREENSHOT = 20_000_000
_PNG = b"\x89PNG\r\n\x1a\n"
_FETCH_ID = re.compile(r"[0-9a-f]{32}-\d+-\d+")
NO_ROWS = (
    "rows are read from the database of the rows, and this API has none: set api.store "
    "(for --bootstrap: NEPHILA_STORAGE__STORE)"
)


Jobs = Collection[str] | None
"""The jobs whose rows may be read; None: all rows."""


def page_list(source: Source | None, request: screen_types.ListPages, jobs: Jobs) -> screen_types.PageList:
    """See `Control.list_pages`."""
    if not job_view.is_there(there(source)):
        return screen_types.PageList(pages=[])
    values = msgspec.structs.asdict(request)
    del values["job"]
    found = recent_rows.rows(there(source), jobs=jobs, **values)
    return screen_types.PageList(pages=[_row(row) for row in found.rows], next=found.next)


def search_results(source: Source | None, request: screen_types.SearchPages, jobs: Jobs) -> screen_types.SearchResults:
    """See `Control.search_pages`."""
    # Loaded by the first search: a crawl without one does without these modules.
    from nephila_stores.search.query import parse
    from nephila_stores.search.search import search

    place = there(source)
    parse(request.query)  # a search that cannot be read is told where there are no rows, too
    if not job_view.is_there(place):
        return screen_types.SearchResults(hits=[], total=0, looked_at=0, behind=0)
    try:
        found = search(place, request.query, jobs=jobs, skip=request.skip, limit=request.limit)
    except NoTables:
        return screen_types.SearchResults(hits=[], total=0, looked_at=0, behind=0)
    hits = [
        screen_types.SearchHit(
            **{name: getattr(hit, name) for name in ("url", "url_key", "job", "lang", "fetched_at")},
            title=_fragments(hit.title),
            passage=_fragments(hit.passage),
        )
        for hit in found.hits
    ]
    return screen_types.SearchResults(hits=hits, total=found.total, looked_at=found.looked_at, behind=found.behind)


def _each(jobs: Jobs) -> Collection[str]:
    """What one query after the other is limited to; the empty string is no limit."""
    return [""] if jobs is None else jobs


def _fragments(found: list[Fragment]) -> list[screen_types.Fragment]:
    return [screen_types.Fragment(text=one.text, hit=one.hit) for one in found]


def _keys(url: str) -> list[bytes]:
    """Keys under which a job may have a URL: with its route, and without. Raises `UsageError`."""
    with url_errors(url):
        return [*dict.fromkeys((parse_routed(url).fingerprint, parse_url(url).fingerprint))]


def _newest(place: Source, jobs: Jobs, keys: list[bytes]) -> recent_rows.StoredRow | None:
    """The row of a URL, of the job that fetched it last."""
    rows = (recent_rows.stored_row(place, job, keys) for job in _each(jobs)) if job_view.is_there(place) else ()
    return max((row for row in rows if row is not None), key=lambda one: str(one.row["fetched_at"]), default=None)


def links_in(source: Source | None, request: screen_types.GetPage, jobs: Jobs) -> screen_types.LinksIn:
    """See `Control.list_links_in`."""
    keys, place = _keys(request.url), there(source)
    if not job_view.is_there(place):
        return screen_types.LinksIn(links=[], complete=True)
    found = recent_rows.links_to(place, jobs, keys)
    links = [screen_types.Link(url=url, text=text, outcome=outcome) for url, text, outcome in found.links]
    return screen_types.LinksIn(links=links, complete=found.complete)


def screenshot(
    source: Source | None, request: screen_types.GetScreenshot, jobs: Jobs, captures: Path | None
) -> screen_types.Screenshot:
    """See `Control.get_screenshot`."""
    found = _newest(there(source), jobs, _keys(request.url))
    path = _screenshot_of(captures, found.row) if found is not None else None
    if path is None:
        raise api.NotFound(f"there is no screenshot of {request.url[:200]!a}; a job takes them with browser.capture")
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path.name}: {error.strerror}") from None
    if len(body) > MAX_SCREENSHOT or not body.startswith(_PNG):
        raise UserError(f"{path.name} is no PNG, or larger than {MAX_SCREENSHOT:,} bytes")
    return screen_types.Screenshot(content_type="image/png", body=body)


def _screenshot_of(captures: Path | None, row: Mapping[str, Any]) -> Path | None:
    """That of the fetch of the row, if there is a file of it."""
    name = row["fetch_id"]
    path = captures / f"{name}.png" if captures is not None and _FETCH_ID.fullmatch(name) else None
    return path if path is not None and path.is_file() else None


def page_detail(
    source: Source | None, request: screen_types.GetPage, jobs: Jobs, captures: Path | None = None
) -> screen_types.PageDetail:
    """See `Control.get_page`. `captures`: the directory of screenshots."""
    keys = _keys(request.url)
    place = there(source)
    found = _newest(place, jobs, keys)
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
        fetches=job_view.fetches(place, row["job"], row["url"], HISTORY),
        screenshot=_screenshot_of(captures, row) is not None,
        previous=screen_types.PageVersion(**found.previous) if found.previous is not None else None,
    )


def item_list(source: Source | None, request: screen_types.ListItems, jobs: Jobs) -> screen_types.ItemList:
    """See `Control.list_items`."""
    place = there(source)
    if not job_view.is_there(place):
        return screen_types.ItemList(items=[], rules=[])
    chosen = {name: getattr(request, name) for name in item_table.Wanted._fields if name != "jobs"}
    wanted = item_table.Wanted(jobs, **chosen)
    if wanted.test and not wanted.field:
        raise UsageError("field: name the field that is compared")
    if wanted.test in ("above", "below") and not item_table.is_number(wanted.value):
        raise UsageError(f"value: {wanted.value[:100]!a} is not a number; above and below compare numbers")
    try:
        found = item_table.items(place, wanted, after=request.after, limit=request.limit)
    except (ValueError, RecursionError):
        raise UsageError(f"after: {request.after[:100]!a} is not the `next` of an answer") from None
    items = [screen_types.Item(**{**item._asdict(), "data": _json(item.data)}) for item in found.items]
    rules = item_table.rules_of_items(place, jobs)
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
