"""`nephila sites` as an organisation uses it: runs by frequency, a kill, in one program and over Kafka."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from collections import Counter

import pytest

from tests.e2e.program import QUICK
from tests.e2e.test_services_over_kafka import SERVICES, System, system_broker  # noqa: F401
from tests.e2e.web import NEPHILA, Reply, page, run, serve
from tests.waits import wait_until
from tools.system import free_port

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


class SitesProgram:
    """`nephila sites run`, and questions about it."""

    def __init__(self, cwd, *words, sites="s.db", documents=DOCUMENTS):
        """`sites`: file of the sites, made of `documents`; empty: that of the directory, which has some."""
        self.cwd, self.words = cwd, (*words, *(("--sites", sites) if sites else ()))
        if sites:
            (cwd / "sites.yaml").write_text(documents)
            done = run("sites", "apply", "-f", "sites.yaml", "--sites", sites, cwd=cwd)
            assert done.returncode == 0, done.stderr
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*NEPHILA, "sites", "run", *self.words],
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
            wait_until(lambda: program.new_pages() == {"a.world": 9, "a.asia": 9, "b.top": 9})
            again = run("sites", "run", "--sites", "s.db", "--out", "o", cwd=tmp_path)
            assert again.returncode == 1
            assert "another nephila sites run is using s.db" in again.stderr
            shown = json.loads(run("sites", "list", "--json", "--sites", "s.db", cwd=tmp_path).stdout)
            assert [one["directory"] for one in shown] == ["a.asia", "a.world", "b.top"]
            assert all(one["next_run"] for one in shown)
            assert program.end() == 0
        finally:
            program.process.kill()
            program.process.communicate()
        asked = Counter(web.paths())
    # A kill may repeat what was in flight.
    assert all(1 <= asked[f"{part}{number}"] <= 2 for part in LISTS for number in range(9))
    # Pages of runs that had ended are durable.
    assert all(asked[f"{part}{number}"] == 1 for part in LISTS for number in range(3))
    assert not [path for path in asked if "sponsored" in path or path == "/elsewhere"]
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        rows = db.execute("select job, url from pages where outcome = 'stored'").fetchall()
    stored = {job: {url.partition(".test")[2] for name, url in rows if name == job} for job, _ in rows}
    assert stored == {
        "a.world": {"/world/", *(f"/world/{number}" for number in range(9))},
        "a.asia": {"/world/asia/", *(f"/world/asia/{number}" for number in range(9))},
        "b.top": {"/news/", *(f"/news/{number}" for number in range(9))},
    }


class Redirecting:
    """A list that redirects within its directory, and one that redirects out of it."""

    def __init__(self):
        self.count = 1

    def __call__(self, request):
        targets = {"/hop/": "/hop/en/", "/old/": "/new/"}
        if request.path in targets:
            return Reply(status=301, headers={"Location": targets[request.path]})
        if request.path == "/hop/en/":
            return page(*(f"/hop/en/{number}" for number in range(self.count)))
        return page() if request.path != "/robots.txt" else None


REDIRECTING = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: r}
spec:
  frequency: 2s
  politeness: {delay: 10ms}
  directories:
    - {name: hop, url: "http://a.test/hop/"}
    - {name: old, url: "http://a.test/old/"}
"""


def test_a_list_that_redirects_is_fetched_in_every_run(tmp_path):
    """Redirect and target are fetched again in each run, so a new page behind a redirect is news, and a list that has
    moved stays a fault with its target."""
    site = Redirecting()
    with serve(site) as web:
        words = ("--out", "o", "--allow-private", "--host-map", web.host_map)
        program = SitesProgram(tmp_path, *words, documents=REDIRECTING)
        try:
            wait_until(lambda: all(program.runs()[name] >= 2 for name in ("r.hop", "r.old")))
            site.count = 2
            wait_until(lambda: "/hop/en/1" in web.paths())
            before = program.runs()
            wait_until(lambda: all(program.runs()[name] >= before[name] + 2 for name in ("r.hop", "r.old")))
            assert program.end() == 0
        finally:
            program.process.kill()
            program.process.communicate()
    listed = json.loads(run("sites", "list", "--json", "--sites", "s.db", cwd=tmp_path).stdout)
    verdicts = {entry["directory"]: entry["lists"][0]["verdict"] for entry in listed}
    assert verdicts == {"r.hop": "same", "r.old": "moved"}
    fetches = Counter(web.paths())
    assert min(fetches[path] for path in ("/hop/", "/hop/en/", "/old/")) >= 4


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services over a broker."""
    words = ("service", "topics", "apply", "--bootstrap", system_broker.address, "--partitions", "16")
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
    rows = str(system.folder / "rows")
    program = SitesProgram(system.folder, "--bootstrap", system.broker.address, "--rows", rows)
    try:
        wait_until(lambda: all(program.runs()[name] >= 2 for name in ("a.world", "a.asia", "b.top")), 120)
        assert program.end() == 0
    finally:
        program.process.kill()
        program.process.communicate()
    assert program.new_pages() == {"a.world": 3, "a.asia": 3, "b.top": 3}
    shown = json.loads(run("sites", "list", "--json", "--sites", "s.db", cwd=system.folder).stdout)
    assert {one["lists"][0]["verdict"] for one in shown} == {"same"}


FAULTS = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: f}
spec:
  politeness: {delay: 10ms}
  frequency: 1h
  directories:
    - {name: good, url: "http://a.test/world/"}
    - {name: missing, url: "http://a.test/404/"}
    - {name: broken, url: "http://b.test/500/"}
    - {name: moved, url: "http://a.test/d1/"}
    - {name: closed, url: "http://c.test/closed/"}
    - {name: refused, url: "http://127.0.0.1:9/x/"}
    - {name: unknown, url: "http://no-such-host.invalid/x/"}
    - {name: five, url: "http://d.test/news/", topPages: 5}
"""


