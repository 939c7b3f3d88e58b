"""Several processes fetch for one crawl: the same rows as one process, whoever is killed, at one pace."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.e2e.test_stop_and_resume import FORMATS, PAGES, answer, expect_whole
from tests.e2e.web import NEPHILA, crawl, page, rows, run_json, serve
from tests.waits import wait_until

WORKERS = ("--workers", "2")
SMALL = 60
HOSTS = 6


def town(request):
    """Sixty pages on six hosts; each links to three others on any host."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    others = (2 * number + 1, 2 * number + 2, (number * 7 + 3) % SMALL)
    return page(*[f"http://h{n % HOSTS}.test/{n}" for n in others if n < SMALL])


def start(web, tmp_path, *words, delay="0", **env):
    """Begin a crawl that something will happen to."""
    return subprocess.Popen(
        [*NEPHILA, "crawl", *words, "--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", delay],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
    )


def workers_of(process) -> list[int]:
    """Process ids of its workers."""
    try:
        text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    except OSError:
        return []
    return [pid for pid in map(int, text.split()) if b"nephila.programs.groups.worker.group" in _command_of(pid)]


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def at(path, happened):
    """The web of test_stop_and_resume, which tells when a page is asked for."""

    def watched(request):
        if request.path == path:
            happened.set()
        return answer(request)

    return watched


@pytest.mark.smoke
def test_a_killed_worker_is_replaced_and_nothing_is_missing(tmp_path):
    """Its requests are made again by others; one line tells of it; no row is lost or doubled."""
    happened = threading.Event()
    with serve(at("/60", happened)) as web:
        process = start(web, tmp_path, "http://a.test/0", "http://b.test/0", *WORKERS, *FORMATS)
        assert happened.wait(30)
        before = workers_of(process)
        assert len(before) == 2
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.count("was ended by SIGKILL") == 2, err
    found = rows(tmp_path, "url, outcome")
    assert len(found) == 2 * PAGES
    assert {outcome for _, outcome in found} == {"stored"}
    # What was in flight is fetched again, and so are pages whose rows were not durable.
    assert len(web.paths()) <= 2 * PAGES + 2 * 100


def test_a_killed_main_takes_its_workers_along_and_resume_goes_on(tmp_path):
    """kill -9 of the program leaves no process behind."""
    happened = threading.Event()
    with serve(at("/100", happened)) as web:
        process = start(web, tmp_path, "http://a.test/0", *WORKERS, *FORMATS)
        assert happened.wait(30)
        workers = workers_of(process)
        assert len(workers) == 2
        process.kill()
        process.communicate(timeout=30)
        wait_until(lambda: not any(Path(f"/proc/{pid}/stat").exists() for pid in workers))
        done = crawl(web, "--resume", *WORKERS, *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)


@pytest.mark.parametrize("everybody", [True, False])
def test_a_signal_drains_all_workers(tmp_path, everybody):
    """Ctrl-C reaches every process of the terminal, SIGTERM of a service manager may: either way main decides."""
    happened = threading.Event()
    with serve(at("/100", happened)) as web:
        process = start(web, tmp_path, "http://a.test/0", *WORKERS, "--format", "sqlite,jsonl,warc")
        assert happened.wait(30)
        if everybody:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert err == "ending: fetches in flight get up to 4 s; Ctrl-C again to stop at once\n"
        book = run_json(tmp_path)
        assert (book["state"], book["outcomes"]["stored"]) == ("stopped", len(rows(tmp_path)))
        asked = len(web.paths())
        assert asked - 1 == len(rows(tmp_path)), "what was fetched was not stored"
        done = crawl(web, "--resume", *WORKERS, *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)


def test_a_page_that_kills_its_worker_ends_alone(tmp_path):
    """It is fetched again, in the end alone, then it is failed(dead_letter); all others are stored."""
    with serve(answer) as web:
        done = crawl(
            web, "http://a.test/0", "http://b.test/0", *WORKERS, cwd=tmp_path, NEPHILA_FAILPOINT="parse:b.test/299"
        )
    assert done.returncode == 0, done.stderr
    found = {url: (outcome, reason) for url, outcome, reason in rows(tmp_path)}
    assert found.pop("http://b.test/299") == ("failed", "dead_letter")
    assert len(found) == 2 * PAGES - 1
    assert {outcome for outcome, _ in found.values()} == {"stored"}
    assert web.paths("b.test").count("/299") == 4, "twice beside others, then alone twice"


def test_one_pace_for_all_workers(tmp_path):
    """No two requests to a host at once, and the delay between them, whoever makes them."""
    spans: dict[str, list[tuple[float, float]]] = {}
    guard = threading.Lock()

    def slow(request):
        begun = time.monotonic()
        time.sleep(0.02)
        with guard:
            spans.setdefault(request.host, []).append((begun, time.monotonic()))
        return town(request)

    with serve(slow) as web:
        process = start(web, tmp_path, "http://h0.test/0", "--scope", "any", *WORKERS, delay="0.1", **QUICK_ADDRESSES)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(rows(tmp_path)) == SMALL
    assert len(spans) == HOSTS
    for host, of in spans.items():
        of.sort()
        gaps = [after[0] - before[1] for before, after in itertools.pairwise(of)]
        assert min(gaps) >= 0.095, (host, gaps)


QUICK_ADDRESSES = {
    f"NEPHILA_{service}__{name}": value
    for service in ("SCHEDULER", "DOWNLOADER__LIMITS")
    for name, value in (("PER_ADDRESS", "0"), ("ADDRESS_GAP_S", "0"))
}


def test_settings_that_a_worker_refuses_are_one_line(tmp_path):
    """As with one process: exit 2, and nothing was begun."""
    with serve(answer) as web:
        done = crawl(web, "http://a.test/0", *WORKERS, cwd=tmp_path, NEPHILA_DOWNLOADER__HTTP__FETCHER="nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("nephila: http.fetcher 'nonsense'")
    assert len(done.stderr.splitlines()) == 1


def test_one_pace_for_an_address_whoever_fetches(tmp_path):
    """Six hosts on one address, new to everybody: no two starts within the gap, no more at once than allowed.

    The server sees a start some time after it: on a loaded machine, by up to half of the gap."""
    gap_s = 0.4
    starts: list[float] = []
    at_once = [0, 0]
    guard = threading.Lock()

    def slow(request):
        with guard:
            starts.append(time.monotonic())
            at_once[0] += 1
            at_once[1] = max(at_once)
        time.sleep(2.5 * gap_s)  # without the limit, three at once
        with guard:
            at_once[0] -= 1
        return None if request.path == "/robots.txt" else page()

    pace = {
        f"NEPHILA_{service}__{name}": value
        for service in ("SCHEDULER", "DOWNLOADER__LIMITS")
        for name, value in (("PER_ADDRESS", "2"), ("ADDRESS_GAP_S", str(gap_s)))
    }
    seeds = [f"http://h{number}.test/" for number in range(6)]
    with serve(slow) as web:
        process = start(web, tmp_path, *seeds, *WORKERS, delay="0.1", **pace)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(rows(tmp_path)) == 6
    assert len(starts) == 12
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    assert min(gaps) > gap_s / 2, sorted(gaps)[:5]
    assert at_once[1] <= 2
