"""A system over a broker with TLS and SASL: commands and services with one settings file, its password in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cluster.kafka.client.conftest import secured  # noqa: F401 - a fixture
from tests.cluster.kafka.client.secured_broker import PASSWORD, SecuredBroker
from tests.waits import wait_until
from tools.system import free_port

NEPHILA = [sys.executable, "-m", "nephila"]
JOB = """apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: secured}
spec: {seeds: ["https://a.test/"]}
"""


@pytest.fixture
def system(secured: SecuredBroker, tmp_path: Path) -> SimpleNamespace:  # noqa: F811
    """The folder of the settings file, and the port of the control API."""
    port = free_port()
    config = secured.config("LOGIN")
    kafka = {
        "security_protocol": "SASL_SSL",
        "ssl_ca_file": str(secured.ca),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "alice",
        "sasl_password_file": str(tmp_path / "password"),
        "prefix": config.prefix,
    }
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    (tmp_path / "token").write_text("t" * 32)
    settings = {"bootstrap": config.bootstrap, "partitions": 4, "metrics_port": port, "kafka": kafka}
    (tmp_path / "system.yaml").write_text(json.dumps({**settings, "api": {"token_file": str(tmp_path / "token")}}))
    (tmp_path / "job.yaml").write_text(JOB)
    return SimpleNamespace(folder=tmp_path, port=port)


def run(system: SimpleNamespace, *words: str) -> subprocess.CompletedProcess[str]:
    """One command."""
    return subprocess.run(
        [*NEPHILA, *words], cwd=system.folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def api(system: SimpleNamespace) -> Iterator[subprocess.Popen[bytes]]:
    """The control API as a service of its own."""
    assert run(system, "service", "topics", "apply", "--bootstrap", "system.yaml").returncode == 0
    with (system.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*NEPHILA, "service", "api", "--config", "system.yaml"], cwd=system.folder, stderr=log
        )
    yield process
    process.terminate()
    process.wait(60)


def readiness(system: SimpleNamespace, process: subprocess.Popen[bytes], wanted: str) -> str:
    """The answer of /readyz, once it has some words in it."""

    def answer() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{system.port}/readyz", timeout=60) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode()
        except OSError:
            text = ""
        if process.poll() is not None:
            return text + (system.folder / "log").read_text()
        return text if wanted in text else ""

    return wait_until(answer, 120.0, 0.1)


def test_commands_and_services_share_one_file(system, api):
    """Topics, a job over Kafka, the same job over the control API; no output has the password."""
    assert "ready" in readiness(system, api, "ready")
    applied = run(system, "jobs", "apply", "-f", "job.yaml", "--bootstrap", "system.yaml")
    assert applied.stdout.startswith("secured: created"), applied.stderr
    server = ("--server", f"http://127.0.0.1:{system.port}", "--token-file", "token")
    assert "secured" in run(system, "jobs", "list", *server).stdout
    assert run(system, "service", "dead", "list", "--bootstrap", "system.yaml").returncode == 0
    assert PASSWORD not in (system.folder / "log").read_text() + applied.stdout + applied.stderr


def test_a_wrong_password_is_one_line_and_no_end(system):
    """A command ends with the reason; a service waits, unready, for a correct one."""
    (system.folder / "password").write_text("wrong")
    ran = run(system, "service", "topics", "list", "--bootstrap", "system.yaml")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert "check sasl_username 'alice' and sasl_password" in ran.stderr
    environment = {**os.environ, "NEPHILA_KAFKA__SASL_PASSWORD_FILE": str(system.folder / "password")}
    with (system.folder / "log").open("wb") as log:
        words = [*NEPHILA, "service", "api", "--config", "system.yaml"]
        process = subprocess.Popen(words, cwd=system.folder, stderr=log, env=environment)
    try:
        assert "check sasl_username 'alice'" in readiness(system, process, "check sasl_username")
    finally:
        process.terminate()
        assert process.wait(60) == 0
