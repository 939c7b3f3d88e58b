"""The server and the judge together: a polite and a rude crawler over real connections on loopback."""

import json
from pathlib import Path

import pytest
from bench_clients import TinyCrawler

from benchmarks.web import judge as judging
from benchmarks.web.content import open_content
from benchmarks.web.serve import Server, require_loopback
from benchmarks.web.site import Site
from benchmarks.web.town import Town
from tools.system import free_port

DELAY_S = 0.05


def small_site(folder: Path) -> Site:
    """Five hosts: plain ones, rules, a crowd, a redirect, an error."""
    site = Site(seed=3, port=free_port(), max_depth=4)
    town = Town(site)
    plain = town.host("plain", latency_s=0.03)
    for i in range(6):
        town.page(plain, f"/page/{i}", "ordinary", size=4000)
    shy = town.host("shy", robots=b"User-agent: *\nDisallow: /private/\n")
    town.page(shy, "/private/diary", "private", accept=("denied(robots)",), disallowed=True)
    town.page(shy, "/public", "ordinary")
    busy = town.host("busy")
    town.page(busy, "/busy", "429", action={"do": "body", "first": {"status": 429, "times": 1, "retry_after": "0.3"}})
    moved = {"do": "body", "status": 301, "location": site.url(plain.name, "/moved")}
    hop = town.page(busy, "/from", "redirect", accept=("dropped(redirect)",), action=moved)
    site.add(hop, plain, "/moved", "redirect target", hop=True)
    town.page(busy, "/gone", "404", accept=("failed(http_404)",), action={"do": "body", "status": 404})
    site.write(folder)
    return site


async def judged(folder: Path, polite: bool) -> tuple[int, TinyCrawler]:
    """Serve, crawl and judge; the judge's exit code and the crawler."""
    site = small_site(folder)
    async with Server(open_content(folder), site.port, folder / "log"):
        crawler = TinyCrawler(site.port, DELAY_S + 0.01, polite)
        await crawler.crawl(site.seeds[0])
    crawler.write(folder / "nephila.db")
    return verdict(folder), crawler


def verdict(folder: Path) -> int:
    """The judge's exit code on a folder with everything in it."""
    log, db = str(folder / "log"), str(folder / "nephila.db")
    # The tiny crawler dials one address for all hosts and knows the pace of hosts only.
    pace = ["--delay", str(DELAY_S), "--slack", "0.005", "--address-gap", "0"]
    return judging.main(["--log", log, "--manifest", str(folder), "--db", db, *pace])


async def test_polite_crawler_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real crawl that keeps the rules is clean; with a row less it is not."""
    code, crawler = await judged(tmp_path, polite=True)
    assert code == 0, capsys.readouterr().out
    crawler.rows.popitem()
    (tmp_path / "nephila.db").unlink()
    crawler.write(tmp_path / "nephila.db")
    assert verdict(tmp_path) == 1
    assert "no row" in capsys.readouterr().out


async def test_rude_crawler_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real crawl without manners breaks every rule of manners."""
    code, _ = await judged(tmp_path, polite=False)
    out = capsys.readouterr().out
    assert code == 1
    failed = {line[6:40].strip() for line in out.splitlines() if line.startswith("FAIL")}
    assert failed >= {
        "one request at a time per host",
        "one connection at a time per host",
        "no gap below the delay",
        "robots.txt first",
        "no disallowed path",
        "every row in its outcome",
    }


async def test_log_has_start_and_end(tmp_path: Path) -> None:
    """Each request is logged with both clocks, its connection, its size and its agent."""
    await judged(tmp_path, polite=True)
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    requests = [e for e in events if e["event"] == "request"]
    assert all(e["t_start"] <= e["t_end"] and e["wall_start"] <= e["wall_end"] for e in requests)
    assert all(e["user_agent"] == "tiny" and e["bytes"] > 50 and e["method"] == "GET" for e in requests)
    assert {e["conn"] for e in requests} == {e["conn"] for e in events if e["event"] == "close"}


def test_only_loopback() -> None:
    """A hostile web is not offered to a network."""
    require_loopback(["127.0.0.1", "127.0.1.50"])
    with pytest.raises(SystemExit, match=r"0\.0\.0\.0"):
        require_loopback(["127.0.0.1", "0.0.0.0"])
