"""Where third-party acceptance data lies; a test without it skips and says so (and fails where all is required)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def locate(part: str = "") -> Path:
    """A folder or file of the data: under NEPHILA_CONFORMANCE_DATA, else ../shared/data seen from the repository."""
    base = Path(os.environ.get("NEPHILA_CONFORMANCE_DATA") or ROOT.parent / "shared" / "data")
    path = base / part
    if not path.exists():
        pytest.skip(f"no acceptance data at {path}; NEPHILA_CONFORMANCE_DATA names another place")
    return path
