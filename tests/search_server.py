"""A server with the bulk requests of OpenSearch: versions, updates with upsert, refused documents, faults on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SearchServer:
    """Documents by id. `faults` are status codes that the next requests get; `refused` are ids whose documents the
    server refuses."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.faults: list[int] = []
        self.busy_items = 0
        self.refused: set[str] = set()
        self.max_bytes = 1 << 30
        self.requests: list[tuple[str, str, str]] = []
        """(method, path, authorization)."""
        self.odd: bytes | None = None
        """Answer to every bulk request."""
        self.location = ""
        """Target of answers with a status 3xx."""
        self.url = ""

    def bulk(self, body: bytes) -> dict[str, Any]:
        """The answer to a bulk request."""
        lines = body.splitlines()
        assert len(lines) % 2 == 0
        items = []
        for action, document in zip(map(json.loads, lines[::2]), map(json.loads, lines[1::2]), strict=True):
            ((name, target),) = action.items()
            status = self._apply(name, target, document)
            error = {"error": {"type": "x", "reason": f"reason {status}"}} if status >= 400 else {}
            items.append({name: {"_id": target["_id"], "status": status, **error}})
        return {"errors": any("error" in next(iter(one.values())) for one in items), "items": items}

    def _apply(self, name: str, target: dict[str, Any], document: dict[str, Any]) -> int:
        key = target["_id"]
        if self.busy_items:
            self.busy_items -= 1
            return 429
        if key in self.refused:
            return 400
        if name == "update":
            known = self.documents.get(key)
            merged = {**known, **document["doc"]} if known is not None else document["upsert"]
            if merged != known:
                self.versions[key] = self.versions.get(key, 0) + 1
            self.documents[key] = merged
            return 200
        assert target["version_type"] == "external_gte"
        if target["version"] < self.versions.get(key, 0):
            return 409
        self.versions[key] = target["version"]
        self.documents[key] = document
        return 201


@contextmanager
def running() -> Iterator[SearchServer]:
    """A server on a port of this machine."""
    found = SearchServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"version": {"number": "2.0"}})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(body) > found.max_bytes:
                found.faults.insert(0, 413)
            self._answer({} if found.faults else found.bulk(body))

        def _answer(self, value: dict[str, Any]) -> None:
            found.requests.append((self.command, self.path, self.headers.get("Authorization", "")))
            data = json.dumps(value).encode()
            if self.command == "POST" and found.odd is not None:
                data = found.odd
            self.send_response(found.faults.pop(0) if found.faults else 200)
            self.send_header("Content-Length", str(len(data)))
            if found.location:
                self.send_header("Location", found.location)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
