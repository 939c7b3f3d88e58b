"""The operations on stored rows list pages and items, and show one page. They read the database in a thread, so that a
slow query stops no crawl."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.reasons.table import words
from nephila.kernel.runtime.errors import UNREADABLE, UsageError, UserError
from nephila.kernel.seeds import url_errors
from nephila.native import UrlError, parse_url
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.ledgers.schema import DATABASE
from nephila.storage.read.reader import stored_row
from nephila.storage.rows import Row
from nephila.storage.source import Source

from nephila_control import api, item_types, job_view, screen_types
from nephila_control.rows import item_table, recent_rows
from nephila_control.rows.item_profile import profile

if TYPE_CHECKING:
    from nephila.storage.read.search_answer import Fragment

MOST_TESTS = 10
FieldTestName = Literal["contains", "is", "not", "empty", "filled", "above", "below"]
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
    if not job_view.is_there(there(source)):
        return screen_types.PageList(pages=[])
    values = msgspec.structs.asdict(request)
    del values["job"]
    batch = recent_rows.rows(there(source), jobs=jobs, **values)
    return screen_types.PageList(pages=[_row(row) for row in batch.rows], next=batch.next)


def search_results(source: Source | None, request: screen_types.SearchPages, jobs: Jobs) -> screen_types.SearchResults:
    # Loaded by the first search: a crawl without one does without these modules.
    from nephila_stores.search.query import parse
    from nephila_stores.search.search import search

    database = there(source)
    parse(request.query)  # a search that cannot be read is told where there are no rows, too
    if not job_view.is_there(database):
        return screen_types.SearchResults(hits=[], total=0, looked_at=0, behind=0)
    try:
        page = search(database, request.query, jobs=jobs, skip=request.skip, limit=request.limit)
    except NoTables:
        return screen_types.SearchResults(hits=[], total=0, looked_at=0, behind=0)
    hits = [
        screen_types.SearchHit(
            **{name: getattr(hit, name) for name in ("url", "url_key", "job", "lang", "fetched_at")},
            title=_fragments(hit.title),
            passage=_fragments(hit.passage),
        )
        for hit in page.hits
    ]
    return screen_types.SearchResults(hits=hits, total=page.total, looked_at=page.looked_at, behind=page.behind)


def _each(jobs: Jobs) -> Collection[str]:
    """Each query is limited to one of these jobs; an empty string is no limit."""
    return [""] if jobs is None else jobs


def _fragments(fragments: list[Fragment]) -> list[screen_types.Fragment]:
    return [screen_types.Fragment(text=fragment.text, hit=fragment.hit) for fragment in fragments]


def _keys(url: str) -> list[bytes]:
    """A job may have a URL under two keys: with its route, and without. Raises `UsageError`."""
    with url_errors(url):
        return [*dict.fromkeys((parse_routed(url).fingerprint, parse_url(url).fingerprint))]


def _newest(database: Source, jobs: Jobs, keys: list[bytes]) -> recent_rows.StoredRow | None:
    """Returns the row of the job that fetched the URL last."""
    rows = (recent_rows.stored_row(database, job, keys) for job in _each(jobs)) if job_view.is_there(database) else ()
    return max((row for row in rows if row is not None), key=lambda stored: str(stored.row["fetched_at"]), default=None)


def links_in(source: Source | None, request: screen_types.GetPage, jobs: Jobs) -> screen_types.LinksIn:
    keys, database = _keys(request.url), there(source)
    if not job_view.is_there(database):
        return screen_types.LinksIn(links=[], complete=True)
    answer = recent_rows.links_to(database, jobs, keys)
    links = [screen_types.Link(url=url, text=text, outcome=outcome) for url, text, outcome in answer.links]
    return screen_types.LinksIn(links=links, complete=answer.complete)


def screenshot(
    source: Source | None, request: screen_types.GetScreenshot, jobs: Jobs, captures: Path | None
) -> screen_types.Screenshot:
    newest = _newest(there(source), jobs, _keys(request.url))
    path = _screenshot_of(captures, newest.row) if newest is not None else None
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
    """Returns None without a file for the fetch of the row."""
    name = row["fetch_id"]
    path = captures / f"{name}.png" if captures is not None and _FETCH_ID.fullmatch(name) else None
    return path if path is not None and path.is_file() else None


def page_detail(
    source: Source | None, request: screen_types.GetPage, jobs: Jobs, captures: Path | None = None
) -> screen_types.PageDetail:
    """`captures` is the directory of screenshots."""
    keys = _keys(request.url)
    database = there(source)
    newest = _newest(database, jobs, keys)
    if newest is None:
        raise api.NotFound(f"there is no row of {request.url[:200]!a}; see nephila explain")
    row = newest.row
    return screen_types.PageDetail(
        page=_row(row),
        **{name: row[name] for name in ("final_url", "lang", "sha256", "first_at", "changed_at", "near_copy_of")},
        meta=_object(row["meta"]),
        text=row["text"],
        text_chars=newest.text_chars,
        links=[screen_types.Link(url=url, text=text, outcome=outcome) for url, text, outcome in newest.links],
        items=[
            screen_types.PageItem(rule=rule, version=version, data=_json(data)) for rule, version, data in newest.items
        ],
        fetches=job_view.fetches(database, row["job"], row["url"], HISTORY),
        screenshot=_screenshot_of(captures, row) is not None,
        previous=screen_types.PageVersion(**newest.previous) if newest.previous is not None else None,
    )


def item_list(source: Source | None, request: screen_types.ListItems, jobs: Jobs) -> screen_types.ItemList:
    database, query = there(source), _selection(request, jobs)
    if not job_view.is_there(database):
        return screen_types.ItemList(items=[], rules=[])
    try:
        batch = item_table.items(database, query, after=request.after, limit=request.limit)
    except (ValueError, RecursionError):
        raise UsageError(f"after: {request.after[:100]!a} is not the `next` of an answer") from None
    items = [screen_types.Item(**{**item._asdict(), "data": _json(item.data)}) for item in batch.items]
    rules = item_table.rules_of_items(database, jobs)
    return screen_types.ItemList(items=items, rules=rules, next=batch.next, complete=batch.complete)


def item_field(source: Source | None, request: item_types.GetItemPicture, jobs: Jobs) -> str:
    """The text in a field of one item; empty for another value. Raises `NotFound` for an unknown item."""
    database = there(source)
    key = (request.job, request.url_key, request.rule, request.ordinal)
    data = (
        item_table.data_of(database, key) if job_view.is_there(database) and (jobs is None or key[0] in jobs) else None
    )
    if data is None:
        raise api.NotFound("there is no such item")
    value = item_table.field_of(data, request.field)
    return value if isinstance(value, str) else ""


def item_profile(source: Source | None, request: screen_types.ListItems, jobs: Jobs) -> item_types.ItemProfile:
    database, selection = there(source), _selection(request, jobs)
    if not job_view.is_there(database):
        return item_types.ItemProfile(total=0, counted=True, looked_at=0, complete=True, fields=[])
    return profile(database, selection)


def _selection(request: screen_types.ListItems, jobs: Jobs) -> item_table.Wanted:
    """Raises `UsageError`."""
    names = ("rule", "search", "field", "test", "value", "sort")
    selection = item_table.Wanted(jobs, where=_where(request.where), **{name: getattr(request, name) for name in names})
    if request.test and not request.field:
        raise UsageError("field: name the field that is compared")
    for test in selection.tests:
        if test.test in ("above", "below") and not item_table.is_number(test.value):
            raise UsageError(f"value: {test.value[:100]!a} is not a number; above and below compare numbers")
    return selection


def _where(text: str) -> tuple[item_table.FieldTest, ...]:
    if not text:
        return ()
    try:
        tests = msgspec.json.decode(text, type=list[tuple[str, FieldTestName, str]])
    except UNREADABLE:
        tests = []
    if not 0 < len(tests) <= MOST_TESTS:
        raise UsageError(f"where: a JSON list of [field, test, value], {MOST_TESTS} at most")
    return tuple(item_table.FieldTest(*test) for test in tests)


def there(source: Source | None) -> Source:
    """Raises `UserError` if the rows have no known place."""
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
    value = _json(data)
    return value if isinstance(value, dict) else {}


def row_of_url(rows: Source | None, url: str) -> Row | None:
    if rows is None or (isinstance(rows, Path) and not (rows / DATABASE).exists()):
        return None
    try:
        return stored_row(rows, parse_url(url).fingerprint)
    except (UrlError, NoTables):
        return None
