"""/metrics of a program on one machine: every service of it, by the names that its service has over a broker."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nephila.downloader.metrics import METRICS as DOWNLOADER
from nephila.kernel.bus.metrics import DEAD_LETTERS
from nephila.kernel.runtime.metrics import Metric
from nephila.parser.config import ParserConfig
from nephila.parser.metrics import METRICS as PARSER
from nephila.programs.assembly import ServiceConfigs
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.metrics import FRONTIER_METRICS
from nephila.storage.config import StorageConfig
from nephila.storage.metrics import METRICS as STORAGE
from nephila_cluster.scheduler.metrics import METRICS as SCHEDULER
from nephila_control.control_servers import TcpAddress
from nephila_control.http.client import at_directory
from nephila_control.http.unix_socket import NAME
from nephila_control.job_types import ApplyJob
from nephila_control.serve import UpProgram

from tests.downloader_settings import downloader_config
from tests.e2e.web import page, serve

JOB = {
    "apiVersion": "nephila.dev/v1",
    "kind": "CrawlJob",
    "metadata": {"name": "a"},
    "spec": {"seeds": ["http://a.test/"]},
}
SERVED: dict[str, tuple[Metric[Any], ...]] = {
    "scheduler": FRONTIER_METRICS,
    "downloader": DOWNLOADER,
    "parser": PARSER,
    "storage": STORAGE,
    "bus": (DEAD_LETTERS,),
}


async def fetch(connection: socket.socket, path: str) -> tuple[int, str]:
    """Status and body."""
    reader, writer = await asyncio.open_connection(sock=connection)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def ask(directory: Path, path: str) -> tuple[int, str]:
    """A request to the socket of a directory."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(directory / NAME))
    connection.setblocking(False)
    return await fetch(connection, path)


@pytest.mark.parametrize("workers", [0, 1])
async def test_all_services_of_a_program_are_measured(tmp_path, workers):
    """On the socket and on the TCP port; those of a worker process are labelled with its number."""
    with serve(lambda request: page()) as web:
        configs = ServiceConfigs(
            SchedulerConfig(directory=str(tmp_path / "frontier")),
            downloader_config(allow_private=True, host_map=(web.host_map,), address_gap_s=0.0, per_address=0),
            ParserConfig(),
            StorageConfig(directory=tmp_path),
            workers,
        )
        up = UpProgram(configs, tcp=TcpAddress("127.0.0.1", 0, "0123456789abcdef"))
        ready = asyncio.Event()
        running = asyncio.ensure_future(up.run(lambda jobs: ready.set()))
        await ready.wait()
        await at_directory(tmp_path).apply_job(ApplyJob(job=JOB))
        text, worker = "", ',worker="1"' if workers else ""
        while f'nephila_scheduler_urls_ended{{outcome="stored"{worker}}} 1.0' not in text:
            status, text = await ask(tmp_path, "/metrics")
            assert status == 200
        assert [await ask(tmp_path, path) for path in ("/healthz", "/readyz")] == [(200, "alive\n"), (200, "ready\n")]
        tcp = socket.create_connection(("127.0.0.1", up.servers.port))
        tcp.setblocking(False)
        status, text = await fetch(tcp, "/metrics")
        up.stop()
        await running
    assert status == 200
    families = re.findall(r"^# HELP (nephila_\w+) ", text, re.MULTILINE)
    expected = [f"nephila_{service}_{metric.name}" for service, table in SERVED.items() for metric in table]
    assert sorted(families) == sorted([*expected, "nephila_build_info"])
    histogram = "nephila_downloader_fetch_seconds_bucket" + ('{le="+Inf",worker="1"}' if workers else '{le="+Inf"}')
    assert f"\n{histogram} 2.0\n" in text  # the page and robots.txt
    label = '{worker="1"}' if workers else ""
    assert f"\nnephila_parser_pages_parsed_total{label} 1.0\n" in text
    assert f"\nnephila_downloader_requests_in_flight{label} 0.0\n" in text
    assert re.search(rf"\nnephila_scheduler_commits_total{re.escape(label)} [1-9]", text)
    assert "\nprocess_cpu_seconds_total " in text


def test_both_schedulers_have_the_same_table():
    """The scheduler over a broker has further metrics; those of one program are a part of its table."""
    assert SCHEDULER[: len(FRONTIER_METRICS)] == FRONTIER_METRICS


def test_the_library_is_not_imported_before_the_first_request():
    """A crawl does not wait for prometheus_client at its start."""
    code = "import nephila_control.serve, nephila.programs.crawl.run, sys; print('prometheus_client' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
