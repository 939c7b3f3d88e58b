"""The control API of one program on this machine: DIR/control.sock always, a TCP port with a token on request.

The socket listens from the start. Its HTTP server is loaded with the first connection: it takes a fifth of the CPU of a
start and 10 MB, and most crawls have no client.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nephila_control.http.unix_socket import NAME, bind

if TYPE_CHECKING:
    from nephila_doors.firecrawl.server import FirecrawlServer
    from starlette.routing import BaseRoute

    from nephila_control.access.authority import Authority
    from nephila_control.access.live_access import LiveAccess
    from nephila_control.api import Control
    from nephila_control.http.server import HttpServer

SESSIONS = "console-sessions.json"
"""File of the directory with the sessions of the console that this program serves."""
BACKLOG = 64
"""Connections that wait while the HTTP server is loaded."""


class TcpAddress(msgspec.Struct, frozen=True):
    """The API is served at this address in addition to the socket."""

    host: str
    """An empty host means all addresses."""
    port: int
    token: str = ""
    """The token may do everything; without it only the tokens of `logins` count."""
    logins: LiveAccess | None = None
    names: tuple[str, ...] = ()
    """Names by which browsers open the console, beside addresses, localhost and the name of this machine."""
    firecrawl: bool = False


def authority_of(control: Control, token: str, logins: LiveAccess | None) -> Authority:
    from nephila_control.access.authority import Authority, administrator

    return Authority(control, administrator(token), logins)


class Clients(NamedTuple):
    """The server of the control API serves these clients of it beside it."""

    routes: list[BaseRoute]
    firecrawl: FirecrawlServer | None = None
    """Starts and closes with the server."""

    async def start(self) -> None:
        if self.firecrawl is not None:
            await self.firecrawl.start()

    async def close(self) -> None:
        if self.firecrawl is not None:
            await self.firecrawl.close()


def clients_of(
    authority: Authority,
    logins: LiveAccess | None,
    names: Sequence[str] = (),
    *,
    firecrawl: Path | str | None = None,
    sessions: Path | None = None,
) -> Clients:
    """The console is always a client. `firecrawl` is the place of the rows, and adds Firecrawl's API; `logins` and
    `names` are those of `TcpAddress`. `sessions` is the file in which sessions of the console outlive the server."""
    from nephila_console.application import routes  # templates to load
    from nephila_console.logins import Access

    screens = list(routes(Access(authority, names, live=logins, sessions=sessions)))
    if firecrawl is None:
        return Clients(screens)
    from nephila_doors.firecrawl.server import FirecrawlServer

    server = FirecrawlServer(authority, firecrawl)
    return Clients([*screens, *server.routes], server)


class ControlServers:
    """The servers of one program, from `open` to `close`."""

    def __init__(
        self,
        control: Callable[[], Control],
        directory: Path,
        tcp: TcpAddress | None = None,
        *,
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
        store: str = "",
    ) -> None:
        """`control` is called with the first connection, and at the start with a TCP port. `metrics` returns the answer
        of /metrics as (text, content type). `store` is the URL of the database with the rows; an empty one means the
        directory."""
        self.path = directory / NAME
        self._control = control
        self._directory = directory
        self._tcp = tcp
        self._metrics = metrics
        self._rows: Path | str = store or directory
        self._clients = Clients([])
        self._tcp_server: HttpServer | None = None
        self._unix_server: HttpServer | None = None
        self._listener: socket.socket | None = None
        """The socket until the HTTP server takes it over."""
        self._loading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen. Raises `UserError`; then nothing listens."""
        listener = bind(self._directory)
        listener.listen(BACKLOG)
        if self._tcp is not None:
            try:
                await self._open_tcp(self._tcp)
            except BaseException:
                listener.close()
                self._unlink()
                raise
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._on_client)

    async def _open_tcp(self, tcp: TcpAddress) -> None:
        from nephila_control.http.application import application
        from nephila_control.http.server import tcp_server

        control = self._control()
        authority = authority_of(control, tcp.token, tcp.logins)
        rows = self._rows if tcp.firecrawl else None
        sessions = self._directory / SESSIONS
        clients = clients_of(authority, tcp.logins, tcp.names, firecrawl=rows, sessions=sessions)
        app = application(control, authority=authority, metrics=self._metrics, beside=clients.routes)
        server = tcp_server(app, tcp.host, tcp.port, "--api")
        await server.open()
        self._tcp_server, self._clients = server, clients
        await clients.start()

    def _on_client(self) -> None:
        """The first connection waits: load the HTTP server, which accepts it."""
        asyncio.get_running_loop().remove_reader(self._listener)  # type: ignore[arg-type]
        self._loading = asyncio.ensure_future(self._serve())

    async def _serve(self) -> None:
        # In a thread: the modules take some 0.1 s, and no callback of the loop may.
        await asyncio.to_thread(_load)
        from nephila_control.http.application import application
        from nephila_control.http.server import HttpServer

        listener = self._listener
        assert listener is not None
        app = application(self._control(), metrics=self._metrics)
        server = HttpServer(app, lambda: listener, self.path)
        await server.open()
        self._unix_server, self._listener = server, None

    @property
    def port(self) -> int:
        """Port of the TCP server; 0 without one."""
        return self._tcp_server.port if self._tcp_server is not None else 0

    @property
    def places(self) -> list[str]:
        """Path of the socket, and URL of the TCP server."""
        host = (self._tcp.host or "0.0.0.0") if self._tcp is not None else ""
        url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        return [str(self.path), *([url] if self._tcp is not None else [])]

    async def close(self) -> None:
        if self._loading is not None:
            await self._loading
        if self._listener is not None:
            listener, self._listener = self._listener, None
            asyncio.get_running_loop().remove_reader(listener)
            self._unlink()
            listener.close()
        servers = (self._unix_server, self._tcp_server)
        self._unix_server = self._tcp_server = None
        for server in servers:
            if server is not None:
                await server.close()
        clients, self._clients = self._clients, Clients([])
        await clients.close()

    def _unlink(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()


def _load() -> None:
    import nephila_control.http.application
    import nephila_control.http.server  # noqa: F401
