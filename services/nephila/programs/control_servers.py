"""The control API of one program on this machine: DIR/control.sock always, a TCP port with a token on request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephila.control.api import Control
from nephila.control.http.unix_socket import NAME

if TYPE_CHECKING:
    from nephila.control.http.server import HttpServer


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Where the API is served in addition to the socket."""

    host: str
    """Empty: all addresses."""
    port: int
    token: str


class ControlServers:
    """The servers of one program, from `open` to `close`."""

    def __init__(
        self,
        control: Control,
        directory: Path,
        tcp: TcpAddress | None = None,
        *,
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
    ) -> None:
        """`metrics`: what /metrics answers, (text, content type)."""
        self.path = directory / NAME
        self._control = control
        self._directory = directory
        self._tcp = tcp
        self._metrics = metrics
        self._servers: list[HttpServer] = []

    async def open(self) -> None:
        """Listen. Raises `UserError`; then nothing listens."""
        # Imported here: a crawl has sent its first requests by now.
        from nephila.control.http.application import application
        from nephila.control.http.server import tcp_server, unix_server

        self._servers.append(unix_server(application(self._control, metrics=self._metrics), self._directory))
        if self._tcp is not None:
            app = application(self._control, token=self._tcp.token, metrics=self._metrics)
            self._servers.append(tcp_server(app, self._tcp.host, self._tcp.port, "--api"))
        for server in self._servers:
            await server.open()

    @property
    def port(self) -> int:
        """Of the TCP server; 0 without one."""
        return self._servers[1].port if len(self._servers) > 1 else 0

    @property
    def places(self) -> list[str]:
        """The socket, and the URL of the TCP server."""
        host = (self._tcp.host or "0.0.0.0") if self._tcp is not None else ""
        url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        return [str(self.path), *([url] if self._tcp is not None else [])]

    async def close(self) -> None:
        """Take no further requests."""
        servers, self._servers = self._servers, []
        for server in servers:
            await server.close()
