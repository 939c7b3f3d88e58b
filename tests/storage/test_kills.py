"""kill -9 during a flush: after the next start no row is lost or duplicated, and no line is truncated."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.storage.storage_rig import key, lines, rows

FORMATS = ("sqlite", "jsonl", "warc", "parquet")
FLUSHES, ROWS = 6, 20

CRAWL = """
import asyncio, sys
from pathlib import Path
from tests.storage.storage_rig import page, record, running

async def main(directory, flushes, size):
    async with running(directory, formats=("sqlite", "jsonl", "warc", "parquet", "dataset"), fsync=True,
                       dataset=str(directory / "dataset"), parquet_rows=30) as rig:
        for flush in range(flushes):
            numbers = range(flush * size, flush * size + size)
            rig.send_page(*(page(n, attempt=int(sys.argv[2])) for n in numbers))
            rig.send(*(record(n, attempt=int(sys.argv[2])) for n in numbers))
            await rig.storage.flush()
            print(len(rig.receipts), flush=True)

asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[3:])))
"""


def crawl(directory: Path, attempt: int, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    """Write the same pages again, as a resumed crawl does in the worst case."""
    path = ":".join(sys.path)
    return subprocess.run(
        [sys.executable, "-c", CRAWL, str(directory), str(attempt), str(FLUSHES), str(ROWS)],
        env={"PYTHONPATH": path, "NEPHILA_FAILPOINT": failpoint},
        capture_output=True,
        text=True,
        timeout=60,
    )


def warc_fetches(directory: Path) -> list[str]:
    """Fetch ids of the responses; a damaged member or a wrong digest is an error."""
    found = []
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for item in ArchiveIterator(stream, parse_http=False):
                assert item.verify_block_digest() or item.record_type == WarcRecordType.warcinfo
                if item.record_type == WarcRecordType.response:
                    found.append(item.headers["Nephila-Fetch-ID"])
    return found


@pytest.mark.full
@pytest.mark.parametrize("point", ["sink_flush_before", "sink_flush_after", "dataset_uploaded"])
def test_killed_at_every_flush(tmp_path, point):
    """Each run commits one flush more than the previous one and dies in the next; the last run completes."""
    for attempt in range(1, 5):
        ended = crawl(tmp_path, attempt, f"{point}:{min(attempt, 2) if point == 'sink_flush_before' else 1}")
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        receipted = int((ended.stdout.split() or ["0"])[-1])
        assert len(rows(tmp_path)) >= receipted
    ended = crawl(tmp_path, 9)
    assert ended.returncode == 0, ended.stderr
    expected = sorted(key(n).hex() for n in range(FLUSHES * ROWS))
    assert sorted(row["url_key"] for row in rows(tmp_path)) == expected
    assert sorted(line["url_key"] for line in lines(tmp_path)) == expected
    assert sorted(fetch[:32] for fetch in warc_fetches(tmp_path)) == expected
    assert len(rows(tmp_path, "fetches", "id")) == len(expected)
    tables = [pyarrow.parquet.read_table(path) for path in sorted(tmp_path.glob("pages-*.parquet"))]
    assert sorted(found for table in tables for found in table.column("url_key").to_pylist()) == expected
    dataset = pyarrow.dataset.dataset(tmp_path / "dataset", partitioning="hive")
    assert sorted(dataset.to_table().column("url_key").to_pylist()) == expected
    # Each sink has the fetch of the database.
    fetch_ids = {row["fetch_id"] for row in rows(tmp_path)}
    assert fetch_ids == {line["fetch_id"] for line in lines(tmp_path)} == set(warc_fetches(tmp_path))
