"""Each process of a crawl by groups is killed in turn, the main process last: the rows are exact, no host is asked too
early, and what is asked of a crawl that runs is answered by all groups."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from pathlib import Path

from nephila_control.commands.client import ControlTarget, call
from nephila_control.job_types import ExcludeUrls

from tests.e2e.test_explain_a_crawl import program
from tests.e2e.test_groups import GROUPS, LONG_S, SCOPE, expect_gaps, expect_town, town
from tests.e2e.test_workers import QUICK_ADDRESSES, start, workers_of
from tests.e2e.web import Reply, page, run, serve
from tests.waits import wait_until

DELAY_S = 0.2


def test_no_gap_is_shorter_than_the_delay_whoever_is_killed(tmp_path):
    spans: dict[str, list[tuple[float, float]]] = {}
    guard, turn, requested = threading.Lock(), threading.Event(), itertools.count(1)

    def watched(request):
        begun = time.monotonic()
        reply = town(request)
        if next(requested) % 30 == 0:
            turn.set()
        with guard:
            spans.setdefault(request.host, []).append((begun, time.monotonic()))
        return reply

    pace = {"delay": str(DELAY_S), **QUICK_ADDRESSES}
    with serve(watched) as web:
        process = start(web, tmp_path, *SCOPE, *GROUPS, **pace)
        wait_until(lambda: len(workers_of(process)) == 4)
        for pid in (*workers_of(process), process.pid):
            assert turn.wait(LONG_S)
            turn.clear()
            groups = workers_of(process)
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=LONG_S)
        wait_until(lambda: not any(Path(f"/proc/{pid}/stat").exists() for pid in groups))
        process = start(web, tmp_path, "--resume", "--workers", "3", **pace)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    expect_town(tmp_path)
    expect_gaps(spans, DELAY_S - 0.005)


def test_the_summary_names_the_hosts_of_redirects_alone_after_a_kill(tmp_path):
    """The anchors of the seeds were those of redirects once their process had died. A redirect of the last moments may
    be missing."""
    came, release = threading.Event(), threading.Event()

    def answer(request):
        if request.host == "old.test":
            return Reply(status=302, headers={"Location": "http://new.test/"})
        if (request.host, request.path) == ("new.test", "/late"):
            came.set()
            release.wait(60)
        return page("/late") if request.path == "/" else page()

    with serve(answer) as web:
        process = start(web, tmp_path, "http://old.test/", "http://a.test/", "--workers", "1")
        try:
            assert came.wait(60)
            for pid in workers_of(process):
                os.kill(pid, signal.SIGKILL)
        finally:
            release.set()
        out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert "is started again on its log" in err
    assert [line for line in out.splitlines() if "seed hosts" in line and not line.endswith(": new.test")] == []


def test_urls_are_forgotten_and_an_exclusion_is_tried_while_a_crawl_runs(tmp_path):
    """A page that comes late links to what was forgotten; links that were sent before are sent again."""
    came, release = threading.Event(), threading.Event()
    hosts = [f"h{n}.test" for n in range(12)]
    links = [f"http://{host}/{path}" for host in hosts for path in ("x", "y")]

    def answer(request):
        if request.path == "/robots.txt":
            return None
        if request.path == "/late":
            came.set()
            release.wait(60)
            return page(*links)
        return page("/late", *links) if request.path == "/" else page()

    with serve(answer) as web:
        options = ("--allow-private", "--host-map", web.host_map, "--delay", "0", "--scope", "any")
        with program("crawl", "http://a.test/", "--out", "o", *GROUPS, *options, cwd=tmp_path) as process:
            assert came.wait(60)
            wait_until(lambda: len(web.paths()) >= 3 * len(hosts) + 3)

            def forgotten():
                done = run("forget", *links[::2], "--out", "o", "--json", cwd=tmp_path)
                return json.loads(done.stdout)

            counts = wait_until(lambda: (counts := forgotten())["open"] == 0 and counts)
            assert counts["unknown"] in (0, len(hosts))
            target = ControlTarget(out=tmp_path / "o")
            tried = call(target, lambda control: control.try_exclusion(ExcludeUrls(name="crawl", exclude=["/x$"])))
            assert (tried.removed, tried.complete) == (0, True)
            release.set()
            process.communicate(timeout=LONG_S)
    assert all(web.paths(host).count("/x") >= 2 for host in hosts)
    assert all(web.paths(host).count("/y") == 1 for host in hosts)
