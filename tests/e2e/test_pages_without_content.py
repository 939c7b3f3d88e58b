"""A site whose pages are shells of scripts, crawled without a browser: the summary and run.json report it."""

from __future__ import annotations

import json

from tests.e2e.web import Reply, crawl, page, run_json, serve

SHELL = (
    "<!doctype html><title>Shop</title><div id=root></div><noscript>Enable JavaScript.</noscript>"
    "<script src=/a.js></script>"
)


def answer(request):
    if request.path == "/robots.txt":
        return None
    return page(*(f"/{number}" for number in range(1, 5))) if request.path == "/" else Reply(SHELL)


def test_the_summary_and_run_json_count_pages_that_look_like_shells(tmp_path):
    with serve(answer) as web:
        shown = crawl(web, "http://a.test/", cwd=tmp_path)
        again = crawl(web, "http://a.test/", "--fresh", "--json", cwd=tmp_path)
    assert "4 of 5 pages look as if they need --render auto" in shown.stdout
    assert json.loads(again.stdout)["shells"] == run_json(tmp_path)["shells"] == 4
