"""A finished crawl serves its JSON API read-only, by `nephila api` and `nephila console`; the studio works over it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from tests.e2e.web import NEPHILA, Reply, crawl, page, run, serve

PRODUCT = "<html><title>Kettle</title><body><h1>Red kettle</h1><p class=price>10.00 EUR</p><a href=/2>2</a>"


def answer(request):
    """Two products."""
    return {"/": page("/1"), "/1": Reply(PRODUCT), "/2": Reply(PRODUCT)}.get(request.path)


@contextlib.contextmanager
def serving(cwd, *words):
    """The command, and a client of its API: (path, body) → (status, answer)."""
    command = [*NEPHILA, *words, "--out", "o", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stderr is not None
            assert program.stdout.readline().startswith("http://127.0.0.1:")
            lines = iter(program.stderr.readline, "")
            line = next(line for line in lines if "Bearer" in line)
            token, url = re.findall(r"Bearer ([\w-]+)' (http://[\d.:]+/api/v1)/status", line)[0]

            def ask(path, body=None, header=f"Bearer {token}"):
                data = json.dumps(body).encode() if body is not None else None
                request = urllib.request.Request(url + path, data, {"authorization": header} if header else {})
                try:
                    with urllib.request.urlopen(request, timeout=30) as response:
                        return response.status, json.load(response)
                except urllib.error.HTTPError as error:
                    return error.code, json.load(error)

            yield ask
        finally:
            program.terminate()


@pytest.mark.parametrize("words", [["api"], ["console", "--no-browser"]])
def test_a_finished_crawl_is_read_and_not_changed(tmp_path, words):
    with serve(answer) as web:
        assert crawl(web, "http://a.test/", "--keep-raw", cwd=tmp_path).returncode == 0
        with serving(tmp_path, *words) as ask:
            assert ask("/status")[1]["stored"] == 3
            assert {one["url"] for one in ask("/pages")[1]["pages"]} >= {"http://a.test/1"}
            assert ask("/status", header="")[0] == ask("/status", header="Bearer wrong-wrong-wrong")[0] == 401
            status, refused = ask("/jobs/crawl/pause", {})
            assert (status, refused["error"]["code"]) == (403, "forbidden")
            assert "read-only" in refused["error"]["message"]
            assert ask("/studio/pages")[1]["total"] == 3
            draft = ask("/studio/open", {"url": "http://a.test/1"})[1]["draft"]
            assert ask("/studio/view", {"draft": draft})[1]["title"] == "Kettle"
            fetched = ask("/studio/open", {"url": "http://a.test/2", "source": "web"})
            assert fetched[0] == 200, fetched
            # The directory is locked; other commands read it through the socket, and are refused where they change it.
            listed = run("pages", "--out", "o", cwd=tmp_path)
            assert "http://a.test/1" in listed.stdout, listed.stderr
            changed = run("forget", "http://a.test/1", "--out", "o", cwd=tmp_path)
            assert (changed.returncode, changed.stdout) == (1, "")
            assert "read-only" in changed.stderr
    assert not (tmp_path / "o" / "control.sock").exists()
    assert run("pages", "--out", "o", cwd=tmp_path).returncode == 0


def test_a_directory_without_a_crawl_is_one_line(tmp_path):
    done = run("api", "--out", "o", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "nephila: o holds no crawl; name its directory with --out\n")
