"""Chromium for the tests that want it."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tools.chromium import NoChromium, executable


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium. Where it or Playwright is missing: a failure on CI, a skip elsewhere."""
    try:
        found = executable()
        if importlib.util.find_spec("playwright") is None:
            raise NoChromium("Playwright is not installed: pip install 'nephila[browser]'")
    except NoChromium as error:
        if os.environ.get("CI") or os.environ.get("NEPHILA_REQUIRE_ALL"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    return found
