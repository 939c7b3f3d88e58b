"""The directory of a crawl by groups is read, changed, checked and saved as one with a single log is."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from nephila.programs.output_directory import OutputDirectory
from nephila_control.commands.client import ControlTarget, open_control
from nephila_control.job_types import ListJobs
from nephila_control.screen_types import ListHosts
from nephila_tools.backup import directory

from tests.e2e.test_backup_and_restore import SMALL
from tests.e2e.test_groups import GROUPS, SCOPE, crawl, expect_town, start, town, url
from tests.e2e.web import rows, run, serve

COLUMNS = "url, outcome, reason, status, title, text, sha256"
"""Without the depth, which depends on who comes first."""


def asked(cwd: Path, *words: str):
    done = run(*words, "--out", "o", "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def seen_by_the_api(out: Path):
    """Queued URLs of the job, and the hosts."""
    async with open_control(ControlTarget(out=out)) as control:
        (job,) = (await control.list_jobs(ListJobs())).jobs
        return job.queued, (await control.list_hosts(ListHosts())).hosts


def test_a_finished_crawl_is_explained_checked_and_repaired(tmp_path):
    with serve(town) as web:
        assert crawl(web, *SCOPE, *GROUPS, cwd=tmp_path).returncode == 0
        undisturbed = sorted(rows(tmp_path, COLUMNS))
        assert asked(tmp_path, "explain", url(7))["state"] == "stored"
        assert asked(tmp_path, "explain", "http://h1.test/secret")["state"] == "not_crawled"
        assert asked(tmp_path, "explain", "http://other.test/")["state"] == "never_found"
        whole = run("check", "--out", "o", cwd=tmp_path)
        count = len(undisturbed)
        assert (whole.returncode, whole.stdout) == (0, f"crawl: {count} URLs have ended, none without a row\n")

        with closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as database:
            lost = [url(n) for n in (3, 50, 100, 201)]
            database.executemany("DELETE FROM pages WHERE url = ?", [(address,) for address in lost])
            database.commit()
        found = run("check", "--out", "o", cwd=tmp_path)
        assert found.returncode == 1
        assert sorted(found.stdout.splitlines()[1:]) == sorted(f"  lost {address}" for address in lost)
        repaired = run("check", "--out", "o", "--repair", cwd=tmp_path)
        assert repaired.returncode == 0, repaired.stderr
        assert "crawl: 4 queued; continue: " in repaired.stdout
        before = len(web.requests)
        assert crawl(web, "--resume", *GROUPS, cwd=tmp_path).returncode == 0
        again = {f"http://{request.host}{request.path}" for request in web.requests[before:]}
        assert {address for address in again if not address.endswith("/robots.txt")} == set(lost)
    assert sorted(rows(tmp_path, COLUMNS)) == undisturbed
    assert run("check", "--out", "o", cwd=tmp_path).returncode == 0


def test_a_stopped_crawl_is_asked_and_changed(tmp_path):
    """Hosts, their pace and forgotten URLs of a crawl that was stopped, and what a resume makes of them."""
    reached = threading.Event()

    def watched(request):
        if len(web.requests) > 60:
            reached.set()
        return town(request)

    with serve(watched) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS)
        assert reached.wait(120)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        queued, hosts = asyncio.run(seen_by_the_api(tmp_path / "o"))
        assert queued == sum(host.queued for host in hosts) > 0
        assert {host.name for host in hosts} <= {f"h{n}.test" for n in range(24)}
        assert asked(tmp_path, "forget", url(0)) == {"name": "crawl", "forgotten": 1, "open": 0, "unknown": 0}
        assert asked(tmp_path, "forget", url(0))["unknown"] == 1
        assert asked(tmp_path, "explain", url(0))["seen"] is False
        before = len(web.requests)
        done = crawl(web, "--resume", *GROUPS, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert url(0) in {f"http://{request.host}{request.path}" for request in web.requests[before:]}
    expect_town(tmp_path)


@pytest.mark.smoke
def test_backups_of_a_running_crawl_by_groups_lead_to_the_same_rows(tmp_path):
    """Several, taken at once after the other, while sixteen logs and the database change."""
    times = iter(range(1_700_000_000, 1_800_000_000))
    begun, taken = threading.Event(), []

    def watched(request):
        if request.path == "/20":
            begun.set()
        return town(request)

    with serve(watched) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS, **SMALL)
        assert begun.wait(120)
        while process.poll() is None:
            taken.append(directory.back_up(OutputDirectory(tmp_path / "o"), tmp_path / "backups", next(times)))
        _, err = process.communicate()
        assert process.returncode == 0, err
        undisturbed = sorted(rows(tmp_path, COLUMNS))
        assert len(taken) >= 3
        for number, path in enumerate((taken[0], taken[len(taken) // 2], taken[-1])):
            place = tmp_path / str(number)
            place.mkdir()
            restored = run("restore", str(path), "--out", "o", cwd=place)
            assert restored.returncode == 0, restored.stderr
            assert run("check", "--out", "o", cwd=place).returncode == 0
            done = crawl(web, "--resume", *GROUPS, cwd=place)
            assert done.returncode == 0, done.stderr
            expect_town(place)
            assert sorted(rows(place, COLUMNS)) == undisturbed
