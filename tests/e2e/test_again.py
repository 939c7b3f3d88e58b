"""A crawl that is started again in its directory: anew, with other options, for what failed, for what is due."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.e2e import web as little
from tests.e2e.web import Reply, page, rows, run, run_json, serve


def crawl(web, *words, cwd, **env):
    """In one process, which starts sooner."""
    return little.crawl(web, *words, "--workers", "0", cwd=cwd, **env)


def small(request):
    """Three pages, one of them forbidden; a link that is broken."""
    return {
        "/robots.txt": Reply("User-agent: *\nDisallow: /secret", type="text/plain"),
        "/": page("/a", "/secret", "/gone", "http://b.test/"),
        "/a": page("/deep", title="A"),
        "/deep": page("/deeper", title="Deep"),
        "/deeper": page(title="Deeper"),
        "/secret": page(title="Secret"),
    }.get(request.path)


def outcomes(cwd):
    """URL → outcome(reason)."""
    return {url: f"{outcome}({reason})" if reason else outcome for url, outcome, reason in rows(cwd)}


def test_a_crawl_that_stored_nothing_is_begun_anew(tmp_path):
    with serve(small) as web:
        wrong = crawl(web, "http://a.test/gone", cwd=tmp_path)
        assert wrong.returncode == 3, wrong.stderr
        done = crawl(web, "http://a.test/a", "--max-depth", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "stored nothing" in done.stderr
    assert outcomes(tmp_path) == {"http://a.test/a": "stored"}
    assert run_json(tmp_path)["runs"] == 1


def test_a_result_is_never_replaced_unasked(tmp_path):
    with serve(small) as web:
        assert crawl(web, "http://a.test/a", cwd=tmp_path).returncode == 0
        (tmp_path / "o" / "mine.txt").write_text("mine")
        refused = crawl(web, "http://a.test/", cwd=tmp_path)
        assert refused.returncode == 2
        for option in ("--resume", "--refresh", "--fresh", "--out"):
            assert option in refused.stderr
        fresh = crawl(web, "http://a.test/deep", "--max-depth", "0", "--fresh", cwd=tmp_path)
    assert fresh.returncode == 0, fresh.stderr
    assert outcomes(tmp_path) == {"http://a.test/deep": "stored"}
    (old,) = (tmp_path / "o" / "old").iterdir()
    assert str(old.name) in fresh.stderr
    with sqlite3.connect(old / "nephila.db") as db:
        assert db.execute("select count(*) from pages where outcome = 'stored'").fetchone() == (3,)
    assert (tmp_path / "o" / "mine.txt").exists()
    exported = run("export", str(old), "--format", "jsonl", cwd=tmp_path)
    assert len(exported.stdout.splitlines()) == 3
    assert crawl(web, "--fresh", "--resume", cwd=tmp_path).returncode == 2


def test_a_fresh_crawl_leaves_no_file_of_the_old_one(tmp_path):
    """Every output, exports and the report; no reader finds the old bodies."""
    formats = ("--format", "jsonl,items,warc,raw,markdown,chunks,parquet")
    rule = {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": "r"}}
    rule["spec"] = {"match": {"url": "."}, "fields": {"heading": {"css": "h1"}}}
    (tmp_path / "rule.yaml").write_text(json.dumps(rule))
    with serve(small) as web:
        assert crawl(web, "http://a.test/", *formats, "--rules", "rule.yaml", cwd=tmp_path).returncode == 0
        for words in (("report", "o"), *(("export", "o", "--format", name) for name in ("wacz", "parquet"))):
            assert run(*words, cwd=tmp_path).returncode == 0
        written = {path.name for path in (tmp_path / "o").iterdir()} - {".lock"}
        fresh = crawl(web, "http://a.test/deep", "--max-depth", "0", "--fresh", cwd=tmp_path)
        assert fresh.returncode == 0, fresh.stderr
    (old,) = (tmp_path / "o" / "old").iterdir()
    assert {path.name for path in old.iterdir()} == written
    left = {path.name for path in (tmp_path / "o").iterdir()}
    assert left - {"nephila.db-wal", "nephila.db-shm"} == {".lock", "frontier", "nephila.db", "old", "run.json"}
    done = run("export", "o", "--format", "markdown", "-o", "md", cwd=tmp_path)
    assert "1 rows written" in done.stderr
    assert "plain text" not in done.stderr
    assert len(list((tmp_path / "md").rglob("*.md"))) == 1
    assert "kept no pages" in run("rules", "apply", "--from", "o", "--rules", "rule.yaml", cwd=tmp_path).stderr


def test_a_lifted_denial_brings_urls_back(tmp_path):
    """Private addresses and robots.txt; each URL has one row at any time."""
    with serve(small) as web:
        denied = run("crawl", f"http://127.0.0.1:{web.port}/", "--out", "o", "--delay", "0", cwd=tmp_path)
        assert denied.returncode == 3
        host = f"http://127.0.0.1:{web.port}"
        assert outcomes(tmp_path) == {f"{host}/": "denied(address)"}
        done = run("crawl", "--resume", "--allow-private", "--out", "o", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert outcomes(tmp_path) == {
            f"{host}/": "stored",
            f"{host}/a": "stored",
            f"{host}/deep": "stored",
            f"{host}/deeper": "stored",
            f"{host}/gone": "failed(http_404)",
            f"{host}/secret": "denied(robots)",
        }
        asked = len(web.requests)
        done = run("crawl", "--resume", "--ignore-robots", "--out", "o", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert outcomes(tmp_path)[f"{host}/secret"] == "stored"
        assert web.paths()[asked:] == ["/secret"]
    assert run_json(tmp_path)["refetch"] == []
    assert run_json(tmp_path)["rows"] == 6


def test_what_failed_gets_new_tries(tmp_path):
    well = False

    def answer(request):
        if request.path in ("/a", "/robots.txt") and not well and request.host == "down.test":
            return Reply("no", 404 if request.path == "/robots.txt" else 500)
        return small(request)

    quick = {"NEPHILA_SCHEDULER__RETRY_DELAY_S": "0"}
    with serve(answer) as web:
        first = crawl(web, "http://down.test/a", "http://a.test/a", cwd=tmp_path, **quick)
        assert first.returncode == 0, first.stderr
        assert outcomes(tmp_path)["http://down.test/a"] == "failed(http_500)"
        assert crawl(web, "--resume", cwd=tmp_path, **quick).returncode == 0
        asked = len(web.requests)
        assert web.paths("down.test").count("/a") == 3
        well = True
        retried = crawl(web, "--retry-failed", cwd=tmp_path, **quick)
    assert retried.returncode == 0, retried.stderr
    assert outcomes(tmp_path)["http://down.test/a"] == "stored"
    assert {request.host for request in web.requests[asked:]} == {"down.test"}
    with sqlite3.connect(tmp_path / "o" / "nephila.db") as db:
        found = db.execute("select outcome, fetch_no from fetches where reason like 'http%' or fetch_no > 1").fetchall()
    assert found == [("failed", 1), ("stored", 2)]
    assert run_json(tmp_path)["outcomes"] == {"stored": 6}


@pytest.mark.parametrize("links", [True, False])
def test_a_wider_scope_takes_up_what_was_out_of_it(tmp_path, links):
    """From the table of links, or from the links that the scheduler holds: the result is the same."""
    keep = ["--links"] if links else []
    with serve(small) as web:
        assert crawl(web, "http://a.test/", "--max-depth", "1", *keep, cwd=tmp_path).returncode == 0
        assert len(rows(tmp_path)) == 4
        deeper = crawl(web, "--resume", "--max-depth", "2", cwd=tmp_path)
        assert deeper.returncode == 0, deeper.stderr
        assert outcomes(tmp_path).keys() == {
            f"http://a.test{path}" for path in ("/", "/a", "/secret", "/gone", "/deep")
        }
        wider = crawl(web, "--resume", "--scope", "any", "--max-depth", "3", cwd=tmp_path)
        assert wider.returncode == 0, wider.stderr
    found = outcomes(tmp_path)
    assert found["http://a.test/deep"] == found["http://a.test/deeper"] == found["http://b.test/"] == "stored"


def test_what_was_excluded_comes_back(tmp_path):
    with serve(small) as web:
        crawl(web, "http://a.test/", "--max-pages", "1", cwd=tmp_path)
        crawl(web, "--resume", "--max-pages", "0", "--exclude", "/a$", cwd=tmp_path)
        assert outcomes(tmp_path)["http://a.test/a"] == "dropped(excluded)"
        done = crawl(web, "--resume", "--exclude", "/nothing", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert outcomes(tmp_path)["http://a.test/a"] == outcomes(tmp_path)["http://a.test/deep"] == "stored"


def test_refresh_says_what_is_new_changed_and_gone(tmp_path):
    """Conditional requests; once per page; nothing in quiet runs but what has changed."""
    later = False

    def answer(request):
        if request.path in ("/robots.txt", "/none"):
            return None
        if request.path == "/":
            return page("/same", "/other", "/gone", *(["/new"] if later else []), title="Front")
        if request.path == "/gone" and later:
            return None
        if request.path == "/same":
            if request.headers.get("If-None-Match") == '"1"':
                return Reply(status=304)
            return Reply("<title>Same</title><p>Same words.", headers={"ETag": '"1"'})
        return page(title=f"Other {later}")

    with serve(answer) as web:
        assert crawl(web, "http://a.test/", "--max-depth", "1", cwd=tmp_path).returncode == 0
        quiet = crawl(web, "--refresh", "--quiet", cwd=tmp_path)
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
        later = True
        asked = len(web.requests)
        done = crawl(web, "--refresh", "--quiet", cwd=tmp_path)
        assert sorted(web.paths()[asked:]) == ["/", "/gone", "/new", "/other", "/same"]
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "+ http://a.test/new  Other True",
            "~ http://a.test/  Front",
            "~ http://a.test/other  Other True",
            "- http://a.test/gone  Other False",
        ]
        found = json.loads(crawl(web, "--refresh", "--json", cwd=tmp_path).stdout)
        assert (found["new"], found["changed"], found["gone"]) == ([], [], [])
    down = run("crawl", "--refresh", "--out", "o", "--allow-private", "--delay", "0", cwd=tmp_path)
    assert down.returncode == 3
    assert len(rows(tmp_path)) == 5


def test_refresh_of_nothing_is_a_crawl(tmp_path):
    """One line in a crontab does for the first day as well."""
    with serve(small) as web:
        for _ in range(2):
            done = crawl(web, "http://a.test/a", "--refresh", "--quiet", cwd=tmp_path)
            assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert len(rows(tmp_path)) == 3


def test_refresh_takes_what_its_policy_says_is_due(tmp_path):
    """A job's file says how often; nothing is fetched twice in one run, however short the interval."""
    job = {
        "apiVersion": "nephila.dev/v1",
        "kind": "CrawlJob",
        "metadata": {"name": "j"},
        "spec": {"seeds": ["http://a.test/a"], "politeness": {"delay": "0"}, "recrawl": {"every": "1h"}},
    }
    (tmp_path / "job.yaml").write_text(json.dumps(job))

    def go(web, *words):
        done = run(
            *("crawl", *words, "--out", "o", "--allow-private", "--host-map", web.host_map, "--quiet"), cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done

    with serve(small) as web:
        go(web, "job.yaml")
        asked = len(web.requests)
        go(web, "--refresh")
        assert web.paths()[asked:] == []
        job["spec"]["recrawl"]["every"] = "1s"
        (tmp_path / "job.yaml").write_text(json.dumps(job))
        go(web, "job.yaml", "--refresh")
        assert sorted(set(web.paths()[asked:])) == sorted(web.paths()[asked:])


def test_diff_shows_the_last_two_texts(tmp_path):
    text = ["One.\x1b[31m", "Two.", "Three."]

    def answer(request):
        body = "".join(f"<p>{line}" for line in text)
        return None if request.path == "/robots.txt" else Reply(f"<title>T</title>{body}")

    with serve(answer) as web:
        crawl(web, "http://a.test/", cwd=tmp_path)
        once = run("diff", "http://a.test/", "--out", "o", cwd=tmp_path)
        assert (once.returncode, once.stdout) == (0, "")
        assert "one version" in once.stderr
        for word in ("Zwei.", "Deux."):
            text[1] = word
            crawl(web, "--refresh", "--quiet", cwd=tmp_path)
        crawl(web, "--refresh", "--quiet", cwd=tmp_path)
    found = run("diff", "a.test", "--out", "o", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert [line for line in found.stdout.splitlines() if line[:3] not in ("---", "+++") and line[:1] in "+-"] == [
        "-Zwei.",
        "+Deux.",
    ]
    assert "\x1b" not in found.stdout
    unknown = run("diff", "http://a.test/none", "--out", "o", cwd=tmp_path)
    assert unknown.returncode == 1
    assert "Traceback" not in unknown.stderr


def test_a_refresh_that_is_killed_is_gone_on_with(tmp_path):
    """At its first commits and in the middle of its fetches: each page is fetched again, none is left open."""
    with serve(small) as web:
        assert crawl(web, "http://a.test/", cwd=tmp_path).returncode == 0
        for point in ("frontier_commit_before:2", "sink_flush_after:1"):
            killed = crawl(web, "--refresh", cwd=tmp_path, NEPHILA_FAILPOINT=point)
            assert killed.returncode == -9
            done = crawl(web, "--resume", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert run_json(tmp_path)["refetch"] == []
            assert run_json(tmp_path)["left"] == 0
    assert {count for (count,) in rows(tmp_path, "fetch_no")} == {3}
    assert run_json(tmp_path)["outcomes"] == {"stored": 4, "failed": 1, "denied": 1}
    result = run("explain", "http://a.test/a", "--out", "o", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "stored" in result.stdout
    assert "Traceback" not in result.stderr


def test_a_recrawl_that_makes_no_sense_is_told_before_anything_is_made(tmp_path):
    spec = {"seeds": ["http://a.test/"], "recrawl": {"min": "2d", "max": "1d"}}
    job = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "j"}, "spec": spec}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    done = run("crawl", "job.yaml", "--out", "o", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert not (tmp_path / "o").exists()


def test_a_report_of_a_crawl_says_which_pages_were_slow(tmp_path):
    with serve(small) as web:
        crawl(web, "http://a.test/", "--links", cwd=tmp_path)
    assert run("report", "o", cwd=tmp_path).returncode == 0
    text = (tmp_path / "o" / "report.html").read_text()
    for words in ("Slowest pages", "Largest pages", "404 Not Found", ">on <a"):
        assert words in text
