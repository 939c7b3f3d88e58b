"""A Parquet dataset: names, an object store, a store that is away, settings that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import TemporaryError, UsageError, UserError
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_stores.remote.blobs import DirectoryBlobs, open_blobs

from tests.storage.storage_rig import record

DAY_S = 86_400


def opened(directory: Path, place: str, **config: Any) -> Writer:
    """An open writer with a dataset."""
    found = Writer(StorageConfig(directory=directory, formats=("dataset",), dataset=place, fsync=False, **config))
    found.open()
    return found


def put(writer: Writer, *records: m.Record) -> None:
    """One flush."""
    writer.commit(records, [None] * len(records), [])
    writer.after_commit()


def numbers(place: Path) -> list[int]:
    """Sizes of the stored pages, which are their numbers, of all files."""
    return sorted(pyarrow.dataset.dataset(place, partitioning="hive").to_table().column("bytes").to_pylist())


def test_files_are_partitioned_by_job_and_day(tmp_path):
    """A file of a segment for each job and day; a fetch without a time has no day."""
    writer = opened(tmp_path / "out", str(tmp_path / "set"))
    later = record(2).fetched_at + DAY_S
    put(writer, record(1), record(2, fetched_at=later), record(3, job="other"))
    put(writer, record(4, outcome=m.Outcome.DENIED, reason="robots", fetched_at=0.0))
    writer.close()
    found = sorted(path.parent.relative_to(tmp_path / "set").as_posix() for path in tmp_path.rglob("*.parquet"))
    unknown = "job=job-1/day=__HIVE_DEFAULT_PARTITION__"
    assert found == [
        "job=job-1/day=2027-01-15",
        "job=job-1/day=2027-01-16",
        unknown,
        "job=other/day=2027-01-15",
    ]
    rows = pyarrow.dataset.dataset(tmp_path / "set", partitioning="hive").to_table().to_pylist()
    assert {(row["job"], str(row["day"])) for row in rows} == {
        ("job-1", "2027-01-15"),
        ("job-1", "2027-01-16"),
        ("job-1", "None"),
        ("other", "2027-01-15"),
    }


def test_two_crawls_of_one_job_name_share_a_dataset(tmp_path):
    """Their files have different names."""
    for number in (1, 2):
        writer = opened(tmp_path / str(number), str(tmp_path / "set"))
        put(writer, record(number))
        writer.close()
    assert numbers(tmp_path / "set") == [1001, 1002]


def test_an_object_store_gets_whole_objects(tmp_path, bucket):
    """Also after a restart; the probe is no row."""
    for number in (1, 2):
        writer = opened(tmp_path, bucket)
        put(writer, record(number))
        writer.close()
    blobs = open_blobs(bucket)
    names = blobs.names("job=job-1")
    assert len(names) == 2
    tables = [pyarrow.parquet.read_table(pyarrow.BufferReader(blobs.get(name))) for name in names]
    assert sorted(size for table in tables for size in table.column("bytes").to_pylist()) == [1001, 1002]
    assert not list(tmp_path.glob("*.part"))


def test_a_store_that_is_away_costs_no_row_and_no_flush(tmp_path, monkeypatch, caplog):
    """Segments wait on the disk, the close says so, and the next start uploads them once."""
    writer = opened(tmp_path / "out", str(tmp_path / "set"), parquet_rows=2)
    real = DirectoryBlobs.put

    def away(self: DirectoryBlobs, name: str, content: bytes | Path) -> None:
        raise TemporaryError("s3://x: connection refused")

    put(writer, record(1))
    monkeypatch.setattr(DirectoryBlobs, "put", away)
    for number in range(2, 6):
        put(writer, record(number))
    assert "connection refused" in caplog.text
    with pytest.raises(UserError, match=r"3 files wait in .*; run again with --resume"):
        writer.close()
    monkeypatch.setattr(DirectoryBlobs, "put", real)
    opened(tmp_path / "out", str(tmp_path / "set")).close()
    assert numbers(tmp_path / "set") == [1001, 1002, 1003, 1004, 1005]
    assert [path.stat().st_size for path in (tmp_path / "out").glob("*.spool")] == [0]


def test_a_stop_between_two_objects_of_a_segment_duplicates_nothing(tmp_path, monkeypatch):
    """The repeated upload replaces the first object."""
    writer = opened(tmp_path / "out", str(tmp_path / "set"))
    real, names = DirectoryBlobs.put, []

    def fragile(self: DirectoryBlobs, name: str, content: bytes | Path) -> None:
        names.append(name)
        if len(names) == 2:
            raise TemporaryError("gone")
        real(self, name, content)

    put(writer, record(1), record(2, job="b"), record(3, job="c"))
    monkeypatch.setattr(DirectoryBlobs, "put", fragile)
    with pytest.raises(UserError, match="1 files wait"):
        writer.close()
    opened(tmp_path / "out", str(tmp_path / "set")).close()
    assert numbers(tmp_path / "set") == [1001, 1002, 1003]
    assert names[0] == names[3]


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("", UsageError, "the format dataset needs its place: set storage.dataset"),
        ("ftp://host/x", UsageError, "ftp://host/x: "),
        ("/proc/none/x", UserError, r"storage.dataset: /proc/none.*; check the place and its credentials"),
    ],
)
def test_bad_places_are_refused_in_one_line(tmp_path, place, error, message):
    """Before the first page."""
    with pytest.raises(error, match=message) as caught:
        opened(tmp_path, place)
    assert "\n" not in str(caught.value)
