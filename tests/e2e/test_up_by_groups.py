"""`nephila up` by groups serves jobs as one process does: the tests of `up`, and what goes to several groups."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from functools import partial

import pytest
from nephila_control.commands.client import ControlTarget, call
from nephila_control.job_types import ExcludeUrls
from nephila_control.requests import Empty

from tests.e2e.program import QUICK, Program, job
from tests.e2e.test_forget import test_an_expression_is_looked_up_in_the_rows_of_a_program_that_runs  # noqa: F401
from tests.e2e.test_groups import HOSTS, SMALL, town, url
from tests.e2e.test_groups_divided_anew import FIVE_CORES
from tests.e2e.test_rules import test_jobs_of_up_name_their_rules  # noqa: F401
from tests.e2e.test_tenants_and_quotas import (
    test_a_used_up_tenant_is_held_over_a_kill_and_the_other_goes_on,  # noqa: F401
)
from tests.e2e.test_up import (
    answer,
    rows,
    test_a_second_signal_ends_at_once,  # noqa: F401
    test_changes_while_it_runs,  # noqa: F401
    test_clients_that_send_anything,  # noqa: F401
    test_killed_it_goes_on_with_all_jobs,  # noqa: F401
    test_members_shows_pages_and_bytes_since_the_start,  # noqa: F401
    test_seeds_of_a_file_are_streamed,  # noqa: F401
    test_two_jobs_to_their_end,  # noqa: F401
)
from tests.e2e.test_update_monitoring import test_a_monitored_site  # noqa: F401
from tests.e2e.test_workers import workers_of
from tests.e2e.web import Reply, serve

GROUPS = ("--workers", "3")


@pytest.fixture
def up(up):
    return lambda web, *words, **env: up(web, *GROUPS, *words, **env)


def test_a_job_over_many_hosts_survives_a_kill_of_each_group(tmp_path, up):
    """Its links go from group to group; each page has one row."""
    seeds = [url(0)]
    with serve(town) as web:
        program = up(web)
        program.apply(job("a", seeds=seeds, scope={"mode": "any"}))
        program.apply(job("b", seeds=[url(n) for n in range(HOSTS)], scope={"mode": "any", "maxDepth": 0}))
        for number in range(3):
            groups = workers_of(program.process)
            os.kill(groups[number], signal.SIGKILL)
            program.until(lambda jobs: len(workers_of(program.process)) == 3 and jobs["a"]["stored"] > 0)
        found = program.until(lambda jobs: {jobs[name]["state"] for name in "ab"} == {"idle"})
        assert (found["a"]["stored"] >= SMALL, found["b"]["stored"]) == (True, HOSTS)
        program.end()
    stored = rows(tmp_path, "select url, count(*) from pages where job = 'a' and outcome = 'stored' group by url")
    assert {url(n) for n in range(SMALL)} <= set(stored)
    assert set(stored.values()) == {1}


def test_seeds_that_are_refused_are_told_to_the_request_that_has_sent_them(tmp_path, up):
    with serve(answer) as web:
        program = up(web)
        program.apply(job("a", paused=True, scope={"exclude": ["/no"]}))
        good = [f"http://h{n}.test/" for n in range(10)]
        done = program.jobs("seeds", "a", *good, "http://b.test/no")
        assert "seed left out: http://b.test/no" in done.stderr
        assert not any(seed in done.stderr for seed in good)
        assert program.list()["a"]["queued"] == len(good) + 1
        assert program.jobs("seeds", "a", "http://new.test/").stderr == ""
        program.end()


@pytest.mark.parametrize("workers", ["0", "1", "3"])
def test_dns_and_proxies_are_those_of_all_groups(tmp_path, workers):
    """The same answer for any number of workers."""
    proxies = [f"http://127.0.0.1:{port}" for port in (1, 2)]
    program = Program(tmp_path, "--workers", workers, *(word for proxy in proxies for word in ("--proxy", proxy)))
    network = call(ControlTarget(out=tmp_path / "o"), lambda control: control.get_network(Empty()))
    assert (network.dns.lookups, network.dns.failures, network.proxies_total) == (0, 0, 2)
    assert sorted(row.name for row in network.proxies) == proxies
    program.end()


def test_a_deleted_job_begins_anew_under_its_name(tmp_path, up):
    with serve(answer) as web:
        program = up(web)
        for _ in range(2):
            assert program.apply(job("a", scope={"maxPages": 20})).stdout == "a: created (generation 1)\n"
            program.until(lambda jobs: jobs["a"]["state"] == "limit" and jobs["a"]["stored"] == 20)
            assert program.jobs("delete", "a").stdout == "a: deleted (generation 2)\n"
            assert program.list() == {}
        program.end(signal.SIGKILL)
        program.start()
        assert program.ready.startswith("0 jobs in o; ")
        program.end()
    assert Counter(path for path in web.paths("a.test") if path != "/robots.txt") == dict.fromkeys(
        [path for path in dict.fromkeys(web.paths("a.test")) if path != "/robots.txt"], 2
    )


def test_a_program_without_a_number_of_groups_gets_more_with_the_load(tmp_path):
    """Jobs and their budgets go on over the new division."""
    seeds = [f"http://h{n}.test/0" for n in range(HOSTS)]
    released = threading.Event()

    def slow(request):
        released.wait(0.2)
        return answer(request)

    with serve(slow) as web:
        command = [sys.executable, "-c", FIVE_CORES]
        program = Program(tmp_path, "--host-map", web.host_map, command=command, **QUICK)
        try:
            (first,) = workers_of(program.process)
            program.apply(job("a", seeds=seeds, scope={"maxPages": 900}))
            program.apply(job("b", seeds=seeds, scope={"maxPages": 100}))
            workers = partial(workers_of, program.process)
            program.until(lambda jobs: len(workers()) > 1 and first not in workers())
            released.set()
            program.until(lambda jobs: {jobs[name]["state"] for name in "ab"} == {"limit"})
            assert program.end()[0] == 0
        finally:
            program.process.kill()
    assert rows(tmp_path, "select job, count(*) from pages where outcome = 'stored' group by job") == {
        "a": 900,
        "b": 100,
    }


def test_what_an_exclusion_would_remove_is_counted_in_all_groups(tmp_path, up):
    with serve(answer) as web:
        program = up(web)
        seeds = [f"http://h{n}.test/{path}" for n in range(12) for path in ("keep", "away/1", "away/2")]
        program.apply(job("a", seeds=seeds, paused=True))
        target = ControlTarget(out=tmp_path / "o")
        tried = call(target, lambda control: control.try_exclusion(ExcludeUrls(name="a", exclude=["/away/"])))
        assert (tried.queued, tried.looked_at, tried.removed, tried.complete) == (36, 36, 24, True)
        assert all("/away/" in example for example in tried.examples)
        assert program.list()["a"]["queued"] == 36
        call(target, lambda control: control.exclude(ExcludeUrls(name="a", exclude=["/away/"])))
        program.jobs("resume", "a")
        found = program.until(lambda jobs: jobs["a"]["state"] == "idle")
        assert found["a"]["dropped"] == 24
        program.end()
    assert not [path for path in web.paths() if "away" in path]


def test_a_quarantine_is_listed_and_released_over_groups(tmp_path, up):
    """A part of a host that links to itself and brings no new text, on each of several hosts."""

    def endless(request):
        if request.path == "/robots.txt":
            return None
        number = int(request.path.rpartition("/")[2] or 0)
        links = "".join(f'<a href="/d/{n}">more</a>' for n in (2 * number + 1, 2 * number + 2))
        return Reply(f"<title>The same</title><p>Always the same words.</p>{links}")

    hosts = [f"h{n}.test" for n in range(6)]
    with serve(endless) as web:
        program = up(web)
        program.apply(job("a", seeds=[f"http://{host}/" for host in hosts], traps={"capFetches": 10}))
        program.until(lambda jobs: jobs["a"]["state"] == "idle")
        listed = json.loads(program.jobs("quarantines", "a", "--json").stdout)
        assert [(row["host"], row["released"]) for row in listed] == [(host, False) for host in hosts]
        before = {host: len(web.paths(host)) for host in hosts}
        assert program.jobs("release", "a", hosts[3], listed[3]["pattern"]).returncode == 0
        again = program.jobs("release", "a", hosts[3], listed[3]["pattern"], code=1)
        assert "is not in quarantine" in again.stderr
        program.jobs("seeds", "a", f"http://{hosts[3]}/d/5000")
        program.until(lambda jobs: len(web.paths(hosts[3])) > before[hosts[3]] + 20)
        program.jobs("delete", "a")
        assert all(len(web.paths(host)) == before[host] for host in hosts if host != hosts[3])
        program.end()


def test_one_process_continues_a_divided_frontier(tmp_path, up):
    with serve(answer) as web:
        program = up(web)
        program.apply(job("a", scope={"maxPages": 5}))
        program.until(lambda jobs: jobs["a"]["state"] == "limit")
        program.end()
        program = Program(tmp_path, "--workers", "0", "--host-map", web.host_map, **QUICK)
        try:
            assert workers_of(program.process) == []
            program.apply(job("a", scope={"maxPages": 12}))
            program.until(lambda jobs: jobs["a"]["state"] == "limit" and jobs["a"]["stored"] == 12)
            assert program.end()[0] == 0
        finally:
            program.process.kill()
    assert rows(tmp_path, "select job, count(*) from pages where outcome = 'stored' group by job") == {"a": 12}
