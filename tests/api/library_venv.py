"""Environments of tests for libraries that are too large for that of the developers."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


def environment(place: Path, requirement: str) -> Path:
    """An interpreter with the library, and the packages of this one behind it."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", requirement]
    found = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=280)
    if found.returncode:
        pytest.skip(f"{requirement} cannot be installed: {found.stderr[-200:]}")
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    Path(packages, "behind.pth").write_text(sysconfig.get_path("purelib"))
    return python
