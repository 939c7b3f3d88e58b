"""crawler.partitions cannot change in an upgrade: the chart compares it with the ConfigMap of the release."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.chart.test_chart import CHART, OPERATORS, helm

NAME = "web-nephila-config"
CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": NAME, "namespace": "crawl"},
    "data": {"system.yaml": "bootstrap: kafka:9092\npartitions: 64\n"},
}
RESOURCES = [
    {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": ["get"]},
    {"name": "secrets", "singularName": "secret", "namespaced": True, "kind": "Secret", "verbs": ["get"]},
]
ANSWERS: dict[str, Any] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": RESOURCES},
    f"/api/v1/namespaces/crawl/configmaps/{NAME}": CONFIG,
}
"""What an API server answers about a release with 64 partitions."""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """A file that names a server with ANSWERS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = ANSWERS.get(self.path.partition("?")[0])
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            body = json.dumps(answer or missing).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    path = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {}}
    content = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster]}
    path.write_text(json.dumps({**content, "contexts": [context], "users": [user]}))
    yield str(path)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("partitions", "code"), [(64, 0), (128, 1)])
def test_partitions_stay_as_the_release_has_them(kubeconfig: str, partitions: int, code: int) -> None:
    """The same number is accepted, another is refused with the reason."""
    command = [helm(), "template", "web", str(CHART), "--namespace", "crawl", "--dry-run=server", *OPERATORS]
    command += ["--kubeconfig", kubeconfig, "--set", f"crawler.partitions={partitions}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    if code:
        assert "crawler.partitions is 64 in this release and cannot become 128" in done.stderr
