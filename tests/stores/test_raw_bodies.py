"""The format raw: each body once, within its limits, readable after any end of the program."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from nephila_stores.raw_file import RawPage, read

from tests.storage.storage_rig import key, page, record, rows, running

RAW = ("sqlite", "raw")


def kept(directory):
    """All pages of all files."""
    return [found for path in sorted(directory.glob("raw-*.gz")) for found in read(path)]


async def store(rig, *pages):
    """Make pages and their records durable."""
    rig.send_page(*pages)
    rig.send(*(record(int(one.url.rpartition("/")[2].removesuffix(".html")), one.fetch_no) for one in pages))
    await rig.storage.flush()


async def test_bodies_are_kept_with_what_is_known_of_them(tmp_path):
    """As decoded, from any buffer type."""
    async with running(tmp_path, formats=RAW) as rig:
        body = "<p>grüße</p>".encode("latin-1") * 50
        await store(rig, page(1, body=memoryview(body), charset="latin-1"))
    (found,) = kept(tmp_path)
    assert found.body == body
    head = found.head
    assert (head.url, head.content_type, head.charset) == ("http://h1.test/p/1.html", "text/html", "latin-1")
    assert head.sha256 == hashlib.sha256(body).hexdigest()
    assert (head.url_key, head.fetch_no, head.status) == (key(1).hex(), 1, 200)


async def test_the_same_body_is_kept_once(tmp_path):
    """Within a flush, over flushes and files; both pages have the body. A 304 has no member."""
    body = bytes(range(256)) * 200
    async with running(tmp_path, formats=RAW, raw_bytes=10_000) as rig:
        await store(rig, page(1, body=body), page(2, body=body))
        await store(rig, page(3, body=body), page(4))
        await store(rig, page(3, 2, not_modified=True, body=b"", status=304))
        await store(rig, page(5, body=body))
    found = kept(tmp_path)
    assert [one.body == body for one in found] == [True, True, True, False, True]
    assert len(list(tmp_path.glob("raw-*.gz"))) > 0
    assert sum(one.head.kept_in == "" for one in found) == 2


async def test_beyond_the_limit_pages_are_noted_without_bodies(tmp_path, caplog):
    """One warning in the log, for any number of pages; rows are still written."""
    async with running(tmp_path, formats=RAW, raw_total_bytes=200) as rig:
        for number in range(4):
            await store(rig, page(number, body=hashlib.sha256(b"%d" % number).digest() * 20))
    found = kept(tmp_path)
    assert found[0].body
    assert not found[-1].body
    assert found[-1].head.left_out
    assert len(rows(tmp_path)) == 4
    assert len([line for line in caplog.messages if "raw_total_bytes" in line]) == 1


async def test_bytes_left_by_a_kill_are_truncated(tmp_path):
    """A damaged member after the committed ones is removed by the next start."""
    async with running(tmp_path, formats=RAW) as rig:
        await store(rig, page(1))
    file = tmp_path / "raw-00000.gz"
    with file.open("ab") as stream:
        stream.write(file.read_bytes()[:50])
    assert [type(one).__name__ for one in kept(tmp_path)] == ["RawPage", "DamagedMember"]
    async with running(tmp_path, formats=RAW) as rig:
        await store(rig, page(2))
    assert [one.head.url for one in kept(tmp_path)] == ["http://h1.test/p/1.html", "http://h2.test/p/2.html"]


async def test_a_page_whose_record_went_elsewhere_is_written_alone(tmp_path):
    """It waits for raw_wait_s; its late record does not count as missed."""
    async with running(tmp_path, formats=RAW, raw_wait_s=5) as rig:
        (waits,) = rig.send_page(page(1))
        rig.clock.advance(4)
        (later,) = rig.send_page(page(2))
        await rig.storage.flush()
        assert not waits.done
        rig.clock.advance(1)
        await rig.storage.flush()
        assert waits.done
        assert not later.done
        rig.send(record(1), record(2))
        await rig.storage.flush()
        assert later.done
    assert [one.head.url[-6:] for one in kept(tmp_path)] == ["1.html", "2.html"]


def test_a_writer_that_is_killed_leaves_readable_files(tmp_path):
    """kill -9 during a flush: the page of each durable row is there, complete."""
    code = """
import asyncio, sys
from pathlib import Path
from tests.storage.storage_rig import page, record, running

async def main(directory):
    async with running(directory, formats=("sqlite", "raw"), fsync=True) as rig:
        for number in range(5):
            rig.send_page(page(number))
            rig.send(record(number))
            await rig.storage.flush()

asyncio.run(main(Path(sys.argv[1])))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"PYTHONPATH": ":".join(map(str, sys.path)), "NEPHILA_FAILPOINT": "sink_flush_before:3"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0, done.stdout
    urls = {one.head.url for one in kept(tmp_path) if isinstance(one, RawPage)}
    durable = {row["url"] for row in rows(tmp_path)}
    assert len(durable) == 2
    assert durable <= urls
