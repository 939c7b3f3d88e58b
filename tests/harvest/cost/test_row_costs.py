"""Cost of jobs by their rows."""

from __future__ import annotations

from pathlib import Path

from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_harvest.row_costs import costs

from tests.storage.storage_rig import record


def test_fetches_bytes_and_useful_items_of_each_job(tmp_path: Path) -> None:
    writer = Writer(StorageConfig(directory=tmp_path, fsync=False))
    writer.open()
    records = [record(1, text=b"abcd"), record(2, job="job-2", items=[b'{"a":1}', b'{"a":2}'], rule="r")]
    writer.commit(records, [None, None], [])
    writer.commit([record(1, 2, text=b"abcd")], [None], [])
    writer.close()
    first, second = costs(tmp_path)
    assert first[1:] == (2, 2002, 1, 0, 4, 0)
    assert (first.useful, first.per_useful(first.fetches)) == (1, 2)
    assert (second.job, second.useful, second.per_useful(second.bytes)) == ("job-2", 2, 501)
    assert [one.job for one in costs(tmp_path, "job-2")] == ["job-2"]
