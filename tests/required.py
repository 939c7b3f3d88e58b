"""Parts that a machine may lack: the test fails on CI, and is skipped elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NoReturn

import pytest


def absent(message: str) -> NoReturn:
    """End the test or fixture, since a part is missing. `message`: which, and how to get it."""
    if os.environ.get("CI") or os.environ.get("NEPHILA_REQUIRE_ALL"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@contextlib.contextmanager
def required(*missing: type[Exception]) -> Iterator[None]:
    """End the test or fixture when the body raises one of these errors."""
    try:
        yield
    except missing as error:
        absent(str(error))
