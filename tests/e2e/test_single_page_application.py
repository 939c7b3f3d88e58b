"""A single-page application crawled by its routes: the seen test, robots.txt, redirects, rows, bodies and explain."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from nephila_stores.raw_file import RawPage, read

from tests.e2e.web import Reply, crawl, page, rows, run, serve

JOB = """
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: app}
spec:
  seeds: ["http://a.test/#/start"]
  parse: {follow: [route]}
  links: true
"""


def answer(request):
    """The application, what is private of it, and a page that has moved."""
    if request.path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /private\nDisallow: /*cart$\n", type="text/plain")
    if request.path == "/old":
        return Reply(status=301, headers={"Location": "/moved"})
    if request.path == "/home":
        return Reply(status=302, headers={"Location": "/#/start"})
    links = ("#/cart", "#/start", "#top", "/#/cart", "/old#/deep", "/home", "/private#/x", "/shop#!/7", "/shop#!/7?a=1")
    return page(*links)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_application_by_its_routes(tmp_path: Path, workers: str) -> None:
    """Each route is a row, each once, also over a resume; robots.txt is asked for the page without."""
    (tmp_path / "job.yaml").write_text(JOB)
    with serve(answer) as web:
        done = crawl(web, "job.yaml", "--keep-raw", "--workers", workers, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        expected = {
            "http://a.test/#/start": "stored",
            "http://a.test/#/cart": "stored",
            "http://a.test/": "stored",
            "http://a.test/old": "dropped(redirect)",
            "http://a.test/old#/deep": "dropped(redirect)",
            "http://a.test/moved": "stored",
            "http://a.test/moved#/deep": "stored",
            # Its links are those of the page, which now lie below another directory or not: #/ of itself.
            "http://a.test/home": "dropped(redirect)",
            "http://a.test/private": "denied(robots)",
            "http://a.test/private#/x": "denied(robots)",
            "http://a.test/shop": "stored",
            "http://a.test/shop#!/7": "stored",
            "http://a.test/shop#!/7?a=1": "stored",
        }
        expected |= {
            f"http://a.test/{name}#/{route}": "stored" for name in ("moved", "shop") for route in ("cart", "start")
        }
        found = {url: outcome + (f"({why})" if why else "") for url, outcome, why in rows(tmp_path)}
        assert found == expected
        fetched = len(web.requests)
        assert {request.path for request in web.requests} == {"/robots.txt", "/", "/old", "/moved", "/home", "/shop"}
        result = run("explain", "http://a.test/#/cart", "--out", "o", "--json", cwd=tmp_path)
        assert json.loads(result.stdout)["row"]["outcome"] == "stored", result.stdout
        result = run("explain", "http://a.test/#/never", "--out", "o", "--json", cwd=tmp_path)
        assert not json.loads(result.stdout)["seen"]
        assert crawl(web, "--resume", cwd=tmp_path).returncode == 0
        assert len([r for r in web.requests[fetched:] if r.path != "/robots.txt"]) == 0
    bodies = [
        one.head.url for path in (tmp_path / "o").glob("raw-*.gz") for one in read(path) if isinstance(one, RawPage)
    ]
    assert sorted(bodies) == sorted(url for url, outcome in expected.items() if outcome == "stored")


def test_other_jobs_know_no_routes(tmp_path: Path) -> None:
    """The same site without the word: a seed's route is dropped, and so is every link's."""
    with serve(answer) as web:
        done = crawl(web, "http://a.test/#/start", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert {url for url, _, _ in rows(tmp_path)} == {
            f"http://a.test/{path}" for path in ("", "old", "moved", "home", "private", "shop")
        }
        result = run("explain", "http://a.test/#/start", "--out", "o", "--json", cwd=tmp_path)
        assert json.loads(result.stdout)["row"]["outcome"] == "stored"


RULE = """
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: app}
spec:
  match: {url: '#/list'}
  each: li
  fields: {name: {css: a}}
  outlinks: {css: nav a, include: '#/list'}
  followUps:
    details:
      css: a
      url: '#/item/'
      fields: {price: {css: .price, type: number}}
"""


def listed(request):
    """An application that shows everything in one document, as a prerendered one may."""
    links = "".join(f"<nav><a href='#/{name}'>x</a></nav>" for name in ("list/2", "list/3", "about"))
    items = "".join(f"<li><a href='/#/item/{number}'>n{number}</a></li>" for number in range(3))
    return Reply(f"{links}<ul>{items}</ul><p class=price>5</p>") if request.path == "/" else None


@pytest.mark.parametrize("workers", ["0", "1"])
def test_rules_keep_routes(tmp_path: Path, workers: str) -> None:
    """Links that a rule selects lead to routes, and items are completed from pages behind them."""
    (tmp_path / "job.yaml").write_text(JOB.replace("#/start", "#/list/1") + "  rules: [app]\n")
    (tmp_path / "rule.yaml").write_text(RULE)
    with serve(listed) as web:
        done = crawl(web, "job.yaml", "--rules", "rule.yaml", "--workers", workers, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    expected = [*(f"item/{number}" for number in range(3)), *(f"list/{number}" for number in (1, 2, 3))]
    # The last page of an item is read by its second-page rule, whose outlinks are the first's.
    assert sorted(url for url, outcome, _ in rows(tmp_path) if outcome == "stored") == [
        f"http://a.test/#/{route}" for route in expected
    ]
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        found = [json.loads(data) for (data,) in db.execute("SELECT data FROM items")]
    assert sorted(found, key=lambda item: item["name"]) == [
        {"name": f"n{number}", "price": 5} for number in range(3) for _ in range(3)
    ]
