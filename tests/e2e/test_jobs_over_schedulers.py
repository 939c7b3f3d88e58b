"""One job over two schedulers and a real broker: it ends by itself with the right count, though one of them dies."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from tests.e2e.test_services_over_kafka import SERVICES, System, system_broker  # noqa: F401
from tests.e2e.web import NEPHILA, page, run, serve

HOSTS, DEEP = 20, 31
PAGES = HOSTS * DEEP
PARTITIONS = 16
ANY = ("--scope", "any", "--json")


def answer(request):
    """Twenty sites of 31 pages, each a tree of its own whose pages lead to the next site as well."""
    if request.path == "/robots.txt":
        return None
    site, number = int(request.host[1:].partition(".")[0]), int(request.path.removeprefix("/"))
    children = [f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < DEEP]
    return page(*children, f"http://h{(site + 1) % HOSTS}.test/{number}", title=f"Page {number} of {site}")


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services, and a second scheduler that has half of the partitions."""
    applied = run(
        "service",
        "topics",
        "apply",
        "--bootstrap",
        system_broker.address,
        "--partitions",
        str(PARTITIONS),
        cwd=tmp_path,
    )
    assert applied.returncode == 0, applied.stderr
    with serve(answer) as web:
        system = System(tmp_path, system_broker, web)
        system.start(*SERVICES, "scheduler-b")
        system.until_held("scheduler-b", PARTITIONS // 2)
        yield system
        for program in system.programs.values():
            program.kill()
            program.wait(60)


class Crawl:
    """`nephila crawl --bootstrap` while it watches."""

    def __init__(self, system: System, *words: str) -> None:
        self.process = subprocess.Popen(
            [*NEPHILA, "crawl", "http://h0.test/0", "--bootstrap", system.broker.address, *ANY, *words],
            cwd=system.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self) -> dict[str, object]:
        """What it says at its end, to which it comes by itself."""
        try:
            out, err = self.process.communicate(timeout=120)
        finally:
            self.process.kill()
            self.process.wait()
        assert self.process.returncode == 0, err
        return json.loads(out)


def test_a_page_budget_is_spent_to_the_page(system):
    """Five hundred of more pages, by two schedulers: no more and no less."""
    reported = Crawl(system, "--delay", "0.02", "--max-pages", "500").result()
    assert reported["reason"] == "max_pages"
    assert reported["outcomes"] == {"stored": 500, "denied": 0, "failed": 0, "dropped": 0}
    assert system.rows() == {"stored": 500}


@pytest.mark.parametrize("killed", ["scheduler", "scheduler-b"])
def test_a_crawl_ends_though_a_scheduler_is_killed_in_its_last_seconds(system, killed):
    """Whether it coordinates the job or not: every page has its row, and the end is told once."""
    crawl = Crawl(system, "--delay", "0.1")
    system.until_rows(PAGES - 60)
    system.end(killed, number=signal.SIGKILL)
    reported = crawl.result()
    assert reported["reason"] == "done"
    assert reported["outcomes"]["stored"] == PAGES
    assert system.rows() == {"stored": PAGES}


@pytest.mark.parametrize("killed", ["scheduler", "scheduler-b"])
def test_a_page_budget_outlives_a_scheduler(system, killed):
    """What it had of the places goes to its successor, no page more."""
    crawl = Crawl(system, "--delay", "0.1", "--max-pages", "300")
    system.until_rows(250)
    system.end(killed, number=signal.SIGKILL)
    assert crawl.result()["outcomes"]["stored"] == 300
    assert system.rows() == {"stored": 300}


def test_bad_lines_of_a_file_are_named_and_the_others_are_crawled(system):
    """As in one program. A seed that the job excludes is named as well."""
    bad = [
        b"no url",
        b"ftp://a.test/",
        b"mailto:a@b.test",
        b"http://a.test:99999/",
        b"\xff",
        b"http://a.test/" + b"y" * 9000,
    ]
    lines = [line for n, odd in enumerate(bad) for line in (b"http://h%d.test/1" % n, odd)]
    (system.folder / "seeds").write_bytes(b"\n".join([*lines, b"http://h9.test/no"]))
    words = ("--bootstrap", system.broker.address, *ANY, "--max-depth", "0", "--exclude", "/no$", "--delay", "0.02")
    done = run("crawl", "--seeds", "seeds", *words, cwd=system.folder, timeout=120)
    assert done.returncode == 0, done.stderr
    named = [line for line in done.stderr.splitlines() if line.startswith("nephila: seed ")]
    assert [line.split(":")[1] for line in named[:-1]] == [f" seed seeds, line {2 * n + 2}" for n in range(len(bad))]
    assert named[-1] == "nephila: seed http://h9.test/no: excluded by '/no$'"
    assert json.loads(done.stdout)["outcomes"]["stored"] == len(bad)


def listed(system):
    """Name → row."""
    done = run("jobs", "list", "--bootstrap", system.broker.address, "--json", cwd=system.folder)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


def test_jobs_of_a_system_are_listed_paused_resumed_and_deleted(system):
    """By who can reach the broker; the schedulers do as they are told, and who watches hears of it."""
    before = listed(system)
    crawl = Crawl(system, "--delay", "0.5")
    system.until_rows(20)
    found = listed(system)
    (name,) = found.keys() - before.keys()
    assert found[name]["state"] == "running"
    words = (name, "--bootstrap", system.broker.address)
    assert "paused (generation 3)" in run("jobs", "pause", *words, cwd=system.folder).stdout
    assert "unchanged" in run("jobs", "pause", *words, cwd=system.folder).stdout
    assert listed(system)[name]["state"] == "paused"
    assert "resumed (generation 4)" in run("jobs", "resume", *words, cwd=system.folder).stdout
    system.until_rows(60)
    assert "deleted (generation 5)" in run("jobs", "delete", *words, cwd=system.folder).stdout
    _, err = crawl.process.communicate(timeout=60)
    assert crawl.process.returncode == 1
    assert f"job '{name}' was deleted" in err
    assert name not in listed(system)
    again = run("jobs", "pause", *words, cwd=system.folder)
    assert again.returncode == 1
    assert f"there is no job '{name}'" in again.stderr
