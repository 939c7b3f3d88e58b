"""The four services as programs of their own over a real broker: a crawl is told, watched, killed at, and right."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from nephila_stores.raw_file import RawPage, read

from tests.e2e.web import NEPHILA, Reply, page, run, serve
from tools.kafka_broker import Broker
from tools.system import free_port

SERVICES = ("storage", "parser", "downloader", "scheduler")
PAGES = 60
AGENT = "examplebot/1.0 (+https://example.org/bot)"


@pytest.fixture(scope="module")
def system_broker(tmp_path_factory):
    """A broker of this file's own: it has topics under their plain names."""
    broker = Broker(tmp_path_factory.mktemp("broker")).start()
    yield broker
    broker.stop()


class System:
    """The services, one process each."""

    def __init__(self, folder: Path, broker: Broker, web, formats: str = "sqlite, raw") -> None:
        self.folder = folder
        self.broker = broker
        maps = json.dumps([web.host_map])
        text = f"""
bootstrap: {broker.address}
partitions: 16
grace_s: 5
scheduler: {{directory: frontier, per_address: 0, address_gap_s: 0, lease_s: 5, start_by_s: 5}}
downloader:
  http: {{user_agent: {AGENT}}}
  dns: {{allow_private: true, host_map: {maps}}}
  limits: {{per_address: 0, address_gap_s: 0}}
storage: {{directory: rows, formats: [{formats}]}}
kafka: {{session_s: 6}}
"""
        (folder / "system.yaml").write_text(text)
        self.ports: dict[str, int] = {}
        self.programs: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str, **more: str) -> None:
        """Begin, and wait until they are ready; `more` goes to their environment."""
        for name in names:
            self.ports.setdefault(name, free_port())
            environment = {**os.environ, "NEPHILA_PROGRAM__METRICS_PORT": str(self.ports[name]), **more}
            service, _, member = name.partition("-")
            if member:
                environment |= {"NEPHILA_PROGRAM__MEMBER": name, "NEPHILA_SCHEDULER__DIRECTORY": name}
            with (self.folder / f"{name}.log").open("a") as log:
                self.programs[name] = subprocess.Popen(
                    [*NEPHILA, "service", service, "--config", "system.yaml"],
                    cwd=self.folder,
                    stderr=log,
                    env=environment,
                )
        for name in names:
            self._ready(name)

    def _ready(self, name: str) -> None:
        # Each question takes as long as the service needs to answer, or a moment when nobody listens yet.
        words = [sys.executable, "-c", _WAIT, str(self.ports[name])]
        waiter = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        log = (self.folder / f"{name}.log").read_text()
        assert waiter.returncode == 0, f"{name}: {waiter.stdout} {log[-2000:]}"

    def metrics(self, name: str) -> str:
        """The figures of a service."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def end(self, *names: str, number: int = signal.SIGTERM) -> list[int]:
        """End them; returns their exit codes."""
        for name in names:
            self.programs[name].send_signal(number)
        return [self.programs.pop(name).wait(40) for name in names]

    def held(self, name: str) -> int:
        """Partitions of a scheduler."""
        return int(float(self.metrics(name).split("\nnephila_scheduler_partitions ")[1].split()[0]))

    def until_held(self, name: str, count: int) -> None:
        """Wait until a scheduler has taken over so many partitions."""
        words = [sys.executable, "-c", _HELD, str(self.ports[name]), str(count)]
        waiter = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert waiter.returncode == 0, waiter.stdout

    def until_rows(self, count: int) -> None:
        """Wait until so many rows are in the table."""
        words = [sys.executable, "-c", _ROWS, str(self.folder / "rows" / "nephila.db"), str(count)]
        waiter = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        assert waiter.returncode == 0, waiter.stdout

    def bodies(self) -> set[str]:
        """URLs whose bodies were kept."""
        files = sorted((self.folder / "rows").glob("raw-*.gz"))
        return {one.head.url for path in files for one in read(path) if isinstance(one, RawPage) and one.body}

    def stored(self) -> set[str]:
        """URLs of stored pages."""
        with contextlib.closing(sqlite3.connect(self.folder / "rows" / "nephila.db")) as db:
            return {url for (url,) in db.execute("select url from pages where outcome = 'stored'")}

    def rows(self) -> Counter[str]:
        """URLs by outcome."""
        with contextlib.closing(sqlite3.connect(self.folder / "rows" / "nephila.db")) as db:
            found = db.execute("select url, outcome from pages").fetchall()
        assert len(found) == len({url for url, _ in found})
        return Counter(outcome for _, outcome in found)


_HELD = """
import sys, time, urllib.request
for _ in range(600):
    text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=60).read().decode()
    held = float(text.split("\\nnephila_scheduler_partitions ")[1].split()[0])
    if held == float(sys.argv[2]):
        sys.exit(0)
    time.sleep(0.1)
