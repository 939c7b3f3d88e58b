"""The control of one crawl, as the core's port has it (`nephila.programs.control_port`).

Most crawls end within seconds and have no client. The backend takes 45 modules: it is made with the first client, or
after `PATIENCE_S`, when curves and events begin to have a meaning. The counts after the first turn are noted before, so
curves begin at the start for a client that comes at any time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nephila.programs.control_port import Parts, RuleFiles
from nephila.scheduler import job_facts
from nephila.storage.config import StorageConfig

from nephila_control.control_servers import ControlServers, TcpAddress

if TYPE_CHECKING:
    from nephila_control.api import Control
    from nephila_control.local.backend import LocalBackend

PATIENCE_S: Final = 10.0
"""Seconds of a crawl without a client until its curves are kept; less than the time to the first look for events."""


class CrawlControl:
    def __init__(
        self,
        parts: Parts,
        storage: StorageConfig,
        rules: RuleFiles | None,
        address: TcpAddress | None,
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
    ) -> None:
        self._parts = parts
        self._storage = storage
        self._rules = rules
        self._backend: LocalBackend | None = None
        self._started = parts.clock.monotonic(), parts.clock.now()
        self._first_counts: dict[str, tuple[int, ...]] | None = None
        servers = ControlServers(lambda: self._operations, storage.directory, address, metrics=metrics)
        self.open, self.close = servers.open, servers.close

    def note(self) -> None:
        if self._backend is not None:
            self._backend.note()
        elif self._first_counts is None:
            self._first_counts = self._counts()
        elif self._parts.clock.monotonic() >= self._started[0] + PATIENCE_S:
            self._backend = self._make()
            self._backend.note()

    def _counts(self) -> dict[str, tuple[int, ...]]:
        parts = self._parts
        if parts.groups is not None:
            return parts.groups.counts()
        assert parts.scheduler is not None
        return job_facts.counts(parts.scheduler)

    @cached_property
    def _operations(self) -> Control:
        from nephila_control.operations import Operations

        self._backend = self._backend or self._make()
        return Operations(self._backend)

    def _make(self) -> LocalBackend:
        from nephila_control.local.backend import LocalBackend
        from nephila_control.local.group_backend import GroupBackend

        storage = self._storage
        rows = storage.store or None
        kind = LocalBackend if self._parts.groups is None else GroupBackend
        backend = kind(self._parts, storage.directory, storage.formats, rows, files=self._rules, once=True)
        backend.note_start(*self._started, self._first_counts)
        return backend


make_control = CrawlControl
