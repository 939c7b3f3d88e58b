"""The log of changes of a system over Kafka: the topic `control-log`, whose entries expire; the last ones in memory."""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Awaitable, Callable
from typing import Final

from nephila.kernel.messages import ControlChange
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError

from nephila_control import system_types
from nephila_control.access.change_log import Entries, select

log = logging.getLogger(__name__)
KEPT: Final = 10_000
"""Entries in memory: some 4 MB."""


class TopicChangeLog:
    """Every API server reads the entries of all servers."""

    def __init__(self, clock: Clock, publish: Callable[[ControlChange], Awaitable[None]]) -> None:
        """`publish` returns when the broker has the entry. Raises `UserError`."""
        self._publish = publish
        self._made = Entries(clock)
        self._entries: list[ControlChange] = []
        """Sorted by id, the oldest first."""

    def on_entry(self, entry: ControlChange) -> None:
        """Takes an entry of the topic; the topic may deliver it twice."""
        if self._entries and entry.id <= self._entries[-1].id:
            if any(other.id == entry.id for other in self._entries):
                return
            insort(self._entries, entry, key=lambda other: other.id)
        else:
            self._entries.append(entry)
        if len(self._entries) > KEPT:
            del self._entries[: len(self._entries) - KEPT]

    async def note(self, who: str, operation: str, subject: str, change: str, author: str = "") -> None:
        entry = self._made.make(who, operation, subject, change, author)
        if entry is None:
            return
        self.on_entry(entry)
        try:
            await self._publish(entry)
        except UserError as error:
            log.error("the log of changes cannot be written", exc_info=error)

    async def read(self, request: system_types.ListControlLog) -> system_types.ControlLog:
        return select(reversed(self._entries), request)
