"""The screen of items answers whether the data is right. It marks odd cells in the table, and exports the items."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from io import BytesIO
from typing import IO, Any
from urllib.parse import urlencode

import msgspec
from nephila.kernel.runtime.errors import UNREADABLE, UsageError, UserError
from nephila.storage.read.item_columns import FIXED, ItemColumns
from nephila.storage.read.tabular import cell, flat, write_csv, write_jsonl
from nephila_control import item_types, screen_types
from nephila_stores.formats.items_parquet import ItemsParquet
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from nephila_console.screens.item_columns import columns_of
from nephila_console.screens.studio import FILE_POLICY, FILE_S
from nephila_console.view import View
from nephila_console.words import path

COLUMNS = 12
"""Fields that the table shows where none is chosen; the export has all of them."""
FIELDS = 100
"""Fields that the filter and the chooser offer."""
CHIPS = 8
"""Comparisons of one address."""
TESTS = ("contains", "is", "not", "empty", "filled", "above", "below")


async def items(view: View) -> Response:
    """GET /console/items"""
    tests, problem = _tests(view), ""
    request = _request(view, 50, tests)
    batch = screen_types.ItemList(items=[], rules=[])
    profile = item_types.ItemProfile(total=0, counted=True, looked_at=0, complete=True, fields=[])
    try:
        batch, profile = await asyncio.gather(view.control.list_items(request), view.control.profile_items(request))
    except UsageError as error:
        problem = str(error)
    rows = [dict(flat(_object(item.data))) for item in batch.items]
    names = [*dict.fromkeys([*(field.name for field in profile.fields), *(name for row in rows for name in row)])]
    every = columns_of(names, {field.name: field for field in profile.fields}, rows)
    picked = set(view.request.query_params.getlist("col"))
    shown = [column for column in every if column.name in picked] or every[:COLUMNS]
    address = _Address(
        {
            "q": request.search,
            "job": request.job,
            "rule": request.rule,
            "where": request.where,
            "sort": request.sort,
            "col": [column.name for column in shown] if picked else [],
        }
    )
    return view.render(
        "items.html",
        400 if problem else 200,
        batch=batch,
        profile=profile,
        rows=list(zip(batch.items, rows, strict=True)),
        columns=shown,
        every=every[:FIELDS],
        picked=picked,
        query=address.fields,
        link=address.of,
        chips=[(test, address.of(where=_joined([*tests[:at], *tests[at + 1 :]]))) for at, test in enumerate(tests)],
        sort=request.sort,
        tests=TESTS,
        first=not request.after,
        problem=problem,
        filtered=bool(request.search or request.rule or tests),
    )


class _Address:
    """Addresses of this screen that keep its other choices."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def of(self, *parts: str, **changed: Any) -> str:
        fields = {name: value for name, value in {**self.fields, **changed}.items() if value}
        query = urlencode(fields, doseq=True, errors="replace")
        return path(*(parts or ("items",))) + (f"?{query}" if query else "")


def _tests(view: View) -> list[tuple[str, str, str]]:
    """The comparisons of the address, and the one that the form adds. A text that is none is left out."""
    try:
        tests = msgspec.json.decode(view.field("where") or "[]", type=list[tuple[str, str, str]])
    except UNREADABLE:
        tests = []
    field, test, value = view.field("field").strip()[:200], view.field("test"), view.field("value")[:500]
    if field and test:
        tests.append((field, test, "" if test in ("empty", "filled") else value))
    return [*dict.fromkeys(test for test in tests if test[1] in TESTS)][:CHIPS]


def _joined(tests: Sequence[tuple[str, str, str]]) -> str:
    return json.dumps(tests, ensure_ascii=False, separators=(",", ":")) if tests else ""


def _request(view: View, limit: int, tests: Sequence[tuple[str, str, str]]) -> screen_types.ListItems:
    return screen_types.ListItems(
        job=view.field("job")[:1000],
        rule=view.field("rule")[:200],
        search=view.field("q").strip()[:500],
        where=_joined(tests),
        sort=view.field("sort")[:200],
        after=view.field("after")[:2000],
        limit=limit,
    )


