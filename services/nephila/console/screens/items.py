"""Items: is the data right? The table with odd cells marked, and its export."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from typing import Any

from starlette.responses import Response, StreamingResponse

from nephila.console.view import View
from nephila.control import screen_types
from nephila.storage.read.tabular import cell, flat, write_csv, write_jsonl

COLUMNS = 12
"""Fields that the table shows, at most; the export has all of them."""
FIXED = ("job", "url", "rule", "rule_version", "ordinal")


async def items(view: View) -> Response:
    """GET /console/items"""
    request = _request(view, 50)
    found = await view.control.list_items(request)
    rows = [dict(flat(_object(one.data))) for one in found.items]
    names = [*dict.fromkeys(name for row in rows for name in row)]
    return view.render(
        "items.html",
        found=found,
        rows=list(zip(found.items, rows, strict=True)),
        columns=names[:COLUMNS],
        more_columns=len(names) - COLUMNS,
        query={"q": request.search, "job": request.job, "rule": request.rule},
        first=not request.after,
    )


def _request(view: View, limit: int) -> screen_types.ListItems:
    return screen_types.ListItems(
        job=view.field("job")[:1000],
        rule=view.field("rule")[:200],
        search=view.field("q").strip()[:500],
        after=view.field("after")[:2000],
        limit=limit,
    )


def _object(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {"data": data}


async def csv(view: View) -> Response:
    """GET /console/items.csv: the columns are those of the first 200 items; a further field is in the column `data`."""
    request = _request(view, 200)
    first = await view.control.list_items(request)
    names = [*dict.fromkeys(name for one in first.items for name, _ in flat(_object(one.data)))]

    def rows(found: list[screen_types.Item], *, head: bool) -> bytes:
        stream = BytesIO()
        lines = []
        for one in found:
            data = dict(flat(_object(one.data)))
            rest = {name: value for name, value in data.items() if name not in names}
            values = [getattr(one, name) for name in FIXED] + [data.get(name) for name in names]
            lines.append([cell(value) for value in (*values, json.dumps(rest, ensure_ascii=False) if rest else None)])
        write_csv(stream, [*FIXED, *names, "data"], lines, raw=False)
        return stream.getvalue() if head else stream.getvalue().split(b"\n", 1)[1]

    return _download(view, request, first, "items.csv", "text/csv; charset=utf-8", rows)


async def jsonl(view: View) -> Response:
    """GET /console/items.jsonl"""
    request = _request(view, 200)

    def rows(found: list[screen_types.Item], *, head: bool) -> bytes:
        stream = BytesIO()
        write_jsonl(stream, [*FIXED, "data"], [[getattr(one, name) for name in (*FIXED, "data")] for one in found])
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
        found = first
        yield rows(found.items, head=True)
        while found.next:
            request.after = found.next
            found = await view.control.list_items(request)
            if found.items:
                yield rows(found.items, head=False)

    return StreamingResponse(
        parts(), headers={"content-disposition": f'attachment; filename="{name}"'}, media_type=kind
    )
