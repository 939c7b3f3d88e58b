"""Prometheus and promtool for tests and shows: those on the PATH, or those of Debian's package in the user's cache.

    python -m tools.prometheus install [--optional]

The package is downloaded by `apt-get download` and unpacked, not installed: no right is needed, and no server starts.
`Server` runs one Prometheus on a port and in a directory of its own and ends only that one, by its pid.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.install import Missing, run

START_S = 30.0


def cached() -> Path:
    """Where `install` puts the binaries."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nephila" / "prometheus"


def find(name: str) -> Path:
    """The path of `prometheus` or `promtool`. Raises `Missing`."""
    if found := shutil.which(name):
        return Path(found)
    if (unpacked := cached() / "usr" / "bin" / name).exists():
        return unpacked
    raise Missing(f"no {name}: run `python -m tools.prometheus install`, or apt-get install prometheus")


def install() -> Path:
    """The path of promtool; unpacks the package if there is none. Raises `OSError` or `CalledProcessError`."""
    try:
        return find("promtool")
    except Missing:
        target = cached()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "prometheus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                subprocess.run(["apt-get", "download", "prometheus"], cwd=folder, check=True)
                package = next(Path(folder).glob("*.deb"))
                subprocess.run(["dpkg", "-x", str(package), f"{folder}/unpacked"], check=True)
                Path(folder, "unpacked").rename(target)
    return target / "usr" / "bin" / "promtool"


class Server:
    """One Prometheus that scrapes programs of this machine."""

    def __init__(self, folder: Path, targets: Sequence[tuple[int, Mapping[str, str]]], interval_s: float = 1.0) -> None:
        """`targets`: (port of loopback, labels). Raises `Missing`."""
        self._binary = find("prometheus")
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        static = [{"targets": [f"127.0.0.1:{port}"], "labels": dict(labels)} for port, labels in targets]
        config = {
            "global": {"scrape_interval": f"{int(interval_s * 1000)}ms"},
            "scrape_configs": [{"job_name": "nephila", "static_configs": static}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        """Start it and wait until it answers. Raises `RuntimeError` with the log's end."""
        command = [
            str(self._binary),
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + START_S
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("Prometheus does not start: " + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def range(self, query: str, start: float, end: float, step_s: float) -> list[dict[str, Any]]:
        """The series of a query between two instants (UTC seconds). Raises `ValueError` with the server's text."""
        values = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:g}"}
        found: list[dict[str, Any]] = self._get("/api/v1/query_range", values)["result"]
        return found

    def now(self, query: str) -> list[dict[str, Any]]:
        """The series of a query now. Raises `ValueError` with the server's text."""
        found: list[dict[str, Any]] = self._get("/api/v1/query", {"query": query})["result"]
        return found

    def _get(self, path: str, values: Mapping[str, str]) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(values)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found: dict[str, Any] = json.load(answer)["data"]
                return found
        except urllib.error.HTTPError as error:
            raise ValueError(f"{values['query']}: {error.read().decode()}") from None

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(run(__doc__, install, "promtool", "tests of alerts need it: apt-get install prometheus"))
