"""Items completed from a second page, in a crawl as an analyst runs it: one program, workers, killed between."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.web import NEPHILA, Reply, Web, crawl, run, serve
from tests.waits import wait_until

RULE = r"""
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: shop}
spec:
  match: {url: '/p/\d+$'}
  fields: {name: {css: h1, required: true}}
  followUps:
    reviews:
      css: a.reviews
      url: '/reviews/'
      fields: {stars: {css: .stars, type: number, required: true}}
"""
COUNT = 12


def answer(request: Any) -> Reply | None:
    """A list of products, each with its reviews: of every fourth moved, gone, forbidden or without stars."""
    path = request.path
    if path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /reviews/secret", type="text/plain")
    if path == "/":
        return Reply("".join(f"<a href=/p/{number}>x</a>" for number in range(COUNT)))
    kind, _, name = path[1:].partition("/")
    if kind == "p":
        number = int(name)
        link = {1: f"/old/{number}", 2: f"/reviews/gone/{number}", 3: f"/reviews/secret/{number}"}.get(number % 6)
        link = {4: f"/reviews/empty/{number}", 5: ""}.get(number % 6, link or f"/reviews/{number}")
        link = f"/reviews/moved/{number}" if number % 6 == 1 else link
        return Reply(f"<h1>n{number}</h1>" + (f"<a class=reviews href={link}>r</a>" if link else ""))
    if name.startswith("moved/"):
        return Reply("", 301, headers={"Location": f"/reviews/{name.removeprefix('moved/')}"})
    if name.startswith("empty/"):
        return Reply("<h1>none yet</h1>")
    return Reply(f"<p class=stars>{name}</p>") if name.isdecimal() else None


def expected(web: Web) -> dict[str, Any]:
    """The items as they have to be in the end."""
    whys = {
        2: ("/reviews/gone/", "failed(http_404)"),
        3: ("/reviews/secret/", "denied(robots)"),
        4: ("/reviews/empty/", "its page gave nothing"),
        5: ("", "the page has no link to it"),
    }
    found = {}
    for number in range(COUNT):
        item: dict[str, Any] = {"name": f"n{number}", "stars": number}
        if number % 6 in whys:
            path, why = whys[number % 6]
            url = f"http://a.test{path}{number}" if path else ""
            item = {"name": f"n{number}", "stars": None, "_incomplete": {"reviews": {"url": url, "why": why}}}
        found[item["name"]] = item
    return found


def items(cwd: Path) -> dict[str, Any]:
    """All items by name; each stands there once."""
    with contextlib.closing(sqlite3.connect(cwd / "o" / "nephila.db")) as db:
        found = [json.loads(data) for (data,) in db.execute("SELECT data FROM items")]
    assert len({item["name"] for item in found}) == len(found)
    return {item["name"]: item for item in found}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_each_item_is_there_once_complete_or_with_the_reason(tmp_path: Path, workers: str) -> None:
    """Second pages that come, are elsewhere by now, are gone, forbidden or empty; without a link there is none."""
    (tmp_path / "rule.yaml").write_text(RULE)
    with serve(answer) as web:
        words = ("--rules", "rule.yaml", "--workers", workers, "--keep-raw")
        done = crawl(web, "http://a.test/", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert items(tmp_path) == expected(web)
    applied = run("rules", "apply", "--from", "o", "--rules", "rule.yaml", "--json", cwd=tmp_path)
    result = json.loads(applied.stdout)
    assert {name: field["changed"] + field["lost"] for name, field in result["fields"].items()} == dict.fromkeys(
        ("name", "stars", "_incomplete"), 0
    )
    exported = run("export", "o", "--items", "--format", "jsonl", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    lines = [json.loads(line)["data"] for line in exported.stdout.splitlines()]
    assert {line["name"]: line for line in lines} == expected(web)


def test_second_pages_out_of_scope_are_not_fetched(tmp_path: Path) -> None:
    """They are links like any: deeper than the job allows, they stay out, and the items say that they did not come."""
    (tmp_path / "rule.yaml").write_text(RULE)
    with serve(answer) as web:
        done = crawl(web, "http://a.test/", "--rules", "rule.yaml", "--max-depth", "1", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not any(path.startswith("/reviews/") for path in web.paths())
    assert items(tmp_path)["n0"]["_incomplete"]["reviews"]["why"] == "not fetched yet"


def test_a_crawl_that_is_killed_between_the_pages_loses_no_item(tmp_path: Path) -> None:
    """kill -9 when some products are stored and reviews are on their way; resumed, all is as it would have been."""
    (tmp_path / "rule.yaml").write_text(RULE)
    with serve(answer) as web:
        words = ("--rules", "rule.yaml", "--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0.1")
        begun = subprocess.Popen([*NEPHILA, "crawl", "http://a.test/", *words], cwd=tmp_path, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: any(path.startswith("/reviews/") for path in web.paths()))
        finally:
            begun.send_signal(signal.SIGKILL)
            begun.wait()
        assert any(path.startswith("/reviews/") for path in web.paths())
        done = run("crawl", *words, "--resume", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert items(tmp_path) == expected(web)
