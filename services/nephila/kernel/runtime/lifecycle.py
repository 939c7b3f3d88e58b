"""The lifecycle of a service: built with `build(config, bus, clock)`, started, drained, closed."""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """The interface of a service for the program that runs it."""

    async def start(self) -> None:
        """Open the durable state and subscribe; raises `UserError` when that is impossible."""

    async def drain(self, grace_s: float) -> None:
        """Accept no new work; finish or give back work in flight within `grace_s` seconds."""

    async def close(self) -> None:
        """Release all resources; nothing is published afterwards."""
