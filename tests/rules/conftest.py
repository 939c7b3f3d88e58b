"""Rules for the tests of rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.parser.parser_room import ROOMS


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    """A child that a test leaves is collected in a later one, which then fails by its warning."""
    yield
    left = [pid for room in ROOMS for pid in room.sandbox.pids]
    ROOMS.clear()
    assert not left, "the test must close its parser"
