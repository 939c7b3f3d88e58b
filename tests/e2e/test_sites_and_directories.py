"""`nephila sites` as an organisation uses it: runs by frequency, a kill, in one program and over Kafka."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter

import pytest

from tests.e2e.program import QUICK
from tests.e2e.test_services_over_kafka import SERVICES, System, system_broker  # noqa: F401
from tests.e2e.web import NEPHILA, page, run, serve

DOCUMENTS = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: default}
spec: {frequency: 4s, politeness: {delay: 10ms}, scope: {exclude: [/sponsored/]}}
---
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: a}
spec:
  directories:
    - {name: world, url: "http://a.test/world/", score: 2}
    - {name: asia, url: "http://a.test/world/asia/", score: 5}
---
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: b}
spec: {directories: [{name: top, url: "http://b.test/news/", topPages: 4}]}
"""
LISTS = ("/world/", "/world/asia/", "/news/")


class Press:
    """Lists that grow when the test says so; each page links into the other directories, too."""

    def __init__(self):
        self.count = 3

    def __call__(self, request):
        if request.path == "/robots.txt":
            return None
        if request.path in LISTS:
            links = [f"{request.path}{number}" for number in range(self.count)]
            return page(*links, f"{request.path}sponsored/1", "/world/asia/0", "/elsewhere")
        return page(request.path, title=f"Page {request.path}")


def wait_until(reached, seconds=120):
    """Poll; the runs take what they take."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "never came"
        time.sleep(0.2)


class SitesProgram:
    """`nephila sites run`, and questions about it."""

    def __init__(self, cwd, *words):
        self.cwd, self.words = cwd, words
        (cwd / "sites.yaml").write_text(DOCUMENTS)
        done = run("sites", "apply", "-f", "sites.yaml", "--sites", "s.db", cwd=cwd)
        assert done.returncode == 0, done.stderr
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*NEPHILA, "sites", "run", "--sites", "s.db", *self.words],
            cwd=self.cwd,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **QUICK},
        )

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        assert "Traceback" not in errors, errors
        return self.process.returncode

    def runs(self):
        """Runs that are over, by directory."""
        with contextlib.closing(sqlite3.connect(self.cwd / "s.db")) as db:
            return Counter(name for (name,) in db.execute("select name from runs where ended_by in ('done', 'pages')"))

    def new_pages(self):
        with contextlib.closing(sqlite3.connect(self.cwd / "s.db")) as db:
            return dict(db.execute("select name, sum(new_pages) from runs group by name"))


def test_runs_by_frequency_over_a_kill(tmp_path):
    """Lists are fetched in every run, each page once, in one directory; topPages limits a run; a kill loses no run."""
    press = Press()
    with serve(press) as web:
        program = SitesProgram(tmp_path, "--out", "o", "--allow-private", "--host-map", web.host_map)
        try:
            wait_until(lambda: len(program.runs()) == 3)
            assert {"/news/0", "/news/1", "/news/2"} <= set(web.paths())
            press.count = 9
            wait_until(lambda: "/world/8" in web.paths())
            program.end(signal.SIGKILL)
            before = program.runs()
            program.start()
            wait_until(lambda: all(program.runs()[name] >= before[name] + 2 for name in ("a.world", "a.asia", "b.top")))
            wait_until(lambda: program.new_pages() == {"a.world": 10, "a.asia": 10, "b.top": 10})
            again = run("sites", "run", "--sites", "s.db", "--out", "o", cwd=tmp_path)
            assert again.returncode == 1
            assert "another nephila sites run is using s.db" in again.stderr
            shown = json.loads(run("sites", "list", "--json", "--sites", "s.db", cwd=tmp_path).stdout)
            assert [one["directory"] for one in shown] == ["a.world", "a.asia", "b.top"]
            assert all(one["next_run"] for one in shown)
            assert program.end() == 0
        finally:
            program.process.kill()
            program.process.communicate()
        asked = Counter(web.paths())
    # A kill may repeat what was in flight.
    assert all(1 <= asked[f"{part}{number}"] <= 2 for part in LISTS for number in range(9))
    assert sum(asked[f"{part}{number}"] == 2 for part in LISTS for number in range(9)) < 9
    assert not [path for path in asked if "sponsored" in path or path == "/elsewhere"]
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        rows = db.execute("select job, url from pages where outcome = 'stored'").fetchall()
    stored = {job: {url.partition(".test")[2] for name, url in rows if name == job} for job, _ in rows}
    assert stored == {
        "a.world": {"/world/", *(f"/world/{number}" for number in range(9))},
        "a.asia": {"/world/asia/", *(f"/world/asia/{number}" for number in range(9))},
        "b.top": {"/news/", *(f"/news/{number}" for number in range(9))},
    }


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services over a broker."""
    words = ("topics", "apply", "--bootstrap", system_broker.address, "--partitions", "16")
    assert run(*words, cwd=tmp_path).returncode == 0
    with serve(Press()) as web:
        system = System(tmp_path, system_broker, web)
        system.start(*SERVICES)
        yield system
        for program in system.programs.values():
            program.kill()
            program.wait(60)


def test_runs_over_kafka(system):
    """The same documents, started over the control API of a system."""
    program = SitesProgram(system.folder, "--bootstrap", system.broker.address)
    try:
        wait_until(lambda: all(program.runs()[name] >= 2 for name in ("a.world", "a.asia", "b.top")), 120)
        assert program.end() == 0
    finally:
        program.process.kill()
        program.process.communicate()
    assert program.new_pages() == {"a.world": 4, "a.asia": 4, "b.top": 4}
