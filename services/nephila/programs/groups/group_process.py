"""One process of a group, from its start to its end, as the main process holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.bus.pipe.link import Channel, later
from nephila.kernel.bus.pipe.socket_pipe import Pipe
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.programs.groups.child_process import ChildProcess
from nephila.programs.groups.group_member import GroupMember
from nephila.programs.groups.members import Groups

GATHER_S = 0.005
"""Longest wait of links and receipts for others that are written to the pipe with them."""


class EndedAtStartError(UserError):
    """A group has ended before it had read its log."""


class GroupProcess(ChildProcess):
    """One process of a group."""

    def __init__(
        self,
        member: GroupMember,
        groups: Groups,
        bus: LocalBus,
        clock: Clock,
        on_control: Callable[[GroupProcess, Any], None],
        on_gone: Callable[[GroupProcess, Exception | None], None],
    ) -> None:
        super().__init__(f"worker {member.number + 1}", Pipe(self._on_bytes, partial(on_gone, self)))
        self.member = member
        self.link = Channel(
            bus, self.pipe.write, clock.call_soon, partial(on_control, self), groups.take, later(clock, GATHER_S)
        )
        self.recovered: asyncio.Future[p.Recovered] = asyncio.get_running_loop().create_future()
        self.loaded = asyncio.Event()
        """It has answered, or has ended."""
        self.drained = asyncio.Event()
        self.gone = asyncio.Event()

    @property
    def ready(self) -> bool:
        """It has read its logs, and runs."""
        return self.recovered.done() and not self.gone.is_set()

    def _on_bytes(self, data: bytes) -> None:
        self.heard()
        self.link.receive(data)

    def set_gone(self) -> None:
        """It has ended."""
        for event in (self.loaded, self.drained, self.gone):
            event.set()
        if not self.recovered.done():
            self.recovered.set_exception(
                EndedAtStartError(f"{self.name} ended before it had read its log; see nephila doctor")
            )

    async def kill(self) -> None:
        """End a process whose logs are not open."""
        if self.popen is not None and not self.gone.is_set():
            self.popen.kill()
        self.pipe.close()
        await self.reap()
        if self.recovered.done():
            self.recovered.exception()  # nobody waits for it
