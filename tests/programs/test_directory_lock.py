"""One program at a time works in a directory."""

from __future__ import annotations

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