def _unsorted(view: View) -> screen_types.ListItems:
    """An export lists all items in the order of the key, which needs no sorting in memory."""
    return msgspec.structs.replace(_request(view, 200, _tests(view)), sort="", after="")


def _object(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {"data": data}


async def picture(view: View) -> Response:
    """GET /console/items/picture?…: a picture that an item names, as a file without effect."""
    fields = {name: view.field(name) for name in ("job", "url_key", "rule", "field")}
    try:
        request = msgspec.convert({**fields, "ordinal": view.number("ordinal")}, item_types.GetItemPicture)
        ready = await view.control.get_item_picture(request)
    except (UserError, msgspec.ValidationError) as error:
        return PlainTextResponse(f"{error}\n", 404)
    headers = {"content-security-policy": FILE_POLICY, "cache-control": f"private, max-age={FILE_S}"}
    return Response(ready.body, media_type=ready.content_type, headers=headers)


async def csv(view: View) -> Response:
    """GET /console/items.csv: the file of `nephila export --items --format csv`. The items are read twice: first for
    the columns."""
    request = _unsorted(view)
    columns = await _columns(view, request)
    empty = BytesIO()
    write_csv(empty, columns.header, (), raw=False)

    def rows(items: list[screen_types.Item], *, head: bool) -> bytes:
        stream = BytesIO()
        lines = [
            list(map(cell, (*(getattr(item, name) for name in FIXED), *columns.values(_object(item.data)))))
            for item in items
        ]
        write_csv(stream, columns.header, lines, raw=False)
        return stream.getvalue()[0 if head else len(empty.getvalue()) :]

    first = await view.control.list_items(request)
    return _download(view, request, first, "items.csv", "text/csv; charset=utf-8", rows)


async def _columns(view: View, request: screen_types.ListItems) -> ItemColumns:
    """Reads all items of the request. O(items)."""
    columns, after = ItemColumns(), ""
    while True:
        batch = await view.control.list_items(msgspec.structs.replace(request, after=after))
        for item in batch.items:
            columns.note(_object(item.data))
        after = batch.next
        if not after:
            return columns


async def jsonl(view: View) -> Response:
    """GET /console/items.jsonl"""
    request = _unsorted(view)

    def rows(items: list[screen_types.Item], *, head: bool) -> bytes:
        stream = BytesIO()
        write_jsonl(stream, [*FIXED, "data"], [[getattr(item, name) for name in (*FIXED, "data")] for item in items])
        return stream.getvalue()

    first = await view.control.list_items(request)
    return _download(view, request, first, "items.jsonl", "application/x-ndjson", rows)


def _download(
    view: View,
    request: screen_types.ListItems,
    first: screen_types.ItemList,
    name: str,
    kind: str,
    rows: Callable[..., bytes],
) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        batch = first
        yield rows(batch.items, head=True)
        while batch.next:
            request.after = batch.next
            batch = await view.control.list_items(request)
            if batch.items:
                yield rows(batch.items, head=False)

    return StreamingResponse(
        parts(), headers={"content-disposition": f'attachment; filename="{name}"'}, media_type=kind
    )


async def parquet(view: View) -> Response:
    """GET /console/items.parquet: the file of `nephila export --items --format parquet`, written to a temporary file,
    since its end describes the rest."""
    request = _unsorted(view)
    columns = await _columns(view, request)
    batch = await view.control.list_items(request)
    stream = await asyncio.to_thread(tempfile.TemporaryFile)
    try:
        with await asyncio.to_thread(ItemsParquet, stream, columns) as file:
            while True:
                rows = [([getattr(item, name) for name in FIXED], item.data) for item in batch.items]
                await asyncio.to_thread(file.extend, rows)
                if not batch.next:
                    break
                request.after = batch.next
                batch = await view.control.list_items(request)
        stream.seek(0)
    except BaseException:
        stream.close()
        raise
    return StreamingResponse(
        _content(stream),
        headers={"content-disposition": 'attachment; filename="items.parquet"'},
        media_type="application/vnd.apache.parquet",
    )


async def _content(stream: IO[bytes]) -> AsyncIterator[bytes]:
    with stream:
        while part := await asyncio.to_thread(stream.read, 1 << 18):
            yield part
