"""Chromium for the tests that want it."""

from __future__ import annotations

import importlib.util

import pytest

from tests.required import absent, required
from tools.chromium import find
from tools.install import Missing


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium. Where it or Playwright is missing: a failure on CI, a skip elsewhere."""
    if importlib.util.find_spec("playwright") is None:
        absent("Playwright is not installed: pip install 'nephila[browser]'")
    with required(Missing):
        return find()
