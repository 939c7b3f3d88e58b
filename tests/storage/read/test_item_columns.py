"""Columns of items: money, nulls, lists, instants and dates, in CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.read.item_columns import FIXED, ItemColumns, exploded, kind_of, merged
from nephila.storage.read.items import export_items

from tests.storage.storage_rig import JOB, key, record, running

EUR = {"amount": 9, "currency": "EUR"}
DATA = (
    {"name": "a", "price": EUR, "at": "2026-11-28T10:00:00+01:00", "on": "2026-11-28", "job": "painter"},
    {"name": "b", "price": None, "at": "2026-11-28T09:00:00.5Z", "on": None, "variants": []},
    {"name": "c", "price": {}, "at": None, "variants": [
        {"size": "S", "price": EUR, "stock": 1}, {"size": "M", "price": None, "tags": ["x"]}]},
)  # fmt: skip


@pytest.fixture
async def directory(tmp_path):
    """An output directory with these items, one per page."""
    async with running(tmp_path) as rig:
        for number in range(len(DATA)):
            rig.send(record(number, url=f"http://a.test/{number}"))
        await rig.storage.flush()
    rows = [(JOB, key(n).hex(), "shop", 1, 0, json.dumps(one)) for n, one in enumerate(DATA)]
    with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
        database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.commit()
    return tmp_path


def exported(directory, format, **options):
    """The bytes of an export."""
    stream = io.BytesIO()
    export_items(directory, format, stream, **options)
    return stream.getvalue()


def as_csv(directory, **options):
    """The rows of a CSV export by column, in the order of the URLs."""
    rows = csv.DictReader(io.StringIO(exported(directory, "csv", **options).decode()))
    return sorted(rows, key=lambda row: row["url"])


def test_a_null_instead_of_money_makes_no_column(directory):
    rows = as_csv(directory)
    assert list(rows[0]) == [*FIXED, *sorted(set(rows[0]) - set(FIXED), key=list(rows[0]).index)]
    assert set(rows[0]) - set(FIXED) == {"name", "price.amount", "price.currency", "at", "on", "data.job", "variants"}
    assert [(row["price.amount"], row["price.currency"]) for row in rows] == [("9", "EUR"), ("", ""), ("", "")]
    assert [row["data.job"] for row in rows] == ["painter", "", ""]
    assert {row["job"] for row in rows} == {JOB}


def test_a_list_can_have_a_row_for_each_element(directory):
    rows = as_csv(directory, explode="variants")
    assert [(row["name"], row["variants.size"], row["variants.price.amount"]) for row in rows] == [
        ("a", "", ""),
        ("b", "", ""),
        ("c", "S", "9"),
        ("c", "M", ""),
    ]
    with pytest.raises(UsageError, match="--explode 'nosuch' is none of name, "):
        exported(directory, "csv", explode="nosuch")
    lines = map(json.loads, exported(directory, "jsonl", explode="variants").splitlines())
    assert [line["data"]["variants"] for line in lines if line["data"]["name"] == "c"] == DATA[2]["variants"]


@pytest.mark.whole
def test_parquet_has_lists_of_structs_timestamps_and_dates(directory):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(exported(directory, "parquet")))
    types = {field.name: str(field.type) for field in table.schema}
    assert "price" not in types
    assert (types["price.amount"], types["at"], types["on"]) == ("double", "timestamp[us, tz=UTC]", "date32[day]")
    assert types["variants"] == (
        "list<element: struct<size: string, price: struct<amount: double, currency: string>, stock: int64,"
        " tags: list<element: string>>>"
    )
    rows = sorted(table.to_pylist(), key=lambda row: row["url"])
    assert rows[0]["at"] == datetime(2026, 11, 28, 9, tzinfo=UTC)
    assert [row["on"] for row in rows] == [date(2026, 11, 28), None, None]
    assert rows[1]["variants"] == []
    assert rows[2]["variants"][0]["price"] == {"amount": 9.0, "currency": "EUR"}
    assert [json.loads(row["data"]) for row in rows] == list(DATA)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((1, 2.5, None), "float"),
        ((1, True), "text"),
        (("2026-11-28", "2026-11-28T10:00:00Z"), "text"),
        (("2026-02-30",), "text"),
        (("2026-11-28T10:00:00",), "text"),
        (("2026-11-28T25:00:00Z",), "text"),
        (([], [1], [2.5]), ("list", "float")),
        (([1], ["x"]), ("list", "text")),
        (([1], 1), "text"),
        (([{"a": 1}], [{"b": None}]), ("list", ("struct", {"a": "int", "b": ""}))),
        (([[[[[[[[[[1]]]]]]]]]],), None),
        ((1 << 70,), "text"),
    ],
)
def test_a_column_has_the_type_of_all_its_values(values, kind):
    found = ""
    for value in values:
        found = merged(found, kind_of(value))
    assert found == kind or kind is None


def test_nulls_alone_are_a_column_and_a_null_object_is_none():
    columns = ItemColumns()
    for data in ({"a": None, "o": None}, {"o": {"p": {"q": 1}}}, {"o": {"p": None}}):
        columns.note(data)
    assert list(columns.kinds) == ["a", "o.p.q"]


def test_lists_within_objects_are_exploded():
    assert list(exploded({"o": {"l": [1, 2]}}, ["o", "l"])) == [{"o": {"l": 1}}, {"o": {"l": 2}}]
    for data in ({}, {"o": 1}, {"o": {"l": 3}}):
        assert list(exploded(data, ["o", "l"])) == [data]
