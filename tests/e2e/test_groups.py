"""Groups of partitions crawl as one process: the same rows, whoever is killed, one pace and one budget."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.test_stop_and_resume import FORMATS, expect_whole
from tests.e2e.test_stop_and_resume import PAGES as PAGES_OF_A_HOST
from tests.e2e.test_stop_and_resume import answer as one_host
from tests.e2e.test_workers import QUICK_ADDRESSES, start, workers_of
from tests.e2e.web import Reply, page, rows, run, run_json, serve
from tests.waits import wait_until

SMALL, HOSTS = 240, 24
GROUPS = ("--workers", "4")
SCOPE = ("http://h0.test/0", "--scope", "any")


LONG_S = 240
"""Each process of a group has the start of a program."""


def crawl(web, *words, cwd):
    """`nephila crawl` without delay, to its end."""
    line = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0")
    return run("crawl", *words, *line, cwd=cwd, timeout=LONG_S)


def url(number: int) -> str:
    return f"http://h{number % HOSTS}.test/{number}"


def town(request):
    """Pages on many hosts, each links to three on any host; every tenth leads to another host first."""
    if request.path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /secret", type="text/plain")
    if request.path.startswith("/to"):
        return Reply(status=302, headers={"Location": url(int(request.path[3:]))})
    number = int(request.path[1:] or 0)
    links = [n for n in (2 * number + 1, 2 * number + 2, (number * 7 + 3) % SMALL) if n < SMALL]
    return page(*[f"/to{n}" if n % 10 == 5 else url(n) for n in links], "/secret")


def stored(tmp_path) -> Counter[str]:
    return Counter(address for address, outcome in rows(tmp_path, "url, outcome") if outcome == "stored")


def expect_town(tmp_path):
    """Every page stored, each once."""
    pages = stored(tmp_path)
    assert set(pages) >= {url(n) for n in range(SMALL)}, sorted({url(n) for n in range(SMALL)} - set(pages))
    assert set(pages.values()) == {1}
    table = rows(tmp_path, "url, outcome")
    assert len(table) == len({address for address, _ in table}) == sum(run_json(tmp_path)["outcomes"].values())


def expect_gaps(spans, least_s):
    """`spans`: host → (begin, end) of each answer. No answer begins sooner after the one before."""
    for host, answers in spans.items():
        gaps = [after[0] - before[1] for before, after in itertools.pairwise(sorted(answers))]
        assert min(gaps) >= least_s, (host, gaps)


@pytest.mark.smoke
def test_groups_bring_what_one_process_brings(tmp_path):
    columns = "url, outcome, reason, status, title, text, sha256"
    with serve(town) as web:
        for name, words in (("one", ("--workers", "0")), ("groups", GROUPS)):
            (tmp_path / name).mkdir()
            done = crawl(web, *SCOPE, *words, cwd=tmp_path / name)
            assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "one", columns) == rows(tmp_path / "groups", columns)
    expect_town(tmp_path / "groups")


def test_raw_pages_come_to_the_files(tmp_path):
    with serve(one_host) as web:
        done = crawl(web, "http://a.test/0", *GROUPS, *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)


def test_each_group_killed_in_turn_starts_again_on_its_log(tmp_path):
    killed: list[int] = []
    requested = itertools.count(1)
    turn = threading.Event()

    def watched(request):
        if next(requested) % 50 == 0:
            turn.set()
        return town(request)

    with serve(watched) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS)
        for _ in range(4):
            assert turn.wait(LONG_S)
            turn.clear()
            alive = [pid for pid in workers_of(process) if pid not in killed]
            first = min(alive)
            os.kill(first, signal.SIGKILL)
            killed.append(first)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert err.count("was ended by SIGKILL") == 4, err
    expect_town(tmp_path)


@pytest.mark.parametrize("failpoint", ["frontier_commit_after:60", "frontier_commit_before:60"])
def test_groups_that_die_at_every_commit_but_so_many(tmp_path, failpoint):
    """Each process of each group is killed exactly there; the last ones reach the end."""
    with serve(town) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS, NEPHILA_FAILPOINT=failpoint)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert "was ended by SIGKILL" in err
    expect_town(tmp_path)


def test_a_killed_program_goes_on_with_another_number_of_groups(tmp_path):
    happened = threading.Event()
    requested = itertools.count(1)

    def watched(request):
        if next(requested) >= 60:
            happened.set()
        return town(request)

    with serve(watched) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS)
        for workers in ("2", "3", ""):
            assert happened.wait(LONG_S)
            groups = workers_of(process)
            process.kill()
            process.communicate(timeout=30)
            wait_until(lambda groups=groups: not any(Path(f"/proc/{pid}/stat").exists() for pid in groups))
            happened.clear()
            requested = itertools.count(1)
            if workers:
                process = start(web, tmp_path, "--resume", "--workers", workers)
        done = crawl(web, "--resume", "--workers", "7", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expect_town(tmp_path)


def test_a_stopped_crawl_stores_what_it_has_fetched(tmp_path):
    happened = threading.Event()
    with serve(lambda request: (happened.set() if request.path == "/100" else None, one_host(request))[1]) as web:
        process = start(web, tmp_path, "http://a.test/0", *GROUPS, "--format", "sqlite,jsonl,warc")
        assert happened.wait(LONG_S)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LONG_S)
        assert process.returncode == 130, err
        assert len(web.paths()) - 1 == len(rows(tmp_path)) == run_json(tmp_path)["outcomes"]["stored"]
        done = crawl(web, "--resume", "--workers", "2", *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path)) == PAGES_OF_A_HOST
    expect_whole(tmp_path)


@pytest.mark.parametrize("pages", [1, 37, 150])
def test_a_budget_of_pages_is_held_exactly(tmp_path, pages):
    with serve(town) as web:
        done = crawl(web, *SCOPE, *GROUPS, "--max-pages", str(pages), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum(stored(tmp_path).values()) == pages
    assert run_json(tmp_path)["reason"] == "max_pages"


def test_a_budget_is_held_when_groups_are_killed(tmp_path):
    requested = itertools.count(1)
    turn = threading.Event()

    def watched(request):
        if next(requested) % 40 == 0:
            turn.set()
        return town(request)

    with serve(watched) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS, "--max-pages", "150")
        for _ in range(2):
            assert turn.wait(LONG_S)
            turn.clear()
            os.kill(max(workers_of(process)), signal.SIGKILL)  # perhaps while it starts
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert sum(stored(tmp_path).values()) == 150


def test_one_pace_for_each_host(tmp_path):
    spans: dict[str, list[tuple[float, float]]] = {}
    guard = threading.Lock()

    def slow(request):
        begun = time.monotonic()
        reply = town(request)
        time.sleep(0.02)
        with guard:
            spans.setdefault(request.host, []).append((begun, time.monotonic()))
        return reply

    with serve(slow) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS, delay="0.1", **QUICK_ADDRESSES)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    expect_town(tmp_path)
    expect_gaps(spans, 0.095)


def test_one_pace_for_an_address_of_hosts_in_several_groups(tmp_path):
    """Twelve hosts on one address: no two starts within the gap, no more at once than allowed."""
    gap_s = 0.4
    starts: list[float] = []
    at_once = [0, 0]
    guard = threading.Lock()

    def slow(request):
        with guard:
            starts.append(time.monotonic())
            at_once[0] += 1
            at_once[1] = max(at_once)
        time.sleep(1.5 * gap_s)
        with guard:
            at_once[0] -= 1
        return None if request.path == "/robots.txt" else page()

    pace = {
        f"NEPHILA_{service}__{name}": value
        for service in ("SCHEDULER", "DOWNLOADER__LIMITS")
        for name, value in (("PER_ADDRESS", "2"), ("ADDRESS_GAP_S", str(gap_s)))
    }
    seeds = [f"http://h{number}.test/" for number in range(12)]
    with serve(slow) as web:
        process = start(web, tmp_path, *seeds, *GROUPS, delay="0.1", **pace)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert len(rows(tmp_path)) == 12
    assert len(starts) == 24
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    assert min(gaps) > gap_s / 2, sorted(gaps)[:5]
    assert at_once[1] <= 2


def test_a_page_that_kills_its_group_each_time_is_a_dead_letter(tmp_path):
    """All others are stored, and the crawl ends."""
    with serve(town) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS, NEPHILA_FAILPOINT="parse:h9.test/57")
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert err.count("was ended by SIGKILL") == 4, err
    pages = stored(tmp_path)
    assert set(pages) >= {url(n) for n in range(SMALL) if n not in below(57)}
    table = rows(tmp_path, "url, outcome, reason")
    assert [row for row in table if row[1] == "failed"] == [(url(57), "failed", "dead_letter")]
    assert run_json(tmp_path)["dead_letters"] == {"requests": 1}


def below(number: int) -> set[int]:
    """A page and those that only it may lead to."""
    return {number} | {n for child in (2 * number + 1, 2 * number + 2) if child < SMALL for n in below(child)}


@pytest.mark.parametrize("budget", [0, 150])
def test_a_killed_crawl_of_one_process_goes_on_by_groups(tmp_path, budget):
    """Its frontier is divided among them; a page budget is used up exactly."""
    happened = threading.Event()

    def watched(request):
        if len(web.requests) >= 90:
            happened.set()
        return town(request)

    with serve(watched) as web:
        limit = ("--max-pages", str(budget)) if budget else ()
        process = start(web, tmp_path, *SCOPE, *limit, "--workers", "0")
        assert happened.wait(LONG_S)
        process.kill()
        process.communicate(timeout=30)
        before = len(web.requests)
        done = crawl(web, "--resume", *GROUPS, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    again = {request.path for request in web.requests[:before]} & {request.path for request in web.requests[before:]}
    if budget:
        pages = stored(tmp_path)
        assert (len(pages), set(pages.values())) == (budget, {1})
    else:
        expect_town(tmp_path)
        assert len(again - {"/robots.txt"}) < SMALL // 2, "what had ended is not fetched again"
