"""Items as a table: pages, filters on a field, order by a field, in nephila.db and in PostgreSQL alike."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from io import BytesIO

import pytest
from nephila.storage.read.item_columns import FIXED, ItemColumns
from nephila_control.rows import item_table
from nephila_control.rows.item_table import Wanted, field_of, object_of
from nephila_stores.formats.items_parquet import ItemsParquet

from tests.storage.storage_rig import JOB, key, record, running

DATA = (
    {"n": 3, "name": "Ähre", "price": {"amount": "12.50"}},
    {"n": 10, "name": "", "price": {"amount": 9}},
    {"n": None, "name": "b%", "tags": ["x", "y"]},
    {"n": 2.5, "name": "Birne"},
    {"name": "apfel", "n": "zwei"},
    [1, 2],
)


@pytest.fixture
async def source(database_url, tmp_path):
    """One page per item; odd ones by another rule."""
    async with running(tmp_path, store=database_url) as rig:
        for number in range(len(DATA)):
            rig.send(record(number, url=f"http://a.test/{number}"))
        await rig.storage.flush()
    rows = [(JOB, key(n).hex(), "shop" if n % 2 else "news", 1, 0, json.dumps(one)) for n, one in enumerate(DATA)]
    if database_url:
        import psycopg

        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.cursor().executemany("INSERT INTO items VALUES (%s, %s, %s, %s, %s, %s)", rows)
    else:
        with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
            database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.commit()
    return database_url or tmp_path


def walk(source, limit=2, **wanted):
    """Numbers of the pages of all items, in their order."""
    found, shown, after = None, [], ""
    while found is None or after:
        found = item_table.items(source, Wanted(**wanted), after=after, limit=limit)
        assert len(found.items) <= limit
        shown += [int(one.url.rpartition("/")[2]) for one in found.items]
        after = found.next
    return shown


def test_the_pages_have_every_item_once(source):
    """Whatever their size, for each rule, job and search."""
    assert sorted(walk(source)) == sorted(walk(source, limit=100)) == [0, 1, 2, 3, 4, 5]
    assert sorted(walk(source, rule="shop")) == [1, 3, 5]
    assert walk(source, jobs=["x"]) == []
    assert walk(source, search="BIRNE") == [3]
    assert item_table.rules_of_items(source) == ["news", "shop"]
    with pytest.raises(ValueError):
        item_table.items(source, Wanted(), after="[1]")


@pytest.mark.parametrize(
    ("field", "test", "value", "expected"),
    [
        ("n", "above", "2.5", [0, 1]),
        ("n", "below", "3", [3]),
        ("price.amount", "above", "10", [0]),
        ("n", "empty", "", [2, 5]),
        ("name", "filled", "", [0, 2, 3, 4]),
        ("name", "contains", "B", [2, 3]),
        ("name", "contains", "%", [2]),
        ("n", "is", "10", [1]),
        ("n", "not", "10", [0, 2, 3, 4, 5]),
        ("tags", "contains", '"y"', [2]),
        ("data", "is", "[1, 2]", [5]),
        ("missing", "filled", "", []),
        ("n", "above", "nan", []),
    ],
)
def test_a_field_is_compared(source, field, test, value, expected):
    """Numbers also where they are texts; the pages of the answer have every item once."""
    assert sorted(walk(source, field=field, test=test, value=value)) == expected


def test_items_are_put_in_order_by_a_field(source):
    """Numbers before texts, empty ones last in both directions; filters hold."""
    assert walk(source, sort="n")[:4] == [3, 0, 1, 4]
    assert walk(source, sort="-n")[:4] == [4, 1, 0, 3]
    assert set(walk(source, sort="n")[4:]) == set(walk(source, sort="-n")[4:]) == {2, 5}
    assert walk(source, sort="name", rule="news")[:3] == [4, 2, 0]
    assert walk(source, sort="price.amount", field="price.amount", test="filled") == [1, 0]
    with pytest.raises(ValueError):
        item_table.items(source, Wanted(sort="n"), after="x")


def test_a_bounded_number_of_items_is_looked_at(source, monkeypatch):
    """A page of a filter may be short; an order says that it is not of all."""
    monkeypatch.setattr(item_table, "LOOKED_AT", 2)
    assert item_table.items(source, Wanted(field="n", test="is", value="none")).next
    assert sorted(walk(source, field="n", test="above", value="2")) == [0, 1, 3]
    found = item_table.items(source, Wanted(sort="n"))
    assert (len(found.items), found.complete) == (2, False)


def test_a_parquet_file_has_columns_with_types_and_every_item_whole():
    """A value of another type is null in its column."""
    parquet = pytest.importorskip("pyarrow.parquet")
    columns, stream = ItemColumns(), BytesIO()
    first = [{"n": 1, "f": 1, "b": True, "url": "x", "o": {"p": "q"}}, {"n": 2, "f": 1.5, "l": [1]}]
    for one in first:
        columns.note(one)
    late = {"n": "text", "f": "1", "new": 1, "o": {"p": 3}, "big": 1 << 80, "s": "\ud800"}
    with ItemsParquet(stream, columns) as file:
        fixed = ("job", "http://a.test/", "00", "shop", 1, 0)
        file.extend((fixed, one) for one in (*first, late))
    table = parquet.read_table(BytesIO(stream.getvalue()))
    assert table.column_names == [*FIXED, "n", "f", "b", "data.url", "o.p", "l", "data"]
    assert [str(table.schema.field(name).type) for name in ("n", "f", "b", "l")] == [
        "int64",
        "double",
        "bool",
        "list<element: int64>",
    ]
    rows = table.to_pylist()
    assert [row["n"] for row in rows] == [1, 2, None]
    assert [row["f"] for row in rows] == [1.0, 1.5, None]
    assert rows[2]["o.p"] == "3"
    assert json.loads(rows[2]["data"])["big"] == 1 << 80


@pytest.mark.parametrize("name", ["price", "offer.price", "offer", "a.b", "", "ä b", "missing", "offer.none"])
def test_one_field_of_an_item_is_read_as_among_all(name):
    """A name with a dot is first a field of that name, then one inside another field."""
    items = (
        '{"price": 1, "offer": {"price": 2, "x": [1]}, "": 3, "ä b": "4", "a.b": 5}',
        '{"a": {"b": 6}, "price": null}', '{"price": 1, "price": 2}', "[1]", "no JSON", '"text"', "{}",
    )  # fmt: skip
    read = item_table._reader(name)
    for data in items:
        assert field_of(read(data), name) == field_of(object_of(data), name), data
