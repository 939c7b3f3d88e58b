"""Bad input is one clear line that names the place and the remedy; nothing is touched."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.web import NEPHILA, Reply, crawl, page, rows, run, run_json, serve


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["crawl"], "nothing to crawl"),
        (["crawl", "ftp://a.test/"], "'ftp://a.test/' is not a URL that can be crawled"),
        (["crawl", "example"], "'example' is not a URL; did you mean http://example/ or http://example.com/?"),
        (["crawl", "http://"], "is not a URL that can be crawled"),
        (["crawl", "http://a.test:99999/"], "is not a URL that can be crawled"),
        (["crawl", "http://a.test/", "--scope", "site"], "--scope 'site' is none of host, domain, prefix, any"),
        (["crawl", "http://a.test/", "--include", "("], "include '(' is not a valid RE2 expression"),
        (["crawl", "http://a.test/", "--format", "xml"], "--format 'xml' is none of sqlite"),
        (["crawl", "http://a.test/", "--header", "nonsense"], "--header 'nonsense'"),
        (["crawl", "http://a.test/", "--cookies", "nowhere.txt"], "nowhere.txt: No such file"),
        (["crawl", "http://a.test/", "--host-map", "nonsense"], "nonsense"),
        (["crawl", "http://a.test/", "--max-pages", "many"], "--max-pages"),
        (["crawl", "http://a.test/", "--max-pages", "9" * 30], "--max-pages"),
        (["crawl", "http://a.test/", "--user-agent", "a\r\nb: c"], "control characters"),
        (["crawl", "http://a.test/", "--max-pagse", "3"], "--max-pages"),
        (["crawl", "--seeds", "nowhere.txt"], "nowhere.txt"),
        (["crawl", "--resume", "--out", "nowhere"], "nowhere holds no crawl"),
        (["crawl", "http://a.test/", "--workers", "-1"], "--workers"),
        (["crawl", "http://a.test/", "--out", "-"], "a result is a directory, not a stream"),
        (["up", "--out", "-"], "a result is a directory, not a stream"),
        (["crawl", "http://a.test/", "-o", "x"], "has no option -o: --out DIR names its directory"),
        (["pages", "-o", "x"], "has no option -o: --out DIR names its directory"),
        (["extract", "http://a.test/", "-o", "x"], "has no option -o: it prints; redirect that with > FILE"),
        (["crawl", "http://a.test/", "--format", "markdwon"], "did you mean 'markdown'?"),
        (["export", "--format", "markdwon"], "did you mean 'markdown'?"),
        (["crawl", "nowhere.txt"], "'nowhere.txt' is neither a URL nor a file that exists"),
        (["crawl", "./nowhere"], "'./nowhere' is neither a URL nor a file that exists"),
        (["crawl", "-"], "--seeds -"),
        (["rules", "apply"], "name a directory, as an argument or by --from"),
    ],
    ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "",
)
def test_usage_errors(tmp_path, words, says):
    """Exit 2, one line on standard error, no directory made."""
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_local_file_as_url(tmp_path):
    """A file name instead of a URL: the line says what can be done with files."""
    (tmp_path / "page.html").write_text("<p>x")
    done = run("crawl", "page.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "nephila extract page.html" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["crawl", "list.csv"], "--seeds list.csv"),
        (["crawl", "folder"], "folder is a directory, not a URL"),
        (["crawl", "./folder"], "./folder is a directory, not a URL"),
        (["crawl", "old"], "nephila crawl --resume --out old"),
        (["crawl", "--seeds", "job.yaml"], "a job is an argument: nephila crawl job.yaml"),
        (["crawl", "job.yaml"], "job.yaml:2:1: this line is indented by a tab; YAML takes spaces only"),
        (["crawl", "http://a.test/", "--out", "list.csv"], "list.csv is a file; a result is a directory"),
        (["up", "--out", "list.csv"], "list.csv is a file; a result is a directory"),
        (["explain", "http://a.test/", "--out", "list.csv"], "list.csv is a file; a result is a directory"),
    ],
    ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "",
)
def test_a_file_where_something_else_was_meant(tmp_path, words, says):
    """The line names what the file is, and the command for it."""
    (tmp_path / "list.csv").write_text("http://a.test/\n")
    (tmp_path / "job.yaml").write_text("kind: CrawlJob\n\tmetadata: {name: a}\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_host_may_be_called_as_a_directory_here(tmp_path):
    """The second crawl of a.test beside the directory a.test of the first one."""
    (tmp_path / "a.test").mkdir()
    (tmp_path / "a.test" / "run.json").write_text("{}")
    with serve(lambda r: page() if r.path == "/" else None) as web:
        assert crawl(web, "a.test", cwd=tmp_path).returncode == 0


def test_a_job_as_json_is_a_job(tmp_path):
    spec = {"seeds": ["http://a.test/"], "politeness": {"delay": "0"}}
    job = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "a"}, "spec": spec}
    (tmp_path / "job.json").write_text(json.dumps(job))
    with serve(lambda r: page() if r.path == "/" else None) as web:
        done = crawl(web, "job.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [r[0] for r in rows(tmp_path)] == ["http://a.test/"]


@pytest.mark.parametrize(
    ("answers", "options", "says"),
    [
        ({}, (), "no page was stored: 1 failed(http_404); see nephila explain http://a.test/ --out o"),
        ({"/robots.txt": "User-agent: *\nDisallow: /"}, (), "no page was stored: 1 denied(robots)"),
    ],
)
def test_a_quiet_crawl_that_stored_nothing_says_why_in_one_line(tmp_path, answers, options, says):
    def answer(request):
        text = answers.get(request.path)
        return Reply(text, type="text/plain") if text else None

    with serve(answer) as web:
        done = crawl(web, "http://a.test/", "--quiet", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_quiet_crawl_of_a_private_address_names_the_option(tmp_path):
    done = run("crawl", "http://127.0.0.1:9/", "--quiet", "--out", "o", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "nephila: no page was stored: 1 denied(address); --allow-private opens private addresses\n"


def test_seeds_from_a_file_and_from_standard_input(tmp_path):
    """One URL a line, comments and bad lines skipped, bad ones named with their line."""
    (tmp_path / "seeds.txt").write_bytes(
        b"\xef\xbb\xbfhttp://a.test/\n# comment\n\nnot a url\n\xff\xfe\x00junk\nb.test\n"
    )
    with serve(lambda r: page() if r.path == "/" else None) as web:
        done = crawl(web, "--seeds", "seeds.txt", cwd=tmp_path)
    assert [r[0] for r in rows(tmp_path)] == ["http://a.test/", "http://b.test/"]
    assert "seeds.txt, line 4" in done.stdout
    assert "seeds.txt, line 5: not UTF-8 text" in done.stdout


def test_a_seed_file_of_junk(tmp_path):
    """Not one URL in it: exit 2, and no directory is left behind."""
    (tmp_path / "junk").write_bytes(bytes(range(256)) * 20)
    done = run("crawl", "--seeds", "junk", cwd=tmp_path)
    assert done.returncode == 2
    assert "none of its" in done.stderr
    assert not (tmp_path / "crawl-out").exists()


@pytest.mark.smoke
def test_a_directory_with_a_crawl_is_not_overwritten(tmp_path):
    """Exit 2 naming --resume and --out; the rows stay."""
    with serve(lambda r: page() if r.path == "/" else None) as web:
        crawl(web, "http://a.test/", cwd=tmp_path)
        before = rows(tmp_path)
        again = crawl(web, "http://b.test/", cwd=tmp_path)
        other = crawl(web, "http://b.test/", "--resume", cwd=tmp_path)
    assert again.returncode == other.returncode == 2
    assert "--resume" in again.stderr
    assert "--out" in again.stderr
    assert "not of http://b.test/" in other.stderr
    assert rows(tmp_path) == before


def test_resuming_a_finished_crawl_does_nothing(tmp_path):
    """Exit 0, no request, the counts stay."""
    with serve(lambda r: page() if r.path == "/" else None) as web:
        crawl(web, "http://a.test/", cwd=tmp_path)
        seen = len(web.requests)
        done = crawl(web, "--resume", cwd=tmp_path)
        assert len(web.requests) == seen
    assert done.returncode == 0
    assert run_json(tmp_path)["outcomes"] == {"stored": 1}


def test_an_unwritable_place(tmp_path):
    """A file where the directory should be: one line, exit 1."""
    (tmp_path / "o").write_text("I am a file")
    done = run("crawl", "http://a.test/", "--out", "o", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert "o" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "o").read_text() == "I am a file"


@pytest.mark.smoke
def test_two_programs_in_one_directory(tmp_path):
    """The second one is refused with the first one's process id."""
    import threading

    hold, asked = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        hold.wait(30)
        return page()

    with serve(answer) as web:
        words = ["crawl", "http://a.test/", "--out", "o", "--allow-private", "--host-map", web.host_map]
        first = subprocess.Popen([*NEPHILA, *words, "--quiet"], cwd=tmp_path)
        try:
            assert asked.wait(30)
            second = run(*words[:1], "--resume", "--out", "o", cwd=tmp_path)
            assert second.returncode == 1
            assert f"in use by another nephila (process {first.pid})" in second.stderr
        finally:
            hold.set()
            first.terminate()
            first.wait(30)


