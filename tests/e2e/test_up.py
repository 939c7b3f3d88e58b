"""`nephila up` as a user runs it: jobs applied, changed and deleted while it runs, all of them there after a kill."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading

import pytest

from tests.e2e.program import job
from tests.e2e.web import NEPHILA, Reply, page, run, run_json, serve

PAGES = 120


def answer(request):
    """A web of 120 pages on every host, each linking to two others."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    return page(*[f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES]) if number < PAGES else None


def rows(tmp_path, query="select job, count(*) from pages group by job"):
    """What the database says."""
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        return dict(db.execute(query).fetchall())


def test_two_jobs_to_their_end(tmp_path, up):
    """Applied, listed, fetched; run.json has the counts of the table; SIGTERM ends it with 0."""
    with serve(answer) as web:
        program = up(web)
        assert program.ready == "0 jobs in o; jobs are taken at o/control.sock\n"
        assert program.apply(job("a") + job("b", scope={"maxPages": 30})).stdout == (
            "a: created (generation 1)\nb: created (generation 1)\n"
        )
        found = program.until(lambda jobs: jobs["a"]["state"] == "idle" and jobs["b"]["state"] == "limit")
        assert (found["a"]["stored"], found["b"]["stored"]) == (PAGES, 30)
        asked = len(web.requests)
        assert program.apply(job("a") + job("b", scope={"maxPages": 30})).stdout == (
            "a: unchanged (generation 1)\nb: unchanged (generation 1)\n"
        )
        table = program.jobs("list").stdout.splitlines()
        assert table[0].split()[:3] == ["name", "state", "generation"]
        assert table[1].split()[:3] == ["a", "idle", "1"]
        assert len(web.requests) == asked
        assert program.end() == (0, "", "")
    assert rows(tmp_path) == {"a": PAGES, "b": 30}
    book = run_json(tmp_path)
    assert {name: one["outcomes"] for name, one in book["jobs"].items()} == {
        "a": {"stored": PAGES},
        "b": {"stored": 30},
    }
    assert (book["command"], book["state"], book["rows"]) == ("up", "stopped", PAGES + 30)
    assert book["jobs"]["b"]["left"] == book["left"] > 0
    assert not (tmp_path / "o" / "control.sock").exists()


def test_jobs_are_applied_to_a_program_that_is_starting(tmp_path, up):
    """`nephila up &` and the next line of a script: the command waits for the program."""
    (tmp_path / "jobs.yaml").write_text(job("a"))
    words = [*NEPHILA, "jobs", "apply", "-f", "jobs.yaml", "--out", "o"]
    with serve(answer) as web:
        client = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        program = up(web)
        assert client.communicate(timeout=60)[0] == "a: created (generation 1)\n"
        assert program.end() == (0, "", "")


@pytest.mark.smoke
def test_changes_while_it_runs(tmp_path, up):
    """Pause, resume, an exclusion for what is queued, deletion: each takes effect on the job that it names."""
    slow = {"politeness": {"delay": "50ms"}}
    with serve(answer) as web:
        program = up(web)
        program.apply(job("a", **slow) + job("b", **slow))
        program.until(lambda jobs: jobs["a"]["queued"] > 4 and jobs["b"]["queued"] > 4)
        assert program.jobs("pause", "a").stdout == "a: paused (generation 2)\n"
        program.until(lambda jobs: jobs["a"]["in_flight"] == 0)
        asked = len(web.paths("a.test"))
        before = len(web.paths("b.test"))
        program.until(lambda jobs: len(web.paths("b.test")) > before + 3)
        assert len(web.paths("a.test")) == asked
        assert program.jobs("delete", "b").stdout == "b: deleted (generation 2)\n"
        assert list(program.list()) == ["a"]
        changed = job("a", scope={"exclude": ["/[0-9]*[13579]$"]})
        assert program.apply(changed).stdout == "a: changed (generation 3)\n"
        found = program.until(lambda jobs: jobs["a"]["state"] == "idle")
        assert found["a"]["dropped"] > 0
        assert all(int(path[1:]) % 2 == 0 for path in web.paths("a.test")[asked:])
        result = program.jobs("resume", "b", code=1).stderr
        assert result == "nephila: there is no job 'b'; there are a\n"
    kept = rows(tmp_path)
    assert kept["a"] == found["a"]["stored"] + found["a"]["dropped"]
    assert kept["b"] > 0


