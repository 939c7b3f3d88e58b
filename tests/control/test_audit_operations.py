"""Audit samples over the API: drawn, labelled row by row, and counted; a label is stored at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila_control import api, audit
from nephila_control.audit_types import DrawSample, GetSample, LabelRow
from nephila_harvest.audit.store import open_store

from tests.storage.storage_rig import record, running


@pytest.fixture
async def rows(tmp_path):
    """Twelve stored pages in one directory."""
    async with running(tmp_path) as rig:
        rig.send(*(record(n, text=f"text {n}".encode(), title=f"Page {n}") for n in range(12)))
        await rig.storage.flush()
    return tmp_path


def label(rows, detail, verdict, **values):
    """A verdict on the row that is shown."""
    row = detail.row
    request = LabelRow(sample="s", number=row.number, version=row.version, verdict=verdict, **values)
    return audit.label(rows, request)


def test_a_sample_is_labelled_row_by_row(rows):
    """The next row is the next one without a label; the interval narrows; the command reads the same labels."""
    drawn = audit.draw(rows, DrawSample(sample="s", size=10))
    assert (drawn.drawn, drawn.labelled, drawn.precision) == (10, 0, None)
    widths, numbers = [], []
    for number in range(1, 11):
        detail = audit.detail(rows, GetSample(sample="s"))
        assert (detail.row.gone, detail.row.changed) == (False, False)
        numbers.append(detail.row.number)
        assert detail.row.text.startswith("text ")
        answer = label(rows, detail, "wrong" if number == 4 else "right", reason="  a menu ", person="ann")
        widths.append(answer.sample.precision.high - answer.sample.precision.low)
    assert answer.next == 0
    assert answer.sample.precision.estimate == pytest.approx(0.9, abs=0.05)
    assert widths[-1] < widths[0]
    assert sorted(numbers) == list(range(1, 11))
    done = audit.detail(rows, GetSample(sample="s"))
    assert (done.row, done.next, done.reasons) == (None, 0, {"a menu": 1})
    with open_store(rows) as store:
        labels = {one.number: one.label[:3] for one in store.drawn("s")}
    assert labels[numbers[3]] == ("wrong", "a menu", "ann")
    assert labels[numbers[4]] == ("right", "", "ann")


def test_a_verdict_is_replaced_and_a_row_can_be_skipped(rows):
    """By its number."""
    audit.draw(rows, DrawSample(sample="s", size=3))
    label(rows, audit.detail(rows, GetSample(sample="s", number=2)), "wrong", reason="x")
    detail = audit.detail(rows, GetSample(sample="s", number=2))
    assert (detail.row.verdict, detail.row.reason) == ("wrong", "x")
    answer = label(rows, detail, "right")
    assert answer.sample.labelled == 1
    assert answer.next == detail.next in (1, 3)
    assert audit.detail(rows, GetSample(sample="s")).row.number in (1, 3)


def test_nothing_is_stored_for_another_version_number_or_sample(rows):
    """One line each."""
    audit.draw(rows, DrawSample(sample="s", size=3))
    with pytest.raises(UserError, match="another version; nothing is stored"):
        audit.label(rows, LabelRow(sample="s", number=1, version="old", verdict="right"))
    with pytest.raises(api.NotFound, match="the numbers 1 to 3, not 9"):
        audit.label(rows, LabelRow(sample="s", number=9, version="", verdict="right"))
    with pytest.raises(api.NotFound, match="there is no sample 'z'; samples: s"):
        audit.detail(rows, GetSample(sample="z"))
    with pytest.raises(UserError, match="a sample 's' exists"):
        audit.draw(rows, DrawSample(sample="s"))
    with pytest.raises(UserError, match="has no items"):
        audit.draw(rows, DrawSample(sample="t", kind="items"))
    assert [one.labelled for one in audit.sample_list(rows).samples] == [0]


def test_a_page_that_changed_or_is_gone_says_so(rows):
    """It is labelled as it was drawn."""
    audit.draw(rows, DrawSample(sample="s", size=2))
    key = audit.detail(rows, GetSample(sample="s", number=1)).row.url
    with closing(sqlite3.connect(rows / "nephila.db")) as database:
        database.execute("UPDATE pages SET text_hash = 'other' WHERE url = ?", (key,))
        database.commit()
    assert audit.detail(rows, GetSample(sample="s", number=1)).row.changed
    with closing(sqlite3.connect(rows / "nephila.db")) as database:
        database.execute("DELETE FROM pages WHERE url = ?", (key,))
        database.commit()
    assert audit.detail(rows, GetSample(sample="s", number=1)).row.gone


async def test_the_strata_are_labelled_in_turn(tmp_path):
    """Whoever stops early has labels of all of them; back and skip follow this order."""
    async with running(tmp_path) as rig:
        for n in range(12):
            part = "a" if n < 8 else "b"
            rig.send(record(n, url=f"http://a.test/{part}/{n}", text=f"text {n}".encode()))
        await rig.storage.flush()
    audit.draw(tmp_path, DrawSample(sample="s", size=12))
    strata, number = [], 0
    for _ in range(6):
        detail = audit.detail(tmp_path, GetSample(sample="s", number=number))
        strata.append(detail.row.stratum[-1])
        number = detail.skip
    assert sorted(strata) == ["a"] * 4 + ["b"] * 2
    later = audit.detail(tmp_path, GetSample(sample="s", number=number))
    assert audit.detail(tmp_path, GetSample(sample="s", number=later.back)).skip == number
