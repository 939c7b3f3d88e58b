"""`nephila explain` after a crawl, while one runs, and over `nephila up`: the right kind for each URL."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading

import pytest

from tests.e2e.web import NEPHILA, Reply, crawl, page, run, serve

ODD = [f"/x{n}" + "/so/on" * 4 for n in range(5)]
LINKS = ("/good", "/private", "/moved", "/missing", "/image", "/login", "http://b.test/", *ODD)
SITE = {
    "/robots.txt": Reply("User-agent: *\nDisallow: /private\n", type="text/plain"),
    "/": page(*LINKS, title="Home \x1b]0;pwned\x07\x1b[31m"),
    "/good": page(),
    "/moved": Reply("", 301, headers={"Location": "/good"}),
    "/image": Reply(b"\x89PNG", type="image/png"),
    **{path: page() for path in ODD},
}


def result(cwd, url, *words):
    """The explanation."""
    done = run("explain", url, "--out", "o", "--json", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_kind_after_a_crawl(tmp_path):
    """What the rows and the frontier of a finished crawl say; the verdict is on top."""
    with serve(lambda request: SITE.get(request.path)) as web:
        done = crawl(web, "http://a.test/", "--exclude", "/login", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    kinds = {
        "/": "stored",
        "/good": "stored",
        "/private": "robots",
        "/moved": "redirect",
        "/missing": "failed",
        "/image": "content_type",
        ODD[4]: "trap_shape",
        "/login": "out_of_scope",
        "/nowhere": "unknown",
    }
    found = {path: result(tmp_path, "a.test" + path) for path in kinds}
    assert {path: one["kind"] for path, one in found.items()} == kinds
    assert result(tmp_path, "http://b.test/")["kind"] == "out_of_scope"
    assert found["/private"]["robots"]["line"] == 2
    assert found["/moved"]["sentence"] == ("Not crawled: it redirects to http://a.test/good; explain that URL.")
    assert found["/missing"]["fetches"][-1]["status"] == 404
    text = run("explain", "a.test/", "--out", "o", cwd=tmp_path).stdout
    assert text.startswith("Stored at 20")
    assert "\nverdict:    stored\n" in text
    assert "\ntitle:      Home\n" in text
    assert "\x1b" not in text
    hostile = run("explain", "http://a.test/\x1b[31m\u202eevil?\x9b1m", "--out", "o", cwd=tmp_path)
    assert hostile.returncode == 0
    assert not {"\x1b", "\x9b", "\u202e"} & set(hostile.stdout)


def test_what_is_left_by_a_limit(tmp_path):
    """The budget, and the command that goes on."""
    with serve(lambda request: SITE.get(request.path)) as web:
        assert crawl(web, "http://a.test/", "--max-pages", "1", cwd=tmp_path).returncode == 0
    found = result(tmp_path, "http://a.test/good")
    assert found["kind"] == "budget_job"
    assert found["sentence"] == (
        "Waiting: --max-pages 1 is reached; with a larger one it is fetched; nothing runs; "
        "continue with: nephila crawl --resume --out o."
    )


def test_the_user_agent_of_the_crawl_decides_about_robots(tmp_path):
    """Other lines of robots.txt are for others."""
    robots = Reply("User-agent: mybot\nDisallow: /good\nUser-agent: *\nDisallow:\n", type="text/plain")
    site = {**SITE, "/robots.txt": robots}
    with serve(lambda request: site.get(request.path)) as web:
        assert crawl(web, "http://a.test/", "--user-agent", "MyBot/1.0", cwd=tmp_path).returncode == 0
    found = result(tmp_path, "http://a.test/good")
    assert (found["kind"], found["robots"]["line"]) == ("robots", 2)


@pytest.fixture
def stuck():
    """A web whose page /slow is not answered before the test ends."""
    asked, release = threading.Event(), threading.Event()

    def answer(request):
        if request.path == "/robots.txt":
            return None
        if request.path == "/slow":
            asked.set()
            release.wait(30)
        return page("/slow", *[f"/{n}" for n in range(5)])

    with serve(answer) as web:
        web.asked = asked
        yield web
        release.set()


@contextlib.contextmanager
def program(*words, cwd):
    """A program that is ended afterwards."""
    process = subprocess.Popen(
        [*NEPHILA, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ}
    )
    try:
        yield process
    finally:
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        process.communicate()


@pytest.mark.parametrize("asked", ["the program", "the directory"])
def test_while_a_crawl_runs(tmp_path, stuck, asked):
    """It is asked, and its counts as well; where it has no socket the directory is read beside it."""
    options = ("--allow-private", "--host-map", stuck.host_map, "--delay", "0")
    with program("crawl", "http://a.test/", "--out", "o", *options, cwd=tmp_path):
        assert stuck.asked.wait(30)
        if asked == "the directory":
            (tmp_path / "o" / "control.sock").unlink()
        else:
            (job,) = json.loads(run("jobs", "list", "--out", "o", "--json", cwd=tmp_path).stdout)
            assert (job["name"], job["state"]) == ("crawl", "running")
            refused = run("jobs", "pause", "crawl", "--out", "o", cwd=tmp_path)
            assert refused.returncode == 1
            assert refused.stderr.startswith("nephila: one crawl runs here, defined by its command; ")
        assert result(tmp_path, "http://a.test/slow")["kind"] == "leased"
        behind = result(tmp_path, "http://a.test/4")
        assert (behind["state"], behind["seen"]) == ("waiting", True)
        assert "continue with" not in behind["sentence"]


def test_over_a_program_of_many_jobs(tmp_path, stuck):
    """Lease with its instants, place in the queue, a paused job, one that was deleted; then from the directory."""
    job = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob"}
    spec = {"seeds": ["http://a.test/"], "politeness": {"delay": "0"}}
    documents = [
        {**job, "metadata": {"name": "a"}, "spec": spec},
        {**job, "metadata": {"name": "b"}, "spec": {**spec, "seeds": ["http://b.test/"], "paused": True}},
    ]
    (tmp_path / "jobs.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    options = ("--out", "o", "--allow-private", "--host-map", stuck.host_map)
    with program("up", *options, cwd=tmp_path) as process:
        assert process.stdout.readline() == "0 jobs in o; jobs are taken at o/control.sock\n"
        assert run("jobs", "apply", "-f", "jobs.yaml", "--out", "o", cwd=tmp_path).returncode == 0
        assert stuck.asked.wait(30)
        found = result(tmp_path, "http://a.test/slow")
        assert (found["kind"], found["job"], found["owner"]) == ("leased", "a", "this program")
        assert found["lease"]["until"] - found["lease"]["since"] == pytest.approx(180)
        assert result(tmp_path, "http://a.test/4")["kind"] == "behind"
        assert (
            result(tmp_path, "http://b.test/")["sentence"]
            == "Waiting: the job is paused; nephila jobs resume b --out o."
        )
        first = run("explain", "http://a.test/4", "--out", "o", cwd=tmp_path).stdout.splitlines()[0]
        assert first.endswith(" of a.test go before it.")
        assert run("jobs", "delete", "a", "--out", "o", cwd=tmp_path).returncode == 0
        gone = run("explain", "http://a.test/", "--job", "a", "--out", "o", cwd=tmp_path)
        assert gone.returncode == 1
        assert gone.stderr.startswith(
            "nephila: job 'a' was deleted, and all it knew but its rows; its row of this URL says s"
        )
    found = result(tmp_path, "http://b.test/")
    assert found["sentence"].endswith("; nothing runs; continue with: nephila up --out o.")
    gone = run("explain", "http://a.test/", "--job", "a", "--out", "o", cwd=tmp_path)
    assert (gone.returncode, "was deleted" in gone.stderr) == (1, True)
