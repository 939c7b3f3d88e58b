"""A crawl by groups can be asked, spends quotas together and fetches ended URLs again, as one process does."""

from __future__ import annotations

import json
import threading
import time

from nephila.scheduler.group.partition_logs import PARTITIONS
from nephila_control.commands.client import ControlTarget, call
from nephila_control.screen_types import ChangeHost

from tests.e2e.test_explain_a_crawl import program
from tests.e2e.test_groups import GROUPS, SCOPE, SMALL, crawl, expect_town, town, url
from tests.e2e.web import Reply, page, rows, run, run_json, serve

QUOTA = 60


def asked(tmp_path, *words):
    """The answer of a command to the program."""
    done = run(*words, "--out", "o", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_questions_go_to_the_groups(tmp_path):
    came, release = threading.Event(), threading.Event()

    def answer(request):
        if request.path == "/robots.txt":
            return None
        if request.path == "/slow":
            came.set()
            release.wait(60)
        return page("/slow", *[f"/{n}" for n in range(5)], *[f"http://h{n}.test/" for n in range(8)])

    with serve(answer) as web:
        options = ("--allow-private", "--host-map", web.host_map, "--delay", "0", "--scope", "any", "--max-depth", "1")
        with program("crawl", "http://a.test/", "--out", "o", *GROUPS, *options, cwd=tmp_path):
            assert came.wait(60)
            (job,) = asked(tmp_path, "jobs", "list")
            assert (job["name"], job["state"]) == ("crawl", "running")
            assert asked(tmp_path, "explain", "http://a.test/slow")["kind"] == "leased"
            behind = asked(tmp_path, "explain", "http://a.test/4")
            assert (behind["state"], behind["seen"]) == ("waiting", True)
            assert asked(tmp_path, "explain", "http://a.test/")["state"] == "stored"
            assert asked(tmp_path, "explain", "http://other.test/")["state"] == "never_found"
            (host,) = asked(tmp_path, "hosts", "a.test")["hosts"]
            assert (host["name"], host["why"], host["queued"]) == ("a.test", "in_flight", 5)
            target = ControlTarget(out=tmp_path / "o")
            call(target, lambda control: control.change_host(ChangeHost(name="a.test", action="pause", seconds=60.0)))
            (host,) = asked(tmp_path, "hosts", "a.test")["hosts"]
            assert host["held_s"] > 30
            release.set()


def test_a_quota_is_spent_by_all_groups_together(tmp_path):
    document = {
        "apiVersion": "nephila.dev/v1",
        "kind": "CrawlJob",
        "metadata": {"name": "j"},
        "spec": {
            "seeds": [url(0)],
            "scope": {"mode": "any"},
            "politeness": {"delay": "0"},
            "quota": {"pages": QUOTA, "per": "day"},
        },
    }
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    with serve(town) as web:
        words = ("--out", "o", "--allow-private", "--host-map", web.host_map, *GROUPS)
        done = run("crawl", "job.yaml", *words, cwd=tmp_path, timeout=240)
    assert run_json(tmp_path)["reason"] == "quota", done.stderr
    fetches = [request.path for request in web.requests if request.path != "/robots.txt"]
    assert QUOTA <= len(fetches) <= QUOTA + 3 * PARTITIONS


def test_failed_urls_get_new_tries(tmp_path):
    well = threading.Event()

    def sometimes(request):
        if request.path in ("/7", "/100", "/201") and not well.is_set():
            return Reply("no", 404)
        return town(request)

    with serve(sometimes) as web:
        assert crawl(web, *SCOPE, *GROUPS, cwd=tmp_path).returncode == 0
        missing = [address for address, outcome in rows(tmp_path, "url, outcome") if outcome == "failed"]
        assert url(7) in missing
        well.set()
        requests = len(web.requests)
        done = crawl(web, "--retry-failed", *GROUPS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = {f"http://{request.host}{request.path}" for request in web.requests[requests:]}
    assert set(missing) <= again
    assert url(0) not in again
    expect_town(tmp_path)


def test_a_refresh_asks_for_every_page_once(tmp_path):
    with serve(town) as web:
        assert crawl(web, *SCOPE, *GROUPS, cwd=tmp_path).returncode == 0
        requests = len(web.requests)
        done = crawl(web, "--refresh", *GROUPS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pages = [request for request in web.requests[requests:] if request.path != "/robots.txt"]
    assert len([request for request in pages if not request.path.startswith("/to")]) == SMALL
    expect_town(tmp_path)


def test_a_closed_window_is_waited_for(tmp_path):
    """A window of one hour a day that is closed now, in every partition."""
    hour = time.gmtime(time.time() + 6 * 3600).tm_hour
    document = {
        "apiVersion": "nephila.dev/v1",
        "kind": "CrawlJob",
        "metadata": {"name": "j"},
        "spec": {
            "seeds": [url(number) for number in range(4)],
            "politeness": {"delay": "0"},
            "windows": [f"{hour:02}:00-{hour:02}:59"],
        },
    }
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    with serve(town) as web:
        words = ("--out", "o", "--allow-private", "--host-map", web.host_map, *GROUPS)
        done = run("crawl", "job.yaml", *words, cwd=tmp_path, timeout=240)
    assert run_json(tmp_path)["reason"] == "waiting", done.stderr
    assert not web.requests


def test_the_end_comes_by_time_alone(tmp_path):
    """A try that failed becomes due when the budget of its host is used up: no message says that nothing is left."""

    def breaks(request):
        if request.path == "/sitemap.xml":
            raise ConnectionResetError  # the connection ends without an answer
        return None if request.path == "/robots.txt" else page("/1", "/2", "/3", "/4")

    with serve(breaks) as web:
        done = crawl(web, "http://a.test/0", "--sitemap", "--host-pages", "4", *GROUPS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run_json(tmp_path)["reason"] == "done"
