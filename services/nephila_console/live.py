"""Fresh figures of screens: server-sent events with one producer for all who look at the same thing.

A channel belongs to an address, a language, a role and tenants. While it has viewers its screen is rendered once in
`EVERY_S`; each viewer gets the same bytes with the CSRF token of its own session in place of `_CSRF`. Without viewers
nothing runs. A viewer costs one connection and a copy of the part that is shown.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Final

import msgspec
from nephila.kernel.runtime.errors import UserError

EVERY_S: Final = 5.0
VIEWERS: Final = 500
"""Connections of one server; a further viewer sees the figures of the instant at which it loaded the page."""
CSRF: Final = secrets.token_urlsafe(24)
"""Stands for the CSRF token in what is rendered for many."""
Render = Callable[[], Awaitable[str]]
Pause = Callable[[float], Awaitable[None]]


class Channel:
    """Viewers with the same rights on the same screen share a channel."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.event = b""
        self.viewers = 0

    async def produce(self, pause: Pause) -> None:
        """Renders as long as there is a viewer."""
        while self.viewers:
            try:
                self.event = _event("part", await self._render())
            except UserError as error:
                self.event = _event("away", str(error))
            due, self._next = self._next, asyncio.get_running_loop().create_future()
            due.set_result(None)
            await pause(EVERY_S)

    async def turn(self) -> None:
        """Waits for the next event. A slow viewer may miss events, as each has everything."""
        await asyncio.shield(self._next)


class Live:
    def __init__(self, pause: Pause = asyncio.sleep) -> None:
        self._pause = pause
        self._channels: dict[Hashable, tuple[Channel, asyncio.Task[None]]] = {}

    @property
    def viewers(self) -> int:
        """Number of open connections."""
        return sum(channel.viewers for channel, _ in self._channels.values())

    async def events(self, key: Hashable, render: Render, csrf: Callable[[], str]) -> AsyncIterator[bytes]:
        """Yields the events of one viewer. `csrf` returns the token of its session, or an empty string once the session
        has ended."""
        channel = self._join(key, render)
        try:
            while True:
                token = csrf()
                if not token:
                    yield _event("end", "")
                    return
                if channel.event:
                    yield channel.event.replace(CSRF.encode(), token.encode())
                await channel.turn()
        finally:
            self._leave(key, channel)

    def _join(self, key: Hashable, render: Render) -> Channel:
        entry = self._channels.get(key)
        if entry is None:
            channel = Channel(render)
            channel.viewers = 1
            self._channels[key] = channel, asyncio.ensure_future(channel.produce(self._pause))
            return channel
        entry[0].viewers += 1
        return entry[0]

    def _leave(self, key: Hashable, channel: Channel) -> None:
        channel.viewers -= 1
        if not channel.viewers:
            _, task = self._channels.pop(key)
            task.cancel()


def _event(name: str, data: str) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"
