"""A crawl by the four services over Kafka and PostgreSQL that a real Prometheus scrapes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.metrics.web import ManyHosts, serving
from tools.prometheus import Server
from tools.system import SERVICES, Member, System

NAMESPACE = "show"
RULE = """
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: pages}
spec:
  match: {url: '^http://h\\d+\\.test:\\d+/\\d+$'}
  fields:
    number: {css: h1, regex: '(\\d+)', type: integer, required: true}
    words: {xpath: "//p[1]"}
"""


@dataclass(frozen=True, slots=True)
class Wave:
    """A job that begins some seconds after the start, with the hosts of a range."""

    after_s: float
    first: int
    last: int


@dataclass(slots=True)
class Recording:
    """What was recorded, while Prometheus still runs."""

    prometheus: Server
    began: float
    ended: float
    pages: int


@contextmanager
def recorded(
    folder: Path, web: ManyHosts, waves: Sequence[Wave], *, concurrency: int, interval_s: float, run_s: float
) -> Iterator[Recording]:
    """Crawl for `run_s` seconds from the first wave on. Raises `Missing` where a part is missing."""
    with serving(web):
        settings = {
            "scheduler": {"per_address": 0, "address_gap_s": 0},
            "downloader": {
                "concurrency": concurrency,
                "http": {"user_agent": "showbot/1.0 (+https://example.org/bot)"},
                "limits": {"per_address": 0, "address_gap_s": 0},
                "dns": {"allow_private": True, "servers": [web.dns], "resolver": "aiodns"},
            },
        }
        system = System(folder / "system", settings)
        members = [system.add(service) for service in SERVICES]
        second = system.add("scheduler", 1)
        targets = [(one.port, {"namespace": NAMESPACE, "pod": one.name}) for one in (*members, second)]
        prometheus = Server(folder / "prometheus", targets, interval_s)
        (folder / "system" / "rule.yaml").write_text(RULE)
        try:
            prometheus.start()
            began = time.time()
            system.open()
            for member in members:
                system.start(member)
            system.wait_ready(*members)
            _crawl(system, web, waves, run_s, second)
            yield Recording(prometheus, began, time.time(), web.requests)
        finally:
            prometheus.stop()
            system.close()


def _crawl(system: System, web: ManyHosts, waves: Sequence[Wave], run_s: float, second: Member) -> None:
    """Submit every wave at its time, and start the second scheduler before the last; return after `run_s` seconds. A
    host that refuses may wait longer than that."""
    began, jobs = time.monotonic(), []
    for wave in waves:
        if wave is waves[-1]:
            system.start(second)
        time.sleep(max(wave.after_s - (time.monotonic() - began), 0))
        words = ["--bootstrap", system.broker.address, "--delay", "0.5", "--json", "--rules", "rule.yaml"]
        command = [sys.executable, "-m", "nephila", "crawl", *web.seeds(wave.first, wave.last), *words]
        with (system.folder / "crawl.log").open("a") as log:
            streams = {"stdout": subprocess.DEVNULL, "stderr": log}
            jobs.append(subprocess.Popen(command, cwd=system.folder, env=system.environment, **streams))
    time.sleep(max(run_s - (time.monotonic() - began), 0))
    for job in jobs:
        if job.poll() not in (None, 0):
            raise RuntimeError((system.folder / "crawl.log").read_text())
        job.kill()
        job.wait()
