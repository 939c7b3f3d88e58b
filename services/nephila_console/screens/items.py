"""The screen of items answers whether the data is right. It marks odd cells in the table, and exports the items."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from io import BytesIO
from typing import IO, Any

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.read.item_columns import FIXED, ItemColumns
from nephila.storage.read.tabular import cell, flat, write_csv, write_jsonl
from nephila_control import screen_types
from nephila_stores.formats.items_parquet import ItemsParquet
from starlette.responses import Response, StreamingResponse

from nephila_console.view import View

COLUMNS = 12
"""Fields that the table shows, at most; the export has all of them."""
FIELDS = 100
"""Fields that the filter offers."""
TESTS = ("contains", "is", "not", "empty", "filled", "above", "below")


async def items(view: View) -> Response:
    """GET /console/items"""
    request = _request(view, 50)
    batch, problem = screen_types.ItemList(items=[], rules=[]), ""
    try:
        batch = await view.control.list_items(request)
    except UsageError as error:
        problem = str(error)
    rows = [dict(flat(_object(item.data))) for item in batch.items]
    names = [*dict.fromkeys(name for row in rows for name in row)]
    query = {"q": request.search, "job": request.job, "rule": request.rule}
    query |= {"field": request.field, "test": request.test, "value": request.value}
    return view.render(
        "items.html",
        400 if problem else 200,
        batch=batch,
        rows=list(zip(batch.items, rows, strict=True)),
        columns=names[:COLUMNS],
        numeric={name for name in names[:COLUMNS] if _is_numeric(row.get(name) for row in rows)},
        fields=names[:FIELDS],
        more_columns=len(names) - COLUMNS,
        query=query,
        sort=request.sort,
        tests=TESTS,
        first=not request.after,
        problem=problem,
        filtered=bool(request.search or request.rule or request.test),
    )


def _request(view: View, limit: int) -> screen_types.ListItems:
    test = view.field("test") if view.field("test") in TESTS and view.field("field") else ""
    return screen_types.ListItems(
        job=view.field("job")[:1000],
        rule=view.field("rule")[:200],
        search=view.field("q").strip()[:500],
        field=view.field("field").strip()[:200],
        test=test,  # type: ignore[arg-type]
        value=view.field("value")[:500] if test not in ("empty", "filled") else "",
        sort=view.field("sort")[:200],
        after=view.field("after")[:2000],
        limit=limit,
    )


def _is_numeric(values: Iterable[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, int | float) for value in present)


def _unsorted(view: View) -> screen_types.ListItems:
    """An export lists all items in the order of the key, which needs no sorting in memory."""
    return msgspec.structs.replace(_request(view, 200), sort="", after="")


def _object(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {"data": data}


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
