"""The control of one crawl, as the core's port has it (`nephila.programs.control_port`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nephila.programs.control_port import Parts, RuleFiles
from nephila.storage.config import StorageConfig

from nephila_control.control_servers import ControlServers, TcpAddress
from nephila_control.local.backend import LocalBackend
from nephila_control.operations import Operations


class CrawlControl:
    def __init__(self, backend: LocalBackend, servers: ControlServers) -> None:
        self.note = backend.note
        self.open = servers.open
        self.close = servers.close


def make_control(
    parts: Parts,
    storage: StorageConfig,
    rules: RuleFiles | None,
    address: TcpAddress | None,
    metrics: Callable[[], Awaitable[tuple[bytes, str]]],
) -> CrawlControl:
    rows = storage.store or None
    backend = LocalBackend(parts, storage.directory, storage.formats, rows, files=rules, once=True)
    return CrawlControl(backend, ControlServers(Operations(backend), storage.directory, address, metrics=metrics))