def test_killed_it_goes_on_with_all_jobs(tmp_path, up):
    """kill -9 leaves a socket behind; started again the jobs are as they were wanted, each page has one row."""
    with serve(answer) as web:
        program = up(web)
        program.apply(job("a") + job("b", politeness={"delay": "20ms"}) + job("c"))
        program.jobs("pause", "c")
        program.until(lambda jobs: jobs["b"]["stored"] > 10)
        assert program.end(signal.SIGKILL)[0] == -signal.SIGKILL
        assert (tmp_path / "o" / "control.sock").exists()
        result = program.jobs("list", code=1).stderr
        assert result == "nephila: no nephila up is running in o; start it with: nephila up --out o\n"
        program.start()
        assert program.ready.startswith("3 jobs in o; ")
        found = program.until(lambda jobs: jobs["a"]["state"] == jobs["b"]["state"] == "idle")
        assert found["c"]["state"] == "paused"
        assert found["c"]["generation"] == 2
        program.jobs("resume", "c")
        program.until(lambda jobs: jobs["c"]["state"] == "idle")
        assert program.end(signal.SIGINT)[0] == 130
    assert rows(tmp_path) == {"a": PAGES, "b": PAGES, "c": PAGES}
    assert rows(tmp_path, "select outcome, count(*) from pages group by 1") == {"stored": 3 * PAGES}


def test_seeds_of_a_file_are_streamed(tmp_path, up):
    """More than one piece of them, beside the job's file; lines that are none are named."""
    with serve(lambda request: None if request.path == "/robots.txt" else page()) as web:
        program = up(web)
        (tmp_path / "sub").mkdir()
        lines = [f"http://a.test/{n}" for n in range(1500)]
        (tmp_path / "sub" / "seeds.txt").write_text("\n".join([*lines, "no url at all"]))
        (tmp_path / "sub" / "job.yaml").write_text(job("a", seeds=[{"file": "seeds.txt"}], paused=True))
        done = program.jobs("apply", "-f", "sub/job.yaml")
        assert "seed left out: " in done.stderr
        assert "line 1501" in done.stderr
        assert program.list()["a"]["queued"] == 1500
        (tmp_path / "sub" / "job.yaml").write_text(job("a", seeds=[{"file": "nowhere"}]))
        result = program.jobs("apply", "-f", "sub/job.yaml", code=2).stderr
        assert "sub/job.yaml:2:1: cannot read the seeds " in result
        assert program.list()["a"]["state"] == "paused"


def test_explain_asks_the_program(tmp_path, up):
    """The job that knows the URL best, or the one that is named; without the program the directory is read."""
    with serve(answer) as web:
        program = up(web)
        program.apply(job("a", scope={"maxDepth": 1}) + job("b", paused=True))
        program.until(lambda jobs: jobs["a"]["state"] == "idle")
        words = ("explain", "http://a.test/2", "--out", "o")
        assert json.loads(run(*words, "--json", cwd=tmp_path).stdout)["state"] == "stored"
        assert "Not crawled: host a.test is not a seed host." in run(*words, "--job", "b", cwd=tmp_path).stdout
        result = run("explain", "http://b.test/0", "--out", "o", cwd=tmp_path).stdout
        assert result.splitlines()[0] == "Waiting: the job is paused; nephila jobs resume b --out o."
        assert run(*words, "--job", "c", cwd=tmp_path).stderr == "nephila: there is no job 'c'; there are a, b\n"
        program.end()
        assert json.loads(run(*words, "--json", cwd=tmp_path).stdout)["job"] == "a"
        assert run(*words, "--job", "c", cwd=tmp_path).returncode == 1


def test_one_program_and_one_kind_of_work_in_a_directory(tmp_path, up):
    """A second one is refused and disturbs nothing; crawl and up do not take each other's directories."""
    with serve(answer) as web:
        program = up(web)
        program.apply(job("a"))
        done = run("up", "--out", "o", cwd=tmp_path)
        assert done.returncode == 1
        assert f"o is in use by another nephila (process {program.process.pid})" in done.stderr
        assert list(program.list()) == ["a"]
        program.end()
        for words in (["http://a.test/"], ["--resume"]):
            done = run("crawl", *words, "--out", "o", cwd=tmp_path)
            assert done.returncode == 2
            assert "o holds the jobs of nephila up; continue with nephila up --out o" in done.stderr
        run("crawl", "http://a.test/0", "--out", "p", "--max-pages", "1", "--host-map", web.host_map, cwd=tmp_path)
        done = run("up", "--out", "p", cwd=tmp_path)
        assert done.returncode == 2
        assert "p holds a crawl; continue with nephila crawl --resume --out p" in done.stderr


