"""The bench web's server: one process, all hosts by their Host header, loopback addresses only, every request logged.

usage: python -m benchmarks.web.serve DIR [--port 8089] [--log LOG]

DIR is a generated site, or plain files as DIR/<host>/<path>. It stops on SIGTERM or Ctrl-C.
"""

import argparse
import asyncio
import ipaddress
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from benchmarks.web.access_log import AccessLog
from benchmarks.web.connection import Connection, Shared
from benchmarks.web.content import Content, open_content


class Server:
    """A running server; `async with` starts and stops it."""

    def __init__(self, content: Content, port: int, log: Path | None, token: str = "") -> None:
        self._content, self.port, self._log, self._token = content, port, log, token

    async def __aenter__(self) -> "Server":
        require_loopback(self._content.addresses)
        self.log = AccessLog(self._log)
        self.shared = Shared(self._content, self.log, self._token)
        self.shared.turn()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: Connection(self.shared), self._content.addresses, self.port, backlog=4096, reuse_address=True
        )
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        for connection in list(self.shared.open):
            connection.transport.abort()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.log.close()


def require_loopback(addresses: list[str]) -> None:
    """The bench web is hostile on purpose: it must never be reachable from elsewhere."""
    outside = [a for a in addresses if not ipaddress.ip_address(a).is_loopback]
    if outside:
        raise SystemExit(f"not a loopback address: {', '.join(outside)}")


async def serve(folder: Path, port: int, log: Path | None, token: str = "") -> None:
    """Serve until a signal."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    content = open_content(folder)
    async with Server(content, port, log, token) as server:
        print(f"serving {folder} on {len(content.addresses)} addresses, port {server.port}", flush=True)
        await stop.wait()
        print(f"{server.log.requests} requests served", flush=True)


def runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    """uvloop's where it is installed: the server must not be what a fast crawler waits for."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.web.serve", description="Serve a bench web on loopback.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--token", default="", help="answered at /.bench-token to the bench that started the server")
    args = parser.parse_args(argv)
    if not args.folder.is_dir():
        print(f"{args.folder} is not a directory", file=sys.stderr)
        return 2
    try:
        runner()(serve(args.folder, args.port, args.log, args.token))
    except OSError as error:
        print(f"cannot serve: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
