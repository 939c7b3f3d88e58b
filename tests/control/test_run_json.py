"""`run.json`: written as a whole, also where the disk has no room for a second one."""

from __future__ import annotations

import errno
import os

import pytest
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila_control.commands.client import needed


@pytest.fixture
def full(monkeypatch):
    """A disk without a free block."""

    def refuse(fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: monkeypatch.setattr(os, "fsync", refuse)


@pytest.mark.parametrize("reason", ["done", ""])
def test_on_a_full_disk_the_old_one_is_written_over(tmp_path, full, reason):
    """The counts are those of the table whether the new text is longer or shorter, and nothing is left beside it."""
    directory = OutputDirectory(tmp_path)
    directory.write(RunFile(reason="waiting", rows=12345))
    full()
    directory.write(RunFile(reason=reason, rows=7, seeds=["http://a.test/"] if reason else []))
    run = directory.read()
    assert run is not None
    assert (run.reason, run.rows) == (reason, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_on_a_full_disk_a_first_or_a_larger_one_is_refused(tmp_path, full):
    """What does not fit leaves what there was."""
    directory = OutputDirectory(tmp_path)
    directory.write(RunFile(rows=1))
    full()
    with pytest.raises(UserError, match="disk full"):
        directory.write(RunFile(seeds=["http://a.test/"] * 1000))
    run = directory.read()
    assert run is not None
    assert run.rows == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("damage", [b'"\xff"', b"[" * 100_000, b"", b"{"])
def test_a_damaged_file_is_one_line_with_its_remedy(tmp_path, damage):
    """A byte that is not UTF-8, deep nesting, a cut file."""
    (tmp_path / "run.json").write_bytes(b'{"program": ' + damage)
    with pytest.raises(UserError, match=r"run\.json is damaged .*; move it away") as caught:
        OutputDirectory(tmp_path).read()
    assert "\n" not in str(caught.value)


def test_a_crawl_that_runs_is_not_called_unfinished(tmp_path):
    """Who begins another there hears that it runs, and not that it wants to be resumed; afterwards the other way."""
    directory = OutputDirectory(tmp_path)
    directory.write(RunFile(seeds=["http://a.test/"]))
    with directory.locked(), pytest.raises(UserError, match=f"in use by another nephila .process {os.getpid()}."):
        directory.check_fresh(directory.read(), directory.holder(), ())
    with pytest.raises(UsageError, match=r"holds an unfinished crawl of http://a\.test/; continue it with --resume"):
        directory.check_fresh(directory.read(), directory.holder(), ())


def test_jobs_of_a_crawl_that_has_stopped(tmp_path):
    """No nephila up could be started there: the line names what can."""
    OutputDirectory(tmp_path).write(RunFile(seeds=["http://a.test/"]))
    with pytest.raises(UserError, match=r"holds a crawl that is not running; go on with: nephila crawl --resume"):
        needed(tmp_path)
