"""A power cut: files hold what the database says was committed; no row is receipted before that."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.storage.ledgers.sqlite import Sqlite

from tests.power_cut import Disk, order
from tests.storage.storage_rig import lines, page, record, rows, running
from tests.storage.structured import structured

SQLITE = ("nephila.db*",)
"""SQLite syncs its files itself: one fsync of the write-ahead log for each commit (synchronous=FULL)."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("jsonl", "pages.jsonl"),
        pytest.param("warc", "*.warc.gz", marks=pytest.mark.whole),
        pytest.param("raw", "raw-*.gz", marks=pytest.mark.whole),
    ],
)
async def test_files_are_synced_before_the_commit_and_receipts_come_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    """write → fsync → commit → receipt."""
    disk = Disk(tmp_path, monkeypatch)
    commit = Sqlite.commit

    def committed(self: Sqlite, lengths: dict[str, int]) -> None:
        commit(self, lengths)
        disk.mark("commit")

    monkeypatch.setattr(Sqlite, "commit", committed)
    async with running(tmp_path, formats=("sqlite", kind), fsync=True) as rig:
        disk.calls.clear()
        rig.send_page(page(1))
        (receipt,) = rig.send(record(1))
        await rig.storage.flush()
        assert receipt.done
        assert rig.receipts
        disk.mark("receipt")
        assert order(disk.calls, name, "commit", "receipt"), disk.calls


@pytest.mark.parametrize(
    "kind",
    [
        "jsonl",
        "items",
        *(pytest.param(name, marks=pytest.mark.whole) for name in ("warc", "raw", "parquet", "markdown", "chunks")),
    ],
)
async def test_a_power_cut_after_a_flush_loses_no_committed_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The next start finds every committed length and goes on."""
    directory = tmp_path / "0"
    directory.mkdir()
    for start in range(0, 9, 3):
        disk = Disk(directory, monkeypatch, SQLITE)
        async with running(directory, formats=("sqlite", kind), fsync=True, parquet_rows=2) as rig:
            for number in range(start, start + 3):
                rig.send_page(page(number))
                rig.send(record(number, **structured(f"<h1>{number}</h1>"), items=[b'{"n": 1}'], rule="rule"))
            await rig.storage.flush()
            directory = disk.cut(tmp_path / str(start + 1))
    async with running(directory, formats=("sqlite", kind), fsync=True, parquet_rows=2):
        pass
    assert len(rows(directory)) == 9
    if kind == "jsonl":
        assert len(lines(directory)) == 9
    if kind == "markdown":
        assert len(list(directory.rglob("*.md"))) == 9
