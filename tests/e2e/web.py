"""A little web server in a thread, and the program run against it as a user would."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NEPHILA = [sys.executable, "-m", "nephila"]


@dataclass
class Reply:
    """What the server says."""

    body: bytes | str = b""
    status: int = 200
    type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[["Request"], Reply | None]


@dataclass
class Request:
    """What the server was asked."""

    host: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    """Of a POST."""


@dataclass
class Web:
    """A running server: its port and every request it saw."""

    port: int
    requests: list[Request]

    @property
    def host_map(self) -> str:
        """Every name under .test leads here, whatever its port."""
        return f"*.test=127.0.0.1:{self.port}"

    def paths(self, host: str = "") -> list[str]:
        """Paths asked for, in order."""
        return [r.path for r in self.requests if not host or r.host == host]


@contextmanager
def serve(answer: Answer) -> Iterator[Web]:
    """Serve until the block ends; None is a 404."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes: 40 ms per answer otherwise

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.headers.get("Host", ""), self.path, dict(self.headers.items()), body)
            requests.append(request)
            reply = answer(request) or Reply("not here", 404)
            body = reply.body.encode() if isinstance(reply.body, str) else reply.body
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *args: Any) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: Any) -> None:
            """A client that was killed is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Web(server.server_address[1], requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def page(*links: str, title: str = "A page") -> Reply:
    """An HTML page with links."""
    anchors = "".join(f'<p><a href="{link}">to {link}</a></p>' for link in links)
    return Reply(f"<!doctype html><title>{title}</title><h1>{title}</h1><p>Some words.</p>{anchors}")


def run(*words: str, cwd: Path, timeout: float = 60, **env: str) -> subprocess.CompletedProcess[str]:
    """Run nephila to its end."""
    return subprocess.run(
        [*NEPHILA, *words], cwd=cwd, capture_output=True, text=True, timeout=timeout, env={**os.environ, **env}
    )


def crawl(web: Web, *words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`nephila crawl … --out o` against the little web, without delay."""
    return run(
        "crawl", *words, "--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", cwd=cwd, **env
    )


def rows(cwd: Path, columns: str = "url, outcome, reason") -> list[tuple[Any, ...]]:
    """Rows of the table pages, ordered by URL."""
    with sqlite3.connect(cwd / "o" / "nephila.db") as db:
        found = db.execute(f"select {columns} from pages order by url").fetchall()
    db.close()
    return found


def run_json(cwd: Path) -> dict[str, Any]:
    """What run.json says."""
    return json.loads((cwd / "o" / "run.json").read_text())
