"""An S3 server for the tests that want one: a process of its own, started once per test process; buckets by number."""

from __future__ import annotations

import itertools
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.waits import wait_until
from tools.system import free_port

START_S = 60.0
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Its URL."""
    pytest.importorskip("moto.server")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _until_up(url, server)
        yield url
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The place of an empty bucket; the environment says where its server is."""
    name = f"bucket-{next(_numbers)}"
    request = urllib.request.Request(f"{s3_server}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=30):
        pass
    said = {"ENDPOINT": s3_server, "ALLOW_HTTP": "true", "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    for key, value in {**said, "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{key}", value)
    return f"s3://{name}/nephila"


def _until_up(url: str, server: subprocess.Popen[bytes]) -> None:
    def is_up() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            if server.poll() is not None:
                raise
            return False

    wait_until(is_up, START_S)
