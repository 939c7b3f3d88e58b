"""Where third-party acceptance data lies; without it these tests skip and say so."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def data_dir() -> Path:
    """NEPHILA_CONFORMANCE_DATA, else ../shared/data seen from the repository."""
    return Path(os.environ.get("NEPHILA_CONFORMANCE_DATA") or ROOT.parent / "shared" / "data")


def locate(name: str) -> Path:
    """A folder or file of the data, or a skip that names what is missing."""
    path = data_dir() / name
    if not path.exists():
        pytest.skip(f"no conformance data at {path} (NEPHILA_CONFORMANCE_DATA names another place)")
    return path


@pytest.fixture(scope="session")
def conformance_data() -> Path:
    """The folder of all data."""
    return locate("")


@pytest.fixture(params=["rust", "python"])
def core(request: pytest.FixtureRequest) -> ModuleType:
    """Each implementation of the native core in turn."""
    name = {"rust": "nephila.native._core", "python": "nephila.native._twin"}[request.param]
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip("the Rust core is not built here: no cargo at install")
