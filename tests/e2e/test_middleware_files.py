"""Middleware files of the user in the installed program: a crawl with them, a bad file, block pages."""

from __future__ import annotations

import pytest

from tests.e2e.web import Reply, crawl, page, rows, serve

HEADER = """
def on_request(request):
    request.set_header("X-Token", "abc")

def on_outcome(request, outcome):
    if request.url.endswith("/bad"):
        raise ValueError("after the outcome")
"""
BLOCK = (
    "<html><head><title>Access denied</title></head><body><h1>Your IP address has been blocked</h1>"
    "<a href=/trap>home</a></body></html>"
)


def site(request):
    """Three pages for clients with the token; a ban with status 200 for the others, and at one address."""
    if request.path == "/robots.txt":
        return None
    if request.headers.get("X-Token") != "abc" or request.path == "/ban":
        return Reply(BLOCK)
    return page("/a", "/bad", "/ban")


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_crawl_with_a_file_and_a_block_page(tmp_path, workers):
    """The header reaches the server; the block page is no content, and its link is not followed."""
    (tmp_path / "mw").mkdir()
    (tmp_path / "mw" / "token.py").write_text(HEADER)
    options = ("--delay", "0", "--workers", workers, "--max-wait", "1s", "--max-pages", "3")
    with serve(site) as web:
        done = crawl(web, "http://site.test/", *options, "--middleware", "mw", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {(url, outcome, reason) for url, outcome, reason in rows(tmp_path, "url, outcome, reason")}
    stored = {url.removeprefix("http://site.test") for url, outcome, _ in found if outcome == "stored"}
    assert stored == {"/", "/a", "/bad"}
    assert "/trap" not in web.paths()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_with_a_syntax_error_ends_the_program_at_its_start(tmp_path, workers):
    """Exit code 2, path and line, and nothing is fetched."""
    (tmp_path / "mw").mkdir()
    (tmp_path / "mw" / "token.py").write_text("x = 1\ndef on_request(request:\n    pass\n")
    with serve(site) as web:
        done = crawl(web, "http://site.test/", "--workers", workers, "--middleware", "mw", cwd=tmp_path)
    assert done.returncode == 2
    assert "mw/token.py:2: " in done.stderr
    assert not web.requests
