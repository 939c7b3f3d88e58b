"""One program at a time works in a directory."""

from __future__ import annotations

import os

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory


def test_a_second_program_is_refused(tmp_path):
    """It names the first; afterwards the directory is free."""
    with OutputDirectory(tmp_path).locked(), pytest.raises(UserError, match="in use by another nephila"):
        OutputDirectory(tmp_path).locked().__enter__()
    with OutputDirectory(tmp_path).locked():
        pass


def test_a_lock_file_that_is_deleted_lets_nobody_in(tmp_path):
    """The directory itself is locked as well."""
    with OutputDirectory(tmp_path).locked():
        (tmp_path / ".lock").unlink()
        with pytest.raises(UserError, match="in use by another nephila"):
            OutputDirectory(tmp_path).locked().__enter__()


def test_a_file_system_that_locks_no_directories_has_the_file(tmp_path, monkeypatch):
    """A network's file systems refuse it."""
    import fcntl
    import os
    import stat

    real = fcntl.flock

    def flock(fd, operation):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(9, "Bad file descriptor")
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with OutputDirectory(tmp_path).locked(), pytest.raises(UserError, match="in use by another nephila"):
        OutputDirectory(tmp_path).locked().__enter__()


@pytest.mark.parametrize("name", ["run.json", "nephila.db", "pages.jsonl", "frontier/a.log", ".lock"])
def test_a_fifo_or_a_device_is_named_before_it_is_opened(tmp_path, name):
    """A program that opens one waits for ever, or writes past the disk; files, links to files and sockets are fine."""
    (tmp_path / "frontier").mkdir()
    (tmp_path / "rows").write_text("x")
    (tmp_path / "items.jsonl").symlink_to(tmp_path / "rows")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert OutputDirectory(tmp_path).read() is None
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match=f"{name} is a FIFO and no file"):
        OutputDirectory(tmp_path).read()
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(UserError, match=f"{name} is a device and no file"):
        OutputDirectory(tmp_path).read()