print(held, "partitions")
sys.exit(1)
"""

_ROWS = """
import sqlite3, sys, time
for _ in range(800):
    found = sqlite3.connect(sys.argv[1]).execute("select count(*) from pages").fetchone()[0]
    if found >= int(sys.argv[2]):
        sys.exit(0)
    time.sleep(0.1)
print(found, "rows")
sys.exit(1)
"""

_WAIT = """
import sys, time, urllib.request
for _ in range(600):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/readyz", timeout=2)
        sys.exit(0)
    except Exception as error:
        why = error
    time.sleep(0.1)
print(why)
sys.exit(1)
"""


@pytest.fixture
def system(tmp_path, system_broker, web):
    """All services, ready."""
    applied = run(
        "service", "topics", "apply", "--bootstrap", system_broker.address, "--partitions", "16", cwd=tmp_path
    )
    assert applied.returncode == 0, applied.stderr
    system = System(tmp_path, system_broker, web)
    system.start(*SERVICES)
    yield system
    for program in system.programs.values():
        program.kill()
        program.wait(60)


ROBOTS = "User-agent: examplebot\nDisallow: /58\n\nUser-agent: *\nDisallow: /1\n"
NO_FOLLOW = 57


def answer(request):
    """Sixty pages in a tree, and one that is not there. a.test has rules for examplebot."""
    if request.path == "/robots.txt":
        return Reply(ROBOTS, type="text/plain") if request.host == "a.test" else None
    number = int(request.path.removeprefix("/"))
    if number >= PAGES:
        return None
    if request.host == "a.test" and number == NO_FOLLOW:
        return Reply('<meta name="examplebot" content="nofollow"><p>Some words.</p><a href="/115">next</a>')
    return page(*(f"/{child}" for child in (2 * number + 1, 2 * number + 2)), title=f"Page {number}")


@pytest.fixture
def web():
    """The site."""
    with serve(answer) as served:
        yield served


CRAWL = ("--delay", "0.02", "--json")


@pytest.mark.smoke
def test_a_crawl_by_services_ends_with_the_right_count(system):
    """Told over the broker, watched to its end; every URL has a row, every service its figures, all end when asked.
    Robots are obeyed under the name in the User-Agent: of page 58 and of the links of page 57 nothing is asked."""
    done = run("crawl", "http://a.test/0", "--bootstrap", system.broker.address, *CRAWL, cwd=system.folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["reason"] == "done"
    assert result["outcomes"] == {"stored": PAGES - 1, "denied": 1, "failed": PAGES - 3, "dropped": 0}
    assert system.rows() == {"stored": PAGES - 1, "denied": 1, "failed": PAGES - 3}
    assert f'nephila_scheduler_urls_ended{{outcome="stored"}} {PAGES - 1}.0' in system.metrics("scheduler")
    assert f"nephila_parser_pages_parsed_total {PAGES - 1}.0" in system.metrics("parser")
    assert system.end(*SERVICES) == [0, 0, 0, 0]
    assert system.bodies() == system.stored()
    for name in SERVICES:
        for line in (system.folder / f"{name}.log").read_text().splitlines():
            assert json.loads(line)["service"] == name


def test_services_that_are_killed_lose_nothing(system):
    """Each killed once in the middle and begun again: the crawl goes on and every URL has its row."""
    words = [*NEPHILA, "crawl", "http://b.test/0", "--bootstrap", system.broker.address, "--delay", "0.1", "--json"]
    crawl = subprocess.Popen(words, cwd=system.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for name in ("downloader", "parser", "scheduler", "storage"):
            system.end(name, number=signal.SIGKILL)
            system.start(name)
        out, err = crawl.communicate(timeout=100)
    finally:
        crawl.kill()
        crawl.wait()
    assert crawl.returncode == 0, err
    assert json.loads(out)["outcomes"]["stored"] == PAGES
    assert system.rows() == {"stored": PAGES, "failed": PAGES + 1}
    system.end("storage")
    assert system.bodies() == system.stored()


@pytest.fixture
def together(tmp_path, system_broker, web):
    """Scheduler, storage, and one program that fetches and parses."""
    applied = run(
        "service", "topics", "apply", "--bootstrap", system_broker.address, "--partitions", "16", cwd=tmp_path
    )
    assert applied.returncode == 0, applied.stderr
    system = System(tmp_path, system_broker, web, "sqlite")
    system.start("storage", "fetchparse", "scheduler")
    yield system
    for program in system.programs.values():
        program.kill()
        program.wait(60)


def test_fetch_and_parse_in_one_program_lose_nothing_when_killed(together):
    """The program that fetches and parses is killed twice in the middle: every URL has one row, and the metrics are
    those of both services."""
    system = together
    words = [*NEPHILA, "crawl", "http://t.test/0", "--bootstrap", system.broker.address, "--delay", "0.1", "--json"]
    crawl = subprocess.Popen(words, cwd=system.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for rows in (5, 25):
            system.until_rows(rows)
            system.end("fetchparse", number=signal.SIGKILL)
            system.start("fetchparse")
        out, err = crawl.communicate(timeout=100)
    finally:
        crawl.kill()
        crawl.wait()
    assert crawl.returncode == 0, err
    assert json.loads(out)["outcomes"]["stored"] == PAGES
    assert system.rows() == {"stored": PAGES, "failed": PAGES + 1}
    figures = system.metrics("fetchparse")
    assert "\nnephila_parser_pages_parsed_total " in figures
    assert "\nnephila_downloader_fetches_total" in figures
    assert system.end("scheduler", "fetchparse", "storage") == [0, 0, 0]


RULE = """
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: pages}
spec:
  match: {url: '^http://c\\.test/\\d+$'}
  fields:
    number: {css: h1, regex: '(\\d+)', type: integer, required: true}
    words: {xpath: "//p[1]"}
