"""The hostile bench web, crawled by the program and judged from the server's log alone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.e2e.web import NEPHILA
from tests.waits import wait_until
from tools.system import free_port

DELAY = "0.25"
# What a busy machine may keep the server from seeing a request; the bench (make judge) is stricter.
SLACK = "0.05"
# Shorter than a user would want, so that a server that never answers does not hold up the suite.
LIMITS = {
    "NEPHILA_DOWNLOADER__HTTP__HEADERS_TIMEOUT_S": "5",
    "NEPHILA_DOWNLOADER__HTTP__IDLE_TIMEOUT_S": "2",
    "NEPHILA_DOWNLOADER__HTTP__BODY_TIMEOUT_S": "3",
    "NEPHILA_DOWNLOADER__HTTP__TOTAL_TIMEOUT_S": "7",
    "NEPHILA_SCHEDULER__BACKOFF_S": "0.5",
    "NEPHILA_SCHEDULER__RETRY_DELAY_S": "0.3",
}
ROOT = Path(__file__).parents[2]


def bench(*words: str) -> list[str]:
    """A module of the bench as a command line."""
    return [sys.executable, "-m", *words]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers on the first address."""

    def is_up() -> bool:
        assert process.poll() is None, "the bench server ended"
        try:
            socket.create_connection(("127.0.1.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    wait_until(is_up)


def test_the_judge_finds_nothing(tmp_path):
    """One request at a time per host, no gap below the delay, robots.txt first, no disallowed path, every page in its
    expected outcome, nothing lost, nothing twice: on servers that hang, lie, loop, drip and flood."""
    port = str(free_port())
    web, log = tmp_path / "web", tmp_path / "log"
    subprocess.run(
        bench("benchmarks.web.generate", str(web), "--pages", "60", "--hosts", "12", "--port", port),
        cwd=ROOT,
        check=True,
    )
    server = subprocess.Popen(bench("benchmarks.web.serve", str(web), "--port", port, "--log", str(log)), cwd=ROOT)
    try:
        wait_for(int(port), server)
        words = json.loads((web / "manifest.json").read_text())["crawl"]
        subprocess.run(
            [*NEPHILA, "crawl", *words, "--delay", DELAY, "--max-wait", "30", "--out", "o", "--quiet"],
            cwd=tmp_path,
            env={**os.environ, **LIMITS},
            check=True,
            timeout=110,
        )
    finally:
        server.terminate()
        server.wait(60)
    judge = bench("benchmarks.web.judge", "--log", str(log), "--manifest", str(web), "--db", str(tmp_path / "o"))
    verdict = subprocess.run([*judge, "--delay", DELAY, "--slack", SLACK], cwd=ROOT, capture_output=True, text=True)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
