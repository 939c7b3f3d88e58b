"""What the fields of items hold, by a bounded number of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from nephila_control.rows import item_profile
from nephila_control.rows.item_profile import fields_of, profile
from nephila_control.rows.item_table import FieldTest, Wanted

from tests.storage.storage_rig import JOB, key, record, running


@pytest.fixture
async def source(tmp_path):
    """Twelve items of one page, with a field that half of them have."""
    async with running(tmp_path) as rig:
        rig.send(record(0, url="http://a.test/0"))
        await rig.storage.flush()
    with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
        rows = [
            (
                JOB,
                key(0).hex(),
                "shop" if n % 3 else "news",
                1,
                n,
                json.dumps({"n": n, **({"half": "x"} if n % 2 else {})}),
            )
            for n in range(12)
        ]
        database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.commit()
    return tmp_path


def test_a_field_has_its_fill_its_range_and_its_frequent_values():
    numbers, texts = fields_of([{"n": 3, "t": "a"}, {"n": 1.5, "t": "a"}, {"n": None, "t": "b"}, {"n": "", "t": []}])
    assert (numbers.filled, numbers.distinct, numbers.least, numbers.most) == (2, 2, 1.5, 3)
    assert (texts.filled, texts.distinct, texts.least, texts.most) == (3, 2, None, None)
    assert [(one.value, one.items) for one in texts.top] == [("a", 2), ("b", 1)]


def test_a_field_with_one_text_has_no_range():
    (mixed,) = fields_of([{"n": 3}, {"n": "three"}])
    assert (mixed.least, mixed.most) == (None, None)


def test_a_profile_counts_what_fits(source):
    everything = profile(source, Wanted())
    assert (everything.total, everything.counted, everything.complete) == (12, True, True)
    assert {field.name: field.filled for field in everything.fields} == {"n": 12, "half": 6}
    some = profile(source, Wanted(rule="shop", where=(FieldTest("n", "above", "6"), FieldTest("half", "filled"))))
    assert (some.total, some.looked_at) == (2, 2)


def test_a_large_table_is_counted_up_to_a_bound_and_says_so(source, monkeypatch):
    monkeypatch.setattr(item_profile, "LOOKED_AT", 4)
    monkeypatch.setattr(item_profile, "COUNTED", 8)
    everything = profile(source, Wanted())
    assert (everything.total, everything.counted, everything.looked_at, everything.complete) == (8, False, 4, False)
    some = profile(source, Wanted(where=(FieldTest("half", "filled"),)))
    assert (some.total, some.counted, some.complete) == (2, False, False)
