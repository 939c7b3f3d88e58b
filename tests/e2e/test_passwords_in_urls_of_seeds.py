"""A site whose seed has its user and password in the URL: fetched again, it answers as at first."""

from __future__ import annotations

import base64
import json
import sqlite3

import pytest

from tests.e2e import web as little
from tests.e2e.web import Reply, page, run_json, serve

USER = "Basic " + base64.b64encode(b"user:secret").decode()
SEED = "http://user:secret@a.test/"


def crawl(web, *words, cwd):
    """In one process, which starts sooner."""
    return little.crawl(web, *words, "--workers", "0", cwd=cwd)


def guarded(request):
    """401 without the password; /late fails at first."""
    if request.path == "/robots.txt":
        return None
    if request.headers.get("Authorization") != USER:
        return Reply("who?", status=401)
    if request.path == "/late" and not guarded.late:
        return Reply("not yet", status=404)
    return page(*(("/a", "/late") if request.path == "/" else ()), title=request.path)


def content(cwd):
    """URL → (outcome, reason, url_key, title)."""
    with sqlite3.connect(cwd / "o" / "nephila.db") as db:
        found = db.execute("SELECT url, outcome, reason, url_key, title FROM pages").fetchall()
    return {url: rest for url, *rest in found}


@pytest.mark.parametrize(
    "mode", [("--refresh",), ("--retry-failed",), ("--resume", "--links"), ("--refresh", "--links")]
)
def test_fetched_again_with_the_password_of_the_seed(tmp_path, mode):
    """Twice, since the second time reads the log of the first; rows are those of a fresh crawl."""
    guarded.late = False
    with serve(guarded) as web:
        assert crawl(web, SEED, cwd=tmp_path).returncode == 0
        assert content(tmp_path)["http://a.test/late"][:2] == ["failed", "http_404"]
        guarded.late = "--resume" not in mode
        for _ in range(2):
            done = crawl(web, *mode, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        again = content(tmp_path)
        (tmp_path / "fresh").mkdir()
        assert crawl(web, SEED, cwd=tmp_path / "fresh").returncode == 0
        assert again == content(tmp_path / "fresh")
    assert "secret" not in json.dumps(run_json(tmp_path)) + json.dumps(again)


def test_links_of_a_wider_depth_have_the_password(tmp_path):
    """Those that the scheduler held, and those that the table of links has."""
    guarded.late = True
    with serve(guarded) as web:
        assert crawl(web, SEED, "--max-depth", "0", "--links", cwd=tmp_path).returncode == 0
        done = crawl(web, "--resume", "--max-depth", "2", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert {row[0] for row in content(tmp_path).values()} == {"stored"}
        assert len(content(tmp_path)) == 3
