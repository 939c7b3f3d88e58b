"""Stopped or killed at any point, a crawl goes on with --resume: the same rows, none twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import pytest

from tests.e2e.web import NEPHILA, crawl, page, rows, run_json, serve

PAGES = 300


def answer(request):
    """A web of 300 pages, each linking to three others."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    if number >= PAGES:
        return None
    return page(*[f"/{n}" for n in (2 * number + 1, 2 * number + 2, (number * 7 + 3) % PAGES) if n < PAGES])


def expect_whole(tmp_path):
    """Every page stored once, in the table and in the files, and run.json equals the table."""
    found = rows(tmp_path, "url, outcome")
    assert len(found) == PAGES
    assert {outcome for _, outcome in found} == {"stored"}
    assert run_json(tmp_path)["outcomes"] == {"stored": PAGES}
    lines = [json.loads(line) for line in (tmp_path / "o" / "pages.jsonl").read_text().splitlines()]
    assert len(lines) == len({line["url"] for line in lines}) == PAGES
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    targets = []
    for path in sorted((tmp_path / "o").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                assert record.reader.read()
                if not record.headers["WARC-Target-URI"].endswith("/robots.txt"):
                    targets.append(record.headers["WARC-Target-URI"])
    assert len(targets) == len(set(targets)) == PAGES


FORMATS = ("--format", "sqlite,jsonl,warc", "--quiet")
ONE = ("--workers", "0")


@pytest.mark.parametrize(
    "failpoint",
    [
        "sink_flush_before:2",
        pytest.param("sink_flush_after:2", marks=pytest.mark.smoke),
        "frontier_commit_before:40",
        pytest.param("frontier_commit_after:40", marks=pytest.mark.smoke),
        "snapshot:2",
    ],
)
def test_killed_at_a_failpoint(tmp_path, failpoint):
    """SIGKILL exactly there, then --resume. With workers the log is in a process that is started again."""
    small = {"NEPHILA_SCHEDULER__SEGMENT_BYTES": "20000", "NEPHILA_STORAGE__BATCH_ROWS": "32"}
    with serve(answer) as web:
        killed = crawl(web, "http://a.test/0", *ONE, *FORMATS, cwd=tmp_path, NEPHILA_FAILPOINT=failpoint, **small)
        assert killed.returncode == -signal.SIGKILL
        done = crawl(web, "--resume", *FORMATS, cwd=tmp_path, **small)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)


def test_killed_during_the_restore(tmp_path):
    """A crash while recovering from a crash changes nothing."""
    with serve(answer) as web:
        crawl(web, "http://a.test/0", *ONE, *FORMATS, cwd=tmp_path, NEPHILA_FAILPOINT="frontier_commit_after:50")
        for _ in range(2):
            killed = crawl(web, "--resume", *ONE, *FORMATS, cwd=tmp_path, NEPHILA_FAILPOINT="restore")
            assert killed.returncode == -signal.SIGKILL
        done = crawl(web, "--resume", *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)


def start(web, tmp_path, *words):
    """Begin a crawl that can be interrupted."""
    return subprocess.Popen(
        [*NEPHILA, "crawl", *words, "--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


@pytest.mark.smoke
def test_ctrl_c_drains_and_resume_goes_on(tmp_path):
    """Exit 130, the result so far is whole, the summary names --resume; then all pages."""
    reached = threading.Event()

    def watched(request):
        if request.path == "/100":
            reached.set()
        return answer(request)

    with serve(watched) as web:
        process = start(web, tmp_path, "http://a.test/0", "--format", "sqlite,jsonl,warc")
        assert reached.wait(30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        book = run_json(tmp_path)
        assert book["state"] == "stopped"
        assert book["left"] > 0
        assert book["outcomes"]["stored"] == len(rows(tmp_path))
        assert "nephila crawl --resume --out o" in out
        done = crawl(web, "--resume", *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)


def test_limits_stop_and_resume_lifts_them(tmp_path):
    """--max-pages is exact; with another limit on --resume the crawl goes on."""
    with serve(answer) as web:
        crawl(web, "http://a.test/0", "--max-pages", "20", *FORMATS, cwd=tmp_path)
        assert run_json(tmp_path)["outcomes"] == {"stored": 20}
        assert run_json(tmp_path)["left"] > 0
        crawl(web, "--resume", "--max-pages", "0", *FORMATS, cwd=tmp_path)
    expect_whole(tmp_path)


def test_an_exclusion_given_on_resume_applies_to_the_queue(tmp_path):
    """What is queued and now excluded ends as dropped(excluded)."""
    with serve(answer) as web:
        crawl(web, "http://a.test/0", "--max-pages", "20", cwd=tmp_path)
        crawl(web, "--resume", "--max-pages", "0", "--exclude", "/[0-9]*[13579]$", cwd=tmp_path)
    outcomes = {(outcome, reason) for _, outcome, reason in rows(tmp_path)}
    assert ("dropped", "excluded") in outcomes
    assert all(int(url.rsplit("/", 1)[1]) % 2 for url, outcome, _ in rows(tmp_path) if outcome == "dropped")


def test_resumed_in_another_mode_the_scope_waits_for_its_seeds(tmp_path):
    """Nothing that is queued is thrown out before the seeds have said where the new scope is anchored."""

    def deep(request):
        return page(*[f"/docs/{n}" for n in range(12)], "/other") if request.path == "/docs/" else page()

    with serve(deep) as web:
        first = crawl(web, "http://a.test/docs/", "--max-pages", "3", "--quiet", cwd=tmp_path)
        assert first.returncode == 0, first.stderr
        again = crawl(web, "--resume", "--scope", "prefix", "--max-pages", "0", "--quiet", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
    found = dict(rows(tmp_path, "url, outcome"))
    assert found.pop("http://a.test/other") == "dropped"
    assert len(found) == 13
    assert set(found.values()) == {"stored"}


def test_raw_pages_written_last_do_not_keep_a_crawl_open(tmp_path):
    """With little credit raw pages come behind their records; the crawl ends when the last is in its file."""
    little = {"NEPHILA_STORAGE__RAW_CREDITS": "1", "NEPHILA_STORAGE__FLUSH_INTERVAL_S": "0.02"}
    with serve(answer) as web:
        done = crawl(web, "http://a.test/0", *FORMATS, cwd=tmp_path, **little)
    assert done.returncode == 0, done.stderr
    expect_whole(tmp_path)
