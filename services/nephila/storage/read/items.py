"""Export of the table `items`, from nephila.db and from a server alike."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any, Final, NamedTuple

from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension
from nephila.storage.ledgers.read_connection import ReadConnection, open_each
from nephila.storage.read.item_columns import FIXED, ItemColumns, exploded
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
        chunk = [Item(*row) for row in connection.execute(query, values).fetchall()]
        yield from chunk
        if len(chunk) < _PAGE_ROWS:
            return
        end = chunk[-1]
        last = (end.job, end.url_key, end.rule, end.ordinal)


def export_items(
    source: Source,
    format: str,
    stream: IO[bytes],
    job: str | None = None,
    *,
    raw_csv: bool = False,
    columns: Sequence[str] = (),
    explode: str = "",
) -> int:
    """Write all items and return their number. There is a column for each field of any item, with dotted names for
    nested objects (price.amount); this needs a second pass over the table. `columns`: only these columns, in their
    order; data.NAME is a field with the name of a table column. `explode`: dotted name of a list; there is a row for
    each of its elements. JSON lines without `columns` keep nested objects. `format` is one of FORMATS. Raises
    `UserError`."""
    with open_each(source, check=True) as places:

        def rows() -> Iterator[_Row]:
            path = explode.split(".")
            for item in chain.from_iterable(all_items(connection, job) for connection in places):
                data = object_of(item.data)
                for part in exploded(data, path) if explode else (data,):
                    yield item[:-1], part

        if format == "jsonl" and not columns and not explode:
            return _jsonl(stream, rows())
        if format == "parquet" and columns:
            raise UsageError("--columns goes with jsonl and csv; Parquet has all fields")
        all_columns = ItemColumns()
        for _, data in rows():
            all_columns.note(data)
        kinds = all_columns.kinds
        if explode and kinds and not any(name == explode or name.startswith(f"{explode}.") for name in kinds):
            raise UsageError(f"--explode {explode!r} is none of {', '.join(kinds)}")
        if format == "parquet":
            with extension("items-parquet")(stream, all_columns) as file:
                file.extend(rows())
            return int(file.written)
        if format == "jsonl" and not columns:
            return _jsonl(stream, rows())
        header = all_columns.header
        unknown = [name for name in columns if name not in header and name.removeprefix("data.") not in kinds]
        if unknown and kinds:
            raise UsageError(f"--columns {unknown[0]!r} is none of {', '.join(header)}")
        if columns:
            values = (_chosen(fixed, data, columns) for fixed, data in rows())
        else:
            values = ([*fixed, *all_columns.values(data)] for fixed, data in rows())
        if format == "jsonl":
            return write_jsonl(stream, columns, values)
        return write_csv(stream, columns or header, (list(map(cell, row)) for row in values), raw=raw_csv)


_Row = tuple[tuple[Any, ...], dict[str, Any]]
"""Values of FIXED, and the data of an item."""


def _chosen(fixed: Sequence[Any], data: dict[str, Any], names: Sequence[str]) -> list[Any]:
    of_table = dict(zip(FIXED, fixed, strict=True))
    fields = dict(flat(data))
    return [
        of_table[name] if name in of_table else fields.get(name, fields.get(name.removeprefix("data.")))
        for name in names
    ]


def _jsonl(stream: IO[bytes], rows: Iterator[_Row]) -> int:
    count = 0
    for fixed, data in rows:
        value = {**dict(zip(FIXED, fixed, strict=True)), "data": data}
        stream.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def object_of(data: str) -> dict[str, Any]:
    """The data of an item as an object."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {"data": data}
    return value if isinstance(value, dict) else {"data": value}