class Faults(Press):
    """Lists that fail, each in another way."""

    def __init__(self):
        self.count = 9

    def __call__(self, request):
        path = request.path
        if path == "/robots.txt" and request.host.startswith("c.test"):
            return Reply("User-agent: *\nDisallow: /", type="text/plain")
        if path == "/500/":
            return Reply("broken", 500)
        if path == "/d1/":
            return Reply("", 301, headers={"Location": "/new-d1/"})
        if path == "/404/":
            return None
        return super().__call__(request)


def test_a_list_that_fails_is_no_run_without_news(tmp_path):
    """Each has its verdict, status and proposal, in the list, the JSON, the exit code and the metrics."""
    with serve(Faults()) as web:
        (tmp_path / "f.yaml").write_text(FAULTS)
        assert run("sites", "apply", "-f", "f.yaml", "--out", "o", cwd=tmp_path).returncode == 0
        port = free_port()
        program = SitesProgram(
            tmp_path, "--out", "o", "--allow-private", "--host-map", web.host_map, "--metrics-port", str(port), sites=""
        )
        try:
            shown = {}

            def ended():
                done = run("sites", "list", "--json", "--out", "o", cwd=tmp_path)
                shown.update({one["directory"]: one for one in json.loads(done.stdout)})
                return all(one["lists"] for one in shown.values())

            wait_until(ended)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                metrics = answer.read().decode()
            assert program.end() == 0
        finally:
            program.process.kill()
            program.process.communicate()
    found = {name.partition(".")[2]: one["lists"][0]["verdict"] for name, one in shown.items()}
    assert found == {
        "good": "new",
        "missing": "not_found",
        "broken": "server_error",
        "moved": "moved",
        "closed": "robots",
        "refused": "refused",
        "unknown": "unknown_host",
        "five": "new",
    }
    assert shown["f.moved"]["lists"][0]["proposal"].endswith("http://a.test/new-d1/")
    assert [shown[f"f.{name}"]["lists"][0]["status"] for name in ("moved", "missing", "broken")] == [301, 404, 500]
    assert shown["f.good"]["lists"][0]["links"] == 12
    assert shown["f.five"]["new_pages"] == 5
    assert 'nephila_sites_lists{verdict="moved"} 1.0' in metrics
    assert 'nephila_sites_fault_seconds{directory="f.missing"}' in metrics
    done = run("sites", "list", "--check", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert "set the url of the directory to http://a.test/new-d1/" in done.stdout


RECORDED = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: r}
spec:
  politeness: {delay: 10ms}
  frequency: 3s
  scope: {exclude: [/sponsored/, /elsewhere]}
  directories:
    - {name: list, url: "http://a.test/world/", recordLinks: true, scope: {mode: host}}
    - {name: top, url: "http://b.test/news/", scope: {linksPerPage: 2, maxDepth: 1, mode: host}}
"""


class Newest(Press):
    """Lists whose newest entry comes first; each link has a text."""

    def __init__(self):
        super().__init__()
        self.requests = Counter()

    def __call__(self, request):
        self.requests[request.path] += 1
        if request.path in LISTS:
            numbers = reversed(range(self.count))
            links = [f'<a href="{request.path}{number}">Entry {number}</a>' for number in numbers]
            return Reply(f"<html><title>List</title><body>{''.join(links)}<a href='/sponsored/1'>Ad</a></body></html>")
        return super().__call__(request)


def test_links_are_recorded_without_a_request_and_limited_to_the_first_of_a_page(tmp_path):
    """Over two states of the lists: rows with texts, the change feed, the counts of the runs, and explain. The API of
    the program has the sites of `--sites`."""
    press = Newest()
    with serve(press) as web:
        program = SitesProgram(
            tmp_path, "--out", "o", "--allow-private", "--host-map", web.host_map, documents=RECORDED
        )
        try:

            def counted(recorded, left_out):
                with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as db:
                    rows = db.execute("select sum(recorded), sum(left_out) from runs").fetchone()
                return rows == (recorded, left_out)

            wait_until(lambda: counted(3, 1))
            press.count = 5
            wait_until(lambda: counted(5, 1))
            explained = run("explain", "http://b.test/news/0", "--out", "o", "--job", "r.top", cwd=tmp_path).stdout
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / "o" / "control.sock"))
                client.sendall(b"GET /api/v1/sites HTTP/1.0\r\n\r\n")
                sites = client.makefile("rb").read().decode()
            assert program.end() == 0
        finally:
            program.process.kill()
            program.process.communicate()
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        rows = db.execute(
            "select url, title, json_extract(meta, '$.found_on') from pages where reason = 'link_recorded' order by url"
        ).fetchall()
        changes = db.execute("select url, title from changes where job = 'r.list' and change = 'new'").fetchall()
    world = [(f"http://a.test/world/{number}", f"Entry {number}") for number in range(5)]
    assert rows == [(*row, "http://a.test/world/") for row in world]
    assert set(world) <= set(changes)
    assert not [path for path in press.requests if path.startswith("/world/") and path != "/world/"]
    assert {
        path: count for path, count in press.requests.items() if path.startswith("/news/") and path[-1].isdigit()
    } == {f"/news/{number}": 1 for number in (1, 2, 3, 4)}
    assert "its page has more new links than are taken of one page" in explained
    assert '"recordLinks":true' in sites
