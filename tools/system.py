"""A whole system on this machine, for benches and shows: a broker, a database, and services as processes of their own.

Invariant: only what was started here is ever signalled, by its pid, and all of it is ended by `close`. A member keeps
its name, its directory and its port over its restarts, as a pod of a StatefulSet does. Nothing is judged here.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.kafka_broker import Broker
from tools.postgres import Server

SERVICES = ("storage", "parser", "downloader", "scheduler")
"""In the order in which they are begun: no message is published before its reader runs."""
READY_S = 60.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class NotReady(Exception):
    """A member did not become ready; the text has the end of its log."""


def cpu_s(pid: int) -> float:
    """User and system time of one process, all its threads; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK_S


@dataclass
class Member:
    """One service process and its successors under the same name."""

    service: str
    name: str
    folder: Path
    port: int
    starts: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        """Of the present process."""
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether its process has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> Path:
        """What all its processes wrote."""
        return self.folder / "log"

    def ready(self) -> bool:
        """Whether it reports that it is ready."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def metrics(self) -> str:
        """Its figures as Prometheus reads them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    def send(self, number: int) -> None:
        """A signal to its process."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class System:
    """Broker, database and members in one folder. `settings`: the content of system.yaml beside the addresses."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], *, partitions: int = 16) -> None:
        self.folder = folder
        self.partitions = partitions
        self.members: dict[str, Member] = {}
        (folder / "broker").mkdir(parents=True)
        self.broker = Broker(folder / "broker")
        self.database = Server(settings=("autovacuum=on",))
        self._settings = dict(settings)
        # The services of this tree, not those that are installed.
        self.environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "services")}

    @property
    def store(self) -> str:
        """Where the rows are."""
        return self.database.dsn()

    def open(self) -> None:
        """Start broker and database, write system.yaml, make the topics by it."""
        self.broker.start()
        self.database.start()
        storage = {**self._settings.get("storage", {}), "store": self.store}
        result = {**self._settings, "storage": storage, "bootstrap": self.broker.address, "partitions": self.partitions}
        (self.folder / "system.yaml").write_text("".join(f"{key}: {json.dumps(result[key])}\n" for key in result))
        self.nephila("service", "topics", "apply", "--bootstrap", "system.yaml")

    def close(self) -> None:
        """End everything that was started here."""
        for member in self.members.values():
            member.send(signal.SIGCONT)
            member.send(signal.SIGKILL)
        for member in self.members.values():
            if member.process is not None:
                member.process.wait()
        self.broker.stop()
        self.database.stop()

    def nephila(self, *words: str) -> str:
        """Run a command of the program to its end, in the folder; returns what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "nephila", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        return done.stdout

    def add(self, service: str, number: int = 0) -> Member:
        """A member that is not started yet; the same one again for the same number."""
        name = f"{service}-{number}"
        if name not in self.members:
            folder = self.folder / name
            folder.mkdir()
            self.members[name] = Member(service, name, folder, free_port())
        return self.members[name]

    def start(self, member: Member) -> None:
        """Begin its process, or another one after the last."""
        own = {
            "NEPHILA_PROGRAM__MEMBER": member.name,
            "NEPHILA_PROGRAM__METRICS_PORT": str(member.port),
            "NEPHILA_SCHEDULER__DIRECTORY": str(member.folder / "frontier"),
            "NEPHILA_STORAGE__DIRECTORY": str(member.folder / "rows"),
        }
        command = [
            sys.executable,
            "-m",
            "nephila",
            "service",
            member.service,
            "--config",
            str(self.folder / "system.yaml"),
        ]
        with member.log.open("ab") as log:
            member.process = subprocess.Popen(
                command,
                cwd=member.folder,
                env={**self.environment, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        member.starts += 1

    def wait_ready(self, *members: Member, within_s: float = READY_S) -> None:
        """Return once all are ready. Raises `NotReady`."""
        until = time.monotonic() + within_s
        for member in members:
            while not member.ready():
                if not member.alive or time.monotonic() > until:
                    raise NotReady(f"{member.name}: {member.log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.1)


def free_port() -> int:
    """An unused port of loopback, below those that outgoing connections are given: it is still free when
    its member comes back after a while."""
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest = 32_768
    for port in random.sample(range(10_000, max(lowest, 11_000)), 1000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise NotReady("no port of loopback is free")
