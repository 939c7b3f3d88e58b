"""What conformance tests share."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.acceptance import locate


@pytest.fixture(scope="session")
def conformance_data() -> Path:
    """The folder of all data."""
    return locate()


@pytest.fixture(params=["rust", "python"])
def core(request: pytest.FixtureRequest) -> ModuleType:
    """Each implementation of the native core in turn."""
    name = {"rust": "nephila.native._core", "python": "nephila.native.fallback"}[request.param]
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip("the Rust core is not built here: no cargo at install")
