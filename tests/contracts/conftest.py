"""Contracts that touch sockets hold on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The fetchers run on asyncio's loop and on uvloop, everything else on asyncio's."""
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.name == "test_fetcher.py":
        factories["uvloop"] = uvloop.new_event_loop
    return factories
