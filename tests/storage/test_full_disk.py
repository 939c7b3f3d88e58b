"""A full disk during a flush: one clear line, no receipt, files unchanged, and a resumed run that completes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError

from tests.storage.storage_rig import lines, record, rows, running


async def test_a_sink_that_cannot_be_written_ends_the_run_once(tmp_path, monkeypatch):
    """on_fatal is called once; committed rows stay, nothing else is receipted."""
    async with running(tmp_path, formats=("sqlite", "jsonl")) as rig:
        rig.send(record(1))
        await rig.storage.flush()
        write = os.write

        def full(descriptor, data):
            # A disk accepts some bytes before it is full.
            write(descriptor, bytes(data)[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            (receipt,) = rig.send(record(2))
            with pytest.raises(UserError, match=r"disk full writing .*jsonl; free space and run .* --resume"):
                await rig.storage.flush()
        rig.send(record(3))
        rig.clock.advance(10)
        with pytest.raises(UserError, match="disk full"):
            await rig.storage.flush()
        await rig.storage.drain(1)
        assert [str(error) for error in rig.fatal] == [str(rig.fatal[0])]
        assert not receipt.done
        assert len(rig.receipts) == 1
        assert len(lines(tmp_path)) == 1
    assert len(rows(tmp_path)) == 1
    async with running(tmp_path, formats=("sqlite", "jsonl")) as rig:
        rig.send(record(2), record(3))
        await rig.storage.flush()
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 3


START = """
import asyncio, resource, sys
from pathlib import Path
from tests.storage.storage_rig import running

async def main(directory):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    try:
        async with running(directory):
            pass
    except Exception as error:
        print(type(error).__name__, error)

asyncio.run(main(Path(sys.argv[1])))
"""

LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from tests.storage.storage_rig import record, running

async def main(directory, formats):
    async with running(directory, formats=formats, batch_rows=1000) as rig:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
        for start in range(0, 400, 50):
            rig.send(*(record(n, text=b"x" * 10_000) for n in range(start, start + 50)))
            try:
                await rig.storage.flush()
            except Exception:
                break
    print(len(rig.receipts), *rig.fatal)

asyncio.run(main(Path(sys.argv[1]), tuple(sys.argv[2].split(","))))
"""


def output_of(code, *arguments):
    """The output of a program; its exit code must be 0."""
    path = ":".join(str(item) for item in [Path(__file__).parent, *sys.path])
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
@pytest.mark.parametrize("formats", ["sqlite", "sqlite,jsonl"])
def test_the_kernel_refuses_to_let_a_file_grow(tmp_path, formats):
    """A real refused write, in SQLite and in a sink: receipts equal rows, and the next run continues."""
    receipts, _, fatal = output_of(LIMITED, str(tmp_path), formats).partition(" ")
    assert "run again with --resume" in fatal
    assert 0 < int(receipts) < 400
    assert len(rows(tmp_path)) == int(receipts)
    if "jsonl" in formats:
        assert len(lines(tmp_path)) == int(receipts)


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
def test_no_room_for_the_database(tmp_path):
    """The start reports it in one line."""
    said = output_of(START, str(tmp_path))
    assert said.startswith(f"UserError cannot write {tmp_path}/nephila.db: ")
    assert "\n" not in said
