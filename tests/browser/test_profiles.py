"""Profiles of browsers: those of programs that were killed are deleted, those in use stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nephila_browser.profiles import PREFIX, Profile, delete_abandoned

KILLED = """
import os, signal
from nephila_browser.profiles import Profile
print(Profile().path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_profiles_of_a_killed_program_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that is in use stays, and so does a directory without a lock: its program may be about to make one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], env={"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()
    assert Path(killed).is_dir()
    own = Profile()
    new = tmp_path / f"{PREFIX}new"
    new.mkdir()
    assert delete_abandoned() == [killed]
    assert Path(own.path).is_dir()
    assert new.is_dir()
    assert delete_abandoned() == []
    own.delete()
    assert not Path(own.path).exists()
