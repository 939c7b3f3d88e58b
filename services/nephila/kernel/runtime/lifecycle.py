"""How a service lives: built with `build(config, bus, clock)`, started, drained, closed."""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """What the program that runs services sees of each of them."""

    async def start(self) -> None:
        """Open what is durable and begin to take work; raises `UserError` when that is impossible."""

    async def drain(self, grace_s: float) -> None:
        """Take no new work; finish or give back what is in hand within `grace_s` seconds."""

    async def close(self) -> None:
        """Release everything; nothing may be published afterwards."""