def test_a_program_without_its_socket(tmp_path, up):
    """Somebody removed it, or a crawl runs there: who holds the directory is told, not that nobody does."""
    with serve(answer) as web:
        program = up(web)
        assert program.jobs("apply", "-f", _file(tmp_path)).stdout == "a: created (generation 1)\n"
        assert program.jobs("quarantines", "a").stderr == "nephila: no part of a host is in quarantine for a\n"
        (tmp_path / "o" / "control.sock").unlink()
        result = program.jobs("list", code=1).stderr
        assert result.startswith(
            f"nephila: the nephila that runs in o (process {program.process.pid}) takes no requests: "
        )
        assert result.count("\n") == 1
        assert program.end() == (0, "", "")
        assert "no nephila up is running in o" in program.jobs("list", code=1).stderr


def _file(tmp_path):
    (tmp_path / "a.yaml").write_text(job("a"))
    return "a.yaml"


def test_a_disk_that_refuses_from_the_start(tmp_path):
    """One line that does not tell of options that `up` has not."""
    limited = f"import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); \
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); import os; os.execv(sys.executable, {[*NEPHILA, 'up']!r})"
    done = subprocess.run([sys.executable, "-c", limited], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stderr.startswith("nephila: ")
    assert done.stderr.count("\n") == 1
    assert "--resume" not in done.stderr


def test_a_second_signal_ends_at_once(tmp_path, up):
    """A fetch that never ends does not hold up who asks twice."""
    hanging, release = threading.Event(), threading.Event()

    def stuck(request):
        if request.path == "/robots.txt":
            return None
        hanging.set()
        release.wait(30)
        return page()

    with serve(stuck) as web:
        program = up(web)
        program.apply(job("a"))
        assert hanging.wait(30)
        program.process.send_signal(signal.SIGTERM)
        # Two at once would be one: the second is sent when the first has been heard.
        while (tmp_path / "o" / "control.sock").exists():
            release.wait(0.01)
        program.process.send_signal(signal.SIGTERM)
        out, err = program.process.communicate(timeout=3.5)
        release.set()
    assert (program.process.returncode, out, err) == (0, "", "")
    assert run_json(tmp_path)["jobs"]["a"]["left"] == 1


def test_clients_that_send_anything(tmp_path, up):
    """Binary, half lines and silence: the program goes on."""
    with serve(answer) as web:
        program = up(web)
        silent = []
        for data in (b"", b"\x00\xff" * 1000 + b"\r\n\r\n", b'{"op":', b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(tmp_path / "o" / "control.sock"))
            client.sendall(data)
            silent.append(client)
        assert program.list() == {}
        assert silent[1].recv(10_000).startswith(b"HTTP/1.1 400 ")
        assert silent[3].recv(10_000).startswith(b"HTTP/1.1 404 ")
        for client in silent:
            client.close()
        assert program.end() == (0, "", "")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["up", "--format", "xml"], 2, "--format 'xml' is none of sqlite"),
        (["up", "--host-map", "nonsense"], 2, "nonsense"),
        (["up", "--outt", "x"], 2, "--out"),
        (["jobs"], 2, ""),
        (["jobs", "apply"], 2, "--file"),
        (["jobs", "apply", "-f", "nowhere.yaml"], 2, "cannot read nowhere.yaml: No such file or directory"),
        (["jobs", "pause"], 2, "NAME"),
        (["jobs", "list"], 1, "no nephila up is running in crawl-out; start it with: nephila up --out crawl-out"),
        (["jobs", "list", "--out", "a b"], 1, "nephila up --out 'a b'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_mistakes_on_the_command_line(tmp_path, words, code, says):
    """One line, nothing made."""
    done = run(*words, cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_members_shows_pages_and_bytes_since_the_start(up):
    def answer(request):
        return {"/0": page("/1"), "/1": Reply("x" * 50_000)}.get(request.path)

    with serve(answer) as web:
        program = up(web)
        program.apply(job("a"))
        program.until(lambda jobs: jobs["a"]["stored"] == 2 and not jobs["a"]["in_flight"])
        done = run("service", "members", "--out", "o", "--json", cwd=program.cwd)
        first = json.loads(done.stdout.splitlines()[0])
        first = first[0] if isinstance(first, list) else first
        assert first["pages"] == 2
        assert 50_000 < first["bytes"] < 60_000
        head, row = run("service", "members", "--out", "o", cwd=program.cwd).stdout.splitlines()[:2]
        assert "pages  MB read" in head
        assert " 2      0.1" in row
        program.end()
