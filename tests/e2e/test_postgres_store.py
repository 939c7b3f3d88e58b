"""A crawl whose rows are in PostgreSQL: the same result as in nephila.db, whatever is killed on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import psycopg
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.e2e.web import NEPHILA, crawl, page, run, run_json, serve

PAGES = 200
ENV = "NEPHILA_STORAGE__STORE"


def answer(request):
    """A web of 200 pages, each linking to two others."""
    number = int(request.path[1:]) if request.path[1:].isdecimal() else PAGES
    if number >= PAGES:
        return None
    return page(*[f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES], title=f"Page {number}")


def table(store, query):
    """The answer of the database."""
    with psycopg.connect(store) as connection:
        return connection.execute(query).fetchall()


def expect_whole(store, tmp_path):
    """Every page once, in the tables and in the files; run.json equals the table."""
    assert table(store, "SELECT outcome, count(*), count(DISTINCT url) FROM pages GROUP BY 1") == [
        ("stored", PAGES, PAGES)
    ]
    assert run_json(tmp_path)["outcomes"] == {"stored": PAGES}
    lines = [json.loads(line)["url"] for line in (tmp_path / "o" / "pages.jsonl").read_text().splitlines()]
    targets = []
    for path in sorted((tmp_path / "o").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                assert record.reader.read()
                if not record.headers["WARC-Target-URI"].endswith("/robots.txt"):
                    targets.append(record.headers["WARC-Target-URI"])
    assert len(lines) == len(set(lines)) == len(targets) == len(set(targets)) == PAGES


@pytest.mark.smoke
def test_a_crawl_into_a_database_its_export_and_explain(tmp_path, store):
    """No nephila.db, no password in run.json or on the terminal; export and explain find the rows by DIR and by URL."""
    with serve(answer) as web:
        done = crawl(web, "http://a.test/0", "--store", store, "--max-pages", "20", "--links", cwd=tmp_path)
        again = run("crawl", "http://a.test/3", "--out", "p", "--store", store, "--allow-private", "--delay", "0",
                    "--host-map", web.host_map, "--max-pages", "5", "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == again.returncode == 0, done.stderr + again.stderr
    assert json.loads(again.stdout)["rows"] == 5
    assert "not-a-secret" not in done.stdout + done.stderr + (tmp_path / "o" / "run.json").read_text()
    assert not (tmp_path / "o" / "nephila.db").exists()
    book = run_json(tmp_path)
    assert table(store, f"SELECT count(*) FROM pages WHERE job = '{book['uid']}'") == [(20,)]
    assert table(store, "SELECT count(*) FROM links") > [(0,)]
    assert f"job {book['uid']}" in done.stdout
    exported = run("export", "o", "--format", "jsonl", cwd=tmp_path, **{ENV: store})
    assert len(exported.stdout.splitlines()) == 20, exported.stderr
    changes = run("export", store, "--format", "csv", "--changes", "--job", book["uid"], cwd=tmp_path)
    assert changes.stdout.count(",new,") == 20
    assert len(run("export", store, "--format", "jsonl", cwd=tmp_path).stdout.splitlines()) == 25
    result = run("explain", "http://a.test/1", "--out", "o", "--json", cwd=tmp_path, **{ENV: store})
    assert json.loads(result.stdout)["row"]["title"] == "Page 1", result.stderr
    assert "PGPASSWORD" in run("export", "o", "--format", "jsonl", cwd=tmp_path).stderr


@pytest.mark.parametrize("failpoint", ["sink_flush_before:2", "sink_flush_after:2", "frontier_commit_after:40"])
def test_killed_at_a_failpoint(tmp_path, store, failpoint):
    """SIGKILL exactly there, then --resume without naming the store but for its password."""
    small = {"NEPHILA_STORAGE__BATCH_ROWS": "16", ENV: store}
    formats = ("--format", "postgres,jsonl,warc", "--quiet")
    with serve(answer) as web:
        killed = crawl(
            web, "http://a.test/0", *formats, "--workers", "0", cwd=tmp_path, NEPHILA_FAILPOINT=failpoint, **small
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        done = crawl(web, "--resume", *formats, cwd=tmp_path, **small)
    assert done.returncode == 0, done.stderr
    expect_whole(store, tmp_path)
    assert table(store, "SELECT count(*), count(DISTINCT url_key) FROM fetches") == [(PAGES, PAGES)]


def test_a_server_that_is_killed_during_a_crawl(tmp_path, mortal):
    """kill -9 of the database in the middle, back once the crawl has noticed: it waits, and ends by itself with all."""
    reached, dead = threading.Event(), threading.Event()

    def watched(request):
        if request.path == "/60":
            reached.set()
            assert dead.wait(30)
        return answer(request)

    with serve(watched) as web:
        process = subprocess.Popen(
            [
                *(*NEPHILA, "crawl", "http://a.test/0", "--out", "o", "--allow-private", "--host-map", web.host_map),
                *("--delay", "0", "--format", "jsonl,warc", "--quiet"),
            ],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, ENV: mortal.dsn(), "NEPHILA_STORAGE__BATCH_ROWS": "16"},
        )
        assert process.stderr is not None
        assert reached.wait(30)
        mortal.kill()
        dead.set()
        assert "retrying" in process.stderr.readline()
        mortal.start()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "the database is back" in said
    expect_whole(mortal.dsn(), tmp_path)
    assert table(mortal.dsn(), "SELECT count(*), count(DISTINCT url_key) FROM fetches") == [(PAGES, PAGES)]


def test_a_server_that_does_not_come_back(tmp_path, mortal):
    """Exit 1 with one line that names --resume; run.json says so too; with the server back the rest is fetched."""

    def watched(request):
        if request.path == "/60":
            mortal.kill()
        return answer(request)

    short = {ENV: mortal.dsn(), "NEPHILA_STORAGE__BATCH_ROWS": "16", "NEPHILA_STORAGE__PATIENCE_S": "0.5"}
    with serve(watched) as web:
        failed = crawl(web, "http://a.test/0", "--format", "jsonl,warc", "--quiet", cwd=tmp_path, **short)
    assert failed.returncode == 1
    lines = failed.stderr.splitlines()
    assert lines[-1].startswith("nephila: ")
    assert "run again with --resume" in lines[-1]
    assert "Traceback" not in failed.stderr
    assert (run_json(tmp_path)["state"], run_json(tmp_path)["reason"]) == ("stopped", "failed")
    mortal.start()
    with serve(answer) as web:
        done = crawl(web, "--resume", "--quiet", cwd=tmp_path, **short)
    assert done.returncode == 0, done.stderr
    expect_whole(mortal.dsn(), tmp_path)


def test_what_cannot_be_is_one_line(tmp_path, store, postgres):
    """Exit 2 for a wrong option, 1 for a server; nothing of a password."""
    refused = [
        (["crawl", "http://a.test/", "--format", "postgres"], 2, "--store, or NEPHILA_STORAGE__STORE"),
        (["crawl", "http://a.test/", "--store", "db.sqlite"], 2, "postgresql://user@host:5432/database"),
        (["crawl", "http://a.test/", "--store", store, "--format", "parquet"], 2, "nephila export --format parquet"),
        (["crawl", "http://a.test/", "--store", postgres.dsn(port=1)], 1, "is the server running"),
        (["crawl", "http://a.test/", "--store", store.replace("not-a", "no")], 1, "password authentication failed"),
        (["export", postgres.dsn("nowhere"), "--format", "csv"], 1, "createdb"),
        (["export", store, "--format", "csv"], 1, "no crawl has written to it yet"),
    ]
    for words, code, text in refused:
        ended = run(*words, *(["--out", "new"] if words[0] == "crawl" else []), cwd=tmp_path)
        assert (ended.returncode, ended.stderr.count("\n")) == (code, 1), ended.stderr
        assert text in ended.stderr
        assert "secret" not in ended.stdout + ended.stderr


def test_a_job_by_a_name_that_has_rows_is_refused(tmp_path, store):
    """Another directory's fetches would be taken for those that are durable."""
    (tmp_path / "job.yaml").write_text(
        "apiVersion: nephila.dev/v1\nkind: CrawlJob\nmetadata: {name: news}\n"
        "spec: {seeds: ['http://a.test/0'], scope: {maxPages: 5},"
        " sinks: [{type: postgres, secretRef: db}]}\n"
    )
    with serve(answer) as web:
        first = crawl(web, "job.yaml", cwd=tmp_path, **{ENV: store})
        assert first.returncode == 0, first.stderr
        (tmp_path / "o").rename(tmp_path / "first")
        second = crawl(web, "job.yaml", cwd=tmp_path, **{ENV: store})
        assert second.returncode == 2
        assert "has rows of a job 'news' already" in second.stderr
        (tmp_path / "first").rename(tmp_path / "o")
        third = crawl(web, "--resume", "--max-pages", "8", cwd=tmp_path, **{ENV: store})
        assert third.returncode == 0, third.stderr
    assert table(store, "SELECT count(*) FROM pages WHERE job = 'news'") == [(8,)]
