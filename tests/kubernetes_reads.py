"""A small API server of Kubernetes that answers reads: lists of objects, and `/readyz` and `/metrics` of pods."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMESPACE = "crawl"
EXEC = """#!/bin/sh
echo called >> {calls}
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "{token}"}}}}'
"""


def pod(name: str, component: str = "", release: str = "web", **status: Any) -> dict[str, Any]:
    """A pod that is ready, unless `status` says otherwise."""
    conditions = [{"type": "Ready", "status": "True"}]
    given = {"phase": "Running", "conditions": conditions, "containerStatuses": [{"state": {"running": {}}}], **status}
    return {"metadata": {"name": name, "labels": labels(component or name, release)}, "status": given}


def labels(component: str, release: str = "web") -> dict[str, str]:
    """As the chart gives them."""
    known = {"app.kubernetes.io/part-of": "nephila", "app.kubernetes.io/instance": release}
    return {**known, "app.kubernetes.io/component": component}


class Reads:
    """The answers; a test changes them."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {"pods": []}
        """Plural → objects."""
        self.readyz: dict[str, str] = {}
        """Pod → why it is not ready."""
        self.metrics: dict[str, str] = {}
        self.token = ""
        """Requests with another one are refused; empty: any."""
        self.forbidden: set[str] = set()
        """Plurals, or "proxy", that nobody may read."""
        self.asked: list[str] = []
        self.port = 0

    def answer(self, path: str, query: dict[str, list[str]], authorization: str) -> tuple[int, str]:
        """Status and body of a GET."""
        self.asked.append(path)
        if self.token and authorization != f"Bearer {self.token}":
            return 401, json.dumps({"message": "Unauthorized"})
        words = path.strip("/").split("/")
        if "proxy" in words:
            return self._proxied(words[words.index("pods") + 1].partition(":")[0], words[-1])
        plural = words[-1]
        if plural in self.forbidden:
            return 403, json.dumps({"message": f"{plural} is forbidden"})
        assert words[-3:-1] == ["namespaces", NAMESPACE], path
        wanted = dict(one.split("=") for one in query.get("labelSelector", [""])[0].split(",") if one)
        found = [
            one for one in self.objects.get(plural, ()) if wanted.items() <= one["metadata"].get("labels", {}).items()
        ]
        return 200, json.dumps({"items": found})

    def _proxied(self, name: str, what: str) -> tuple[int, str]:
        if "proxy" in self.forbidden:
            return 403, "{}"
        if what == "readyz":
            return (503, self.readyz[name]) if name in self.readyz else (200, "ready")
        return 200, self.metrics.get(name, "")

    def kubeconfig(self, folder: Path, user: dict[str, Any] | None = None) -> Path:
        """A kubeconfig that leads here."""
        context = {"name": "t", "context": {"cluster": "t", "user": "t", "namespace": NAMESPACE}}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "t",
            "clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "contexts": [context],
            "users": [{"name": "t", "user": user or {"token": self.token or "any"}}],
        }
        (folder / "kubeconfig").write_text(json.dumps(content))
        return folder / "kubeconfig"


def exec_user(folder: Path, token: str) -> dict[str, Any]:
    """A user of a kubeconfig whose token comes from a program, as those of EKS, GKE and AKS."""
    program = folder / "login"
    program.write_text(EXEC.format(calls=folder / "calls", token=token))
    program.chmod(0o755)
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": str(program), "args": [], "interactiveMode": "Never"}}


@contextmanager
def serve_reads() -> Iterator[Reads]:
    """Serve until the block ends."""
    reads = Reads()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            status, body = reads.answer(parts.path, parse_qs(parts.query), self.headers.get("Authorization", ""))
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    reads.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield reads
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
