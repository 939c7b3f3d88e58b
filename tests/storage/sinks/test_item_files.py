"""items.NAME.jsonl: one line per item, cut to what was committed, one file for each rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer


def record(number: int, rule: str, *items: dict[str, object]) -> m.Record:
    return m.Record(
        job="j",
        url_key=number.to_bytes(16, "big"),
        url=f"http://a.test/{number}",
        fetch_no=1,
        outcome=m.Outcome.STORED,
        sha256=bytes(32),
        fetched_at=1_767_225_600.0,
        rule=rule,
        items=[json.dumps(one).encode() for one in items],
    )


def writer(folder: Path) -> Writer:
    made = Writer(StorageConfig(directory=folder, formats=("sqlite", "items")))
    made.open()
    return made


def commit(made: Writer, *records: m.Record) -> None:
    made.commit(records, [None] * len(records), [])
    made.after_commit()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_for_each_rule(tmp_path):
    """An item has its identity; that of a scheme is written as it is. Parts of items have no line."""
    made = writer(tmp_path)
    commit(made, record(1, "news", {"id": "x", "content": "c"}), record(2, "shop", {"name": "n"}, {"name": "m"}))
    commit(made, record(3, "news", {"id": "y"}), record(4, "shop/reviews", {"stars": 3}), record(5, ""))
    made.close()
    assert sorted(path.name for path in tmp_path.glob("items.*")) == ["items.news.jsonl", "items.shop.jsonl"]
    assert lines(tmp_path / "items.news.jsonl") == [{"id": "x", "content": "c"}, {"id": "y"}]
    found = lines(tmp_path / "items.shop.jsonl")
    key = (2).to_bytes(16, "big").hex()
    assert found[0] == {
        "id": f"{key}-0",
        "resource": "shop",
        "url": "http://a.test/2",
        "time": "2026-01-01T00:00:00.000Z",
        "name": "n",
    }
    assert found[1]["id"] == f"{key}-1"


def test_a_file_is_cut_to_what_was_committed(tmp_path):
    made = writer(tmp_path)
    commit(made, record(1, "news", {"id": "x"}))
    made.close()
    path = tmp_path / "items.news.jsonl"
    with path.open("a") as file:
        file.write('{"id": "not comm')
    made = writer(tmp_path)
    commit(made, record(1, "news", {"id": "x"}), record(2, "news", {"id": "y"}))
    made.close()
    assert lines(path) == [{"id": "x"}, {"id": "y"}]


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "items.news.jsonl").write_text("{}\n")
    made = writer(tmp_path)
    with pytest.raises(UserError, match="not of this crawl"):
        commit(made, record(1, "news", {"id": "x"}))
    made.close()