def test_a_database_of_another_version(tmp_path):
    """Refused in one line; the file is left alone."""
    import sqlite3

    with serve(lambda r: page() if r.path == "/" else None) as web:
        crawl(web, "http://a.test/", cwd=tmp_path)
        db = sqlite3.connect(tmp_path / "o" / "nephila.db")
        db.execute("update meta set value = '99' where name = 'schema_version'")
        db.commit()
        db.close()
        done = crawl(web, "--resume", cwd=tmp_path)
    assert done.returncode == 1
    assert "99" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_run_json(tmp_path):
    """Named, with what to do."""
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "run.json").write_text("{")
    done = run("crawl", "--resume", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert "run.json is damaged" in done.stderr


def test_rows_that_are_gone_are_told(tmp_path):
    """The database was taken away after the crawl: refused, and none is made in its place."""
    with serve(lambda r: page() if r.path == "/" else None) as web:
        crawl(web, "http://a.test/", cwd=tmp_path)
        for path in (tmp_path / "o").glob("nephila.db*"):
            path.unlink()
        done = crawl(web, "--resume", "--quiet", cwd=tmp_path)
    assert done.returncode == 1
    assert "o/nephila.db has 0 rows of job 'crawl', and 1 of its URLs have ended" in done.stderr
    assert not (tmp_path / "o" / "nephila.db").exists()
    assert run_json(tmp_path)["outcomes"] == {"stored": 1}


def test_a_seed_file_with_lines_without_end(tmp_path):
    """Ten megabytes without a line end, of text or of zeros, are one bad line; the URLs around them are taken."""
    with (tmp_path / "seeds").open("wb") as file:
        for junk in (b"a" * 10_000_000, bytes(10_000_000), b"\xff\xfe" * 5_000_000):
            file.write(b"http://a.test/%d\n" % len(junk[:1]) + junk + b"\n")
        file.write(b"http://b.test/\n")
    with serve(lambda r: page()) as web:
        done = crawl(web, "--seeds", "seeds", cwd=tmp_path)
    assert done.returncode == 0
    assert [r[0] for r in rows(tmp_path)] == ["http://a.test/1", "http://b.test/"]
    assert "line 2" in done.stdout
    assert len(done.stdout) < 5_000
    assert "Traceback" not in done.stderr