"""


def test_rules_travel_with_the_job(system):
    """The crawl tells them before itself; every page has its item, by CSS in the parser and by XPath in its child."""
    (system.folder / "rule.yaml").write_text(RULE)
    words = ("http://c.test/0", "--bootstrap", system.broker.address, "--rules", "rule.yaml", *CRAWL)
    done = run("crawl", *words, cwd=system.folder)
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(system.folder / "rows" / "nephila.db")) as db:
        found = [json.loads(data) for (data,) in db.execute("select data from items where rule = 'pages'")]
        versions = db.execute("select distinct rule_version from pages where outcome = 'stored'").fetchall()
    assert sorted(item["number"] for item in found) == list(range(PAGES))
    assert {item["words"] for item in found} == {"Some words."}
    assert len(versions) == 1


HOSTS, DEEP, DELAY_S = 12, 16, 0.5


class ManyHosts:
    """Twelve sites of sixteen pages, each a chain that leads to the next site as well; it notes when it was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, list[float]] = defaultdict(list)

    def __call__(self, request):
        if request.path == "/robots.txt":
            return None
        self.asked[request.host].append(time.monotonic())
        site, number = int(request.host[1:].partition(".")[0]), int(request.path.removeprefix("/"))
        links = [f"/{number + 1}"] if number + 1 < DEEP else []
        return page(*links, f"http://h{(site + 1) % HOSTS}.test/{number}", title=f"Page {number} of {site}")

    def check(self) -> None:
        """No host was asked too early, whoever asked, and nothing twice but what was on its way at a kill."""
        for host, instants in self.asked.items():
            gaps = [later - earlier for earlier, later in pairwise(instants)]
            assert min(gaps) >= DELAY_S - 0.005, f"{host}: {min(gaps):.3f} s"


@pytest.fixture
def many(tmp_path, system_broker):
    """All services and a scheduler more, ready; the broker's topics are new."""
    prefix = ("--bootstrap", system_broker.address)
    assert run("service", "topics", "apply", *prefix, "--partitions", "16", cwd=tmp_path).returncode == 0
    answers = ManyHosts()
    with serve(answers) as served:
        system = System(tmp_path, system_broker, served)
        system.start("storage", "parser", "downloader", "scheduler")
        yield system, answers
        for program in system.programs.values():
            program.kill()
            program.wait(60)


def result(system) -> subprocess.Popen[str]:
    """A crawl of all sites is submitted; whoever told it may watch."""
    seeds = [f"http://h{number}.test/0" for number in range(HOSTS)]
    words = [*NEPHILA, "crawl", *seeds, "--bootstrap", system.broker.address, "--delay", str(DELAY_S), "--json"]
    return subprocess.Popen(words, cwd=system.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_scheduler_joins_and_one_is_killed(many):
    """Two share the partitions in the middle of a crawl, the first is killed: every URL has its row, and no host was
    asked twice within its delay, though three programs have asked."""
    system, answers = many
    crawl = result(system)
    try:
        system.until_rows(HOSTS)
        system.start("scheduler-b")
        system.until_held("scheduler-b", 8)
        assert system.held("scheduler") == 8
        system.end("scheduler", number=signal.SIGKILL)
        system.until_rows(HOSTS * DEEP)
        system.until_held("scheduler-b", 16)
    finally:
        crawl.kill()
        crawl.communicate()
    assert system.rows() == {"stored": HOSTS * DEEP}
    answers.check()


def test_what_cannot_be_submitted_is_one_line(tmp_path, system_broker):
    """No broker, no topics, an option that belongs to the services."""
    nobody = run("crawl", "http://a.test/", "--bootstrap", f"127.0.0.1:{free_port()}", cwd=tmp_path)
    assert nobody.returncode == 1
    assert "no Kafka broker answers" in nobody.stderr
    theirs = run("crawl", "http://a.test/", "--bootstrap", system_broker.address, "--allow-private", cwd=tmp_path)
    assert theirs.returncode == 2
    assert "--allow-private belongs to the settings of the services" in theirs.stderr
    for done in (nobody, theirs):
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
