"""A crawl by groups begins with one and gets more when it is loaded: nothing is lost, fetched twice or too early."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_groups import SCOPE, crawl, expect_town, stored, town
from tests.e2e.test_workers import QUICK_ADDRESSES, workers_of
from tests.e2e.web import rows, serve
from tests.waits import wait_until

ENDS_S = 60
CORES = 4
FIVE_CORES = f"""
import sys
from nephila.programs import service_configs
service_configs.usable_cores = lambda: {CORES + 1}
from nephila.cli.main import main
sys.argv[0] = "nephila"
sys.exit(main())
"""
"""The program on a machine of five cores."""


def start(web, cwd, *words, delay="0", **env):
    """Begin a crawl by groups without a number of them."""
    line = ["--quiet", "--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", delay]
    return subprocess.Popen(
        [sys.executable, "-c", FIVE_CORES, "crawl", *words, *line],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
    )


class Slow:
    """The town, with some time for each page, so that many are in flight at once."""

    def __init__(self, seconds: float = 0.25) -> None:
        self.seconds = seconds
        self.released = threading.Event()
        self.spans: dict[str, list[tuple[float, float]]] = {}
        self._guard = threading.Lock()

    def __call__(self, request):
        begun = time.monotonic()
        reply = town(request)
        self.released.wait(self.seconds)
        with self._guard:
            self.spans.setdefault(request.host, []).append((begun, time.monotonic()))
        return reply


def parts(address: str) -> tuple[str, str]:
    """Host and path."""
    return urlsplit(address).netloc, urlsplit(address).path


def requested(web) -> Counter[tuple[str, str]]:
    return Counter((request.host, request.path) for request in web.requests if request.path != "/robots.txt")


def test_a_loaded_crawl_gets_more_groups_and_fetches_nothing_twice(tmp_path):
    groups: set[int] = set()
    with serve(Slow()) as web:
        process = start(web, tmp_path, *SCOPE)
        wait_until(lambda: len(workers_of(process)) == 1)
        wait_until(lambda: groups.update(workers_of(process)) or process.poll() is not None)
        _, err = process.communicate(timeout=ENDS_S)
        twice = [where for where, times in requested(web).items() if times > 1]
    assert process.returncode == 0, err
    assert err == ""
    assert len(groups) > CORES
    assert twice == []
    expect_town(tmp_path)


def test_delays_hold_over_a_new_division(tmp_path):
    slow = Slow(0.4)
    with serve(slow) as web:
        process = start(web, tmp_path, *SCOPE, delay="0.2", **QUICK_ADDRESSES)
        wait_until(lambda: len(workers_of(process)) > 1)
        _, err = process.communicate(timeout=ENDS_S)
    assert process.returncode == 0, err
    expect_town(tmp_path)
    for host, spans in slow.spans.items():
        spans.sort()
        gaps = [after[0] - before[1] for before, after in itertools.pairwise(spans)]
        assert min(gaps) >= 0.195, (host, gaps)


def test_a_crawl_of_one_site_keeps_one_group(tmp_path):
    with serve(lambda request: town(request)) as web:
        process = start(web, tmp_path, "http://h0.test/0", "--max-pages", "3")
        wait_until(lambda: len(workers_of(process)) == 1)
        _, err = process.communicate(timeout=ENDS_S)
    assert process.returncode == 0, err
    assert rows(tmp_path)


@pytest.mark.parametrize("which", ["old", "loading", "reading", "main"])
def test_a_process_that_is_killed_during_a_new_division(tmp_path, which):
    """The division begins when there are further processes."""
    with serve(Slow()) as web:
        process = start(web, tmp_path, *SCOPE)
        wait_until(lambda: len(workers_of(process)) > 1)
        groups = workers_of(process)
        if which == "reading":
            wait_until(lambda: groups[0] not in workers_of(process), every_s=0.001)
        os.kill({"old": groups[0], "main": process.pid}.get(which, groups[-1]), signal.SIGKILL)
        _, err = process.communicate(timeout=ENDS_S)
        if which == "main":
            wait_until(lambda: not any(os.path.exists(f"/proc/{pid}/stat") for pid in groups))
            done = crawl(web, "--resume", "--workers", "3", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        else:
            assert process.returncode == 0, err
    expect_town(tmp_path)


def test_a_signal_during_a_new_division_ends_the_crawl(tmp_path):
    with serve(Slow()) as web:
        process = start(web, tmp_path, *SCOPE)
        wait_until(lambda: len(workers_of(process)) > 1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=ENDS_S)
        assert process.returncode == 130, err
        before = stored(tmp_path)
        done = crawl(web, "--resume", "--workers", "2", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    expect_town(tmp_path)
    assert {requested(web)[host, path] for host, path in map(parts, before)} == {1}
