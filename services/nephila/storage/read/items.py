"""Export of the table `items`, from nephila.db and from a server alike."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import IO, Any, Final, NamedTuple

from nephila.kernel.runtime.errors import UsageError
from nephila.storage.ledgers.read_connection import ReadConnection, open_each
from nephila.storage.read.items_parquet import FIXED, Columns, ItemsParquet
from nephila.storage.read.tabular import cell, flat, write_csv, write_jsonl
from nephila.storage.source import Source

FORMATS: Final = ("jsonl", "csv", "parquet")
_PAGE_ROWS: Final = 500


class Item(NamedTuple):
    """A row of the table, with the URL of its page."""

    job: str
    url: str
    url_key: str
    rule: str
    rule_version: int
    ordinal: int
    data: str


def all_items(connection: ReadConnection, job: str | None) -> Iterator[Item]:
    """All items in the order of job, page and ordinal, read in chunks. O(items)."""
    last = ("", "", "", -1)
    only = "AND items.job = :only" if job is not None else ""
    query = (
        "SELECT items.job, pages.url, items.url_key, items.rule, items.rule_version, items.ordinal, items.data"
        " FROM items JOIN pages ON pages.job = items.job AND pages.url_key = items.url_key"
        " WHERE (items.job, items.url_key, items.rule, items.ordinal) > (:job, :key, :rule, :ordinal)"
        f" {only} ORDER BY items.job, items.url_key, items.rule, items.ordinal LIMIT {_PAGE_ROWS}"
    )
    while True:
        values = {**dict(zip(("job", "key", "rule", "ordinal"), last, strict=True)), "only": job}
        found = [Item(*row) for row in connection.execute(query, values).fetchall()]
        yield from found
        if len(found) < _PAGE_ROWS:
            return
        end = found[-1]
        last = (end.job, end.url_key, end.rule, end.ordinal)


def export_items(
    source: Source,
    format: str,
    stream: IO[bytes],
    job: str | None = None,
    *,
    raw_csv: bool = False,
    columns: Sequence[str] = (),
) -> int:
    """Write all items and return their number. There is a column for each field of any item, with dotted names for
    nested objects (price.amount); this needs a second pass over the table. `columns`: only these columns, in their
    order; data.NAME is a field with the name of a table column. JSON lines without `columns` keep nested objects.
    `format` is one of FORMATS. Raises `UserError`."""
    with open_each(source, check=True) as places:

        def found() -> Iterator[Item]:
            return chain.from_iterable(all_items(one, job) for one in places)

        if format == "jsonl" and not columns:
            return _jsonl(stream, found())
        if format == "parquet":
            if columns:
                raise UsageError("--columns goes with jsonl and csv; Parquet has all fields")
            return _parquet(stream, found)
        names: dict[str, None] = {}
        for item in found():
            names.update(dict.fromkeys(name for name, _ in flat(_object(item.data))))
        fixed = Item._fields[:-1]
        chosen = list(columns) or [*fixed, *names]
        unknown = [name for name in columns if name not in fixed and name.removeprefix("data.") not in names]
        if unknown and names:
            raise UsageError(f"--columns {unknown[0]!r} is none of {', '.join((*fixed, *names))}")
        rows = (_cells(item, chosen, columns=bool(columns)) for item in found())
        if format == "jsonl":
            return write_jsonl(stream, chosen, rows)
        return write_csv(stream, chosen, ([cell(value) for value in row] for row in rows), raw=raw_csv)


def _cells(item: Item, names: Sequence[str], *, columns: bool) -> list[Any]:
    data = dict(flat(_object(item.data)))
    if not columns:
        start = len(item) - 1
        return [*item[:start], *(data.get(name) for name in names[start:])]
    fixed = item._asdict()
    del fixed["data"]
    return [fixed[name] if name in fixed else data.get(name, data.get(name.removeprefix("data."))) for name in names]


def _jsonl(stream: IO[bytes], items: Iterator[Item]) -> int:
    count = 0
    for item in items:
        value = {**item._asdict(), "data": _object(item.data)}
        stream.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def _parquet(stream: IO[bytes], found: Callable[[], Iterator[Item]]) -> int:
    columns = Columns()
    for item in found():
        columns.note(_object(item.data))
    with ItemsParquet(stream, columns) as file:
        file.extend(([getattr(item, name) for name in FIXED], _object(item.data)) for item in found())
    return file.written


def _object(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {"data": data}
    return value if isinstance(value, dict) else {"data": value}
