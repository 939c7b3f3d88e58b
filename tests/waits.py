"""Waits of tests for a condition that no event announces: of a broker, a thread or another process. Only they poll."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 60.0


async def until(condition: Callable[[], Any], limit_s: float = LIMIT_S) -> None:
    """Return once the condition, or what it awaits, is true; the loop runs meanwhile."""
    end = time.monotonic() + limit_s
    while not (await found if inspect.isawaitable(found := condition()) else found):
        assert time.monotonic() < end, "what was waited for did not come"
        await asyncio.sleep(0.005)


def wait_until(condition: Callable[[], Any], limit_s: float = LIMIT_S, every_s: float = 0.02) -> Any:
    """What the condition answers, once it is true."""
    end = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(every_s)
    return found
