"""`nephila forget` on a crawl that has ended and on a program that runs."""

from __future__ import annotations

import json

from tests.e2e.program import QUICK, Program, job
from tests.e2e.web import crawl, page, rows, run, run_json, serve


def answer(request):
    """Three pages."""
    return page("/1", "/2") if request.path == "/" else page() if request.path in ("/1", "/2") else None


def test_urls_of_a_crawl_that_has_ended_are_fetched_again_when_they_are_found_again(tmp_path):
    with serve(answer) as web:
        assert crawl(web, "http://a.test/", cwd=tmp_path).returncode == 0
        (tmp_path / "seeds").write_text("http://a.test/1\nhttp://a.test/2\n")
        done = run("forget", "http://a.test/1", "http://a.test/never", "--out", "o", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "crawl: 1 forgotten\n")
        assert done.stderr == "nephila: 1 are not known to the job; see nephila explain URL\n"
        before = len(web.paths())
        again = crawl(web, "--resume", "--seeds", "seeds", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        assert [path for path in web.paths()[before:] if path != "/robots.txt"] == ["/1"]
    assert rows(tmp_path, "url, outcome, fetch_no") == [
        ("http://a.test/", "stored", 1),
        ("http://a.test/1", "stored", 2),
        ("http://a.test/2", "stored", 1),
    ]
    assert run_json(tmp_path)["outcomes"] == {"stored": 3}


def test_an_expression_is_looked_up_in_the_rows_of_a_program_that_runs(tmp_path):
    with serve(answer) as web:
        program = Program(tmp_path, "--host-map", web.host_map, **QUICK)
        program.apply(job("a", seeds=["http://a.test/"]) + job("b", seeds=["http://b.test/"]))
        program.until(lambda jobs: all(one["stored"] == 3 for one in jobs.values()))
        several = run("forget", "--match", "/[12]$", "--out", "o", cwd=tmp_path)
        assert (several.returncode, several.stderr) == (2, "nephila: name one of the jobs by --job: a, b\n")
        done = run("forget", "--match", "/[12]$", "--job", "a", "--json", "--out", "o", cwd=tmp_path)
        assert json.loads(done.stdout) == {"name": "a", "forgotten": 2, "open": 0, "unknown": 0}
        program.jobs("seeds", "a", "http://a.test/2")
        program.until(
            lambda jobs: jobs["a"]["stored"] == 2 and not jobs["a"]["in_flight"] and web.paths().count("/2") == 3
        )
        assert program.end()[0] == 0
    assert web.paths("a.test").count("/2") == 2
    assert web.paths("a.test").count("/1") == web.paths("b.test").count("/1") == 1


def test_a_directory_without_a_crawl_is_refused(tmp_path):
    done = run("forget", "http://a.test/", "--out", "o", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "nephila: o holds no crawl; name its directory with --out\n")
