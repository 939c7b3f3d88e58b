"""A site whose layout changes in the middle of a crawl: the alarm comes in time, rows are marked, nothing stops."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_services_over_kafka import System, system_broker  # noqa: F401 - a fixture
from tests.e2e.web import Reply, crawl, run, serve

RULE = """
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: shop}
spec:
  match: {url: '/p/'}
  fields:
    name: {css: h1, required: true}
    price: {css: .price, type: price, currency: EUR}
    stock: .stock
"""
PAGES, CHANGE = 200, 100
WITHIN = 50
HOSTS = 12
SEEDS = [f"http://h{number}.test/p/{number}" for number in range(HOSTS)]


def url(number: int) -> str:
    """Of a product; the shop has a few hosts, which are different partitions."""
    return f"http://h{number % HOSTS}.test/p/{number}"


class Shop:
    """Products that link to further ones; from the hundred and first that is asked for on, prices are elsewhere."""

    title = "P{}"
    left_out: str | None = "1"
    """Items that a marked page has and that are not to be trusted."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._lock = threading.Lock()

    def __call__(self, request: Any) -> Reply | None:
        if not request.path.startswith("/p/"):
            return None
        number = int(request.path.removeprefix("/p/"))
        if number >= PAGES:
            return None
        price = f"{number + 1}.99"
        shown = f"<b class=amount>{price} EUR</b>" if self._asked(number) else f"<p class=price>{price} EUR</p>"
        links = "".join(f"<a href={url(child)}>more</a>" for child in self._further(number))
        body = f"<title>P{number}</title><h1>Kettle {number}</h1>{shown}<p class=stock>{number} left</p>{links}"
        return Reply(f"<html><body>{body}</body></html>")

    def _asked(self, number: int) -> bool:
        """Note it; whether the layout is the new one."""
        with self._lock:
            self.asked.append(number)
            return len(self.asked) > CHANGE

    def _further(self, number: int) -> list[int]:
        return [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]


SITE = Path(__file__).parents[2] / "rules" / "shop"


class RealShop(Shop):
    """The example site `rules/shop`, with as many products as `Shop` has: each is its page with a name, a number and a
    price of its own."""

    title = "Kettle {} | Kettle & Co"
    left_out = None
    """Without a price, which this rule requires, there is no item in the first place."""

    def __init__(self) -> None:
        super().__init__()
        self._page = (SITE / "page.html").read_text(encoding="utf-8").partition("\n")[2]

    def url(self, number: int) -> str:
        """Of a product."""
        return f"http://h{number % HOSTS}.kettle.test/en/p/kettle-{number}"

    def __call__(self, request: Any) -> Reply | None:
        number = int(request.path.rpartition("-")[2]) if request.path.startswith("/en/p/kettle-") else PAGES
        if number >= PAGES:
            return None
        body, links = self._page, self._page[self._page.index('<div class="also">') : self._page.index("</body>")]
        further = "".join(f"<a href={self.url(child)}>{child}</a>" for child in self._further(number))
        body = body.replace(links, f'<div class="also">{further}</div>')
        body = body.replace("Copper kettle, 1.5 l", f"Kettle {number}").replace("KC-1500-CU", f"KC-{number}")
        body = body.replace("€1,049.50", f"€1,{number:03}.50")
        if self._asked(number):
            body = body.replace('<span class="price">', '<b class="amount">')
        return Reply(body)


def number_of(url: str) -> int:
    """Of a product, by its URL."""
    return int(url.replace("-", "/").rpartition("/")[2])


def rule_of_site() -> str:
    """The rule as it is beside the site, but for the name of the host, which are several here."""
    text = (SITE / "rule.yaml").read_text(encoding="utf-8")
    assert r"kettle\.example/" in text
    return text.replace(r"kettle\.example/", r"h\d+\.kettle\.test/")


def rules(folder: Path, text: str = RULE) -> Path:
    """The rule in a directory."""
    place = folder / "rules" / "shop"
    place.mkdir(parents=True)
    (place / "rule.yaml").write_text(text)
    return folder / "rules"


def check(db: Path, shop: Shop) -> None:
    """All pages have rows; after the change and WITHIN further pages every one is marked, before it none is."""
    with contextlib.closing(sqlite3.connect(db)) as connection:
        found = connection.execute("SELECT url, meta, title FROM pages WHERE outcome = 'stored' AND rule = 'shop'")
        metas = {number_of(url): (json.loads(meta), title) for url, meta, title in found}
        items = connection.execute("SELECT url, data FROM items JOIN pages USING (job, url_key)").fetchall()
    assert sorted(metas) == list(range(PAGES))
    prices = {number_of(url): json.loads(data)["price"] for url, data in items}
    marked = {number for number, (meta, _) in metas.items() if "degraded" in meta}
    before, after = shop.asked[:CHANGE], shop.asked[CHANGE + WITHIN :]
    # What was asked for last before the change may have been parsed behind the alarm.
    assert not marked.intersection(before[:-WITHIN])
    assert marked.issuperset(after)
    for number in marked.difference(before):
        assert metas[number][0]["degraded"].startswith("price: found on 100% of pages, now on ")
        assert metas[number][0].get("items_left_out") == shop.left_out
        assert metas[number][1] == shop.title.format(number)
        assert number not in prices
    assert all(prices[number] for number in before)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_change_of_layout_raises_the_alarm_in_one_program(tmp_path: Path, workers: str) -> None:
    """Within fifty pages, whichever process reads them; summary and run.json name the rule and its field."""
    shop = Shop()
    with serve(shop) as web:
        words = ("--rules", str(rules(tmp_path)), "--delay", "0", "--workers", workers)
        done = crawl(web, *SEEDS, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    check(tmp_path / "o" / "nephila.db", shop)
    result = json.loads((tmp_path / "o" / "run.json").read_text())["degraded_rules"]
    assert list(result) == ["shop"]
    assert result["shop"].startswith("price: found on 100% of pages, now on 0%")
    assert "Rule shop is degraded" in done.stdout
    assert "rule shop (version" in done.stderr
    assert "nephila rules try URL --rule shop" in done.stderr


def test_a_mended_rule_takes_the_stored_pages_anew_and_the_marks_away(tmp_path: Path) -> None:
    """No request is made; every page has its price again."""
    shop = Shop()
    place = rules(tmp_path)
    with serve(shop) as web:
        words = ("--rules", str(place), "--delay", "0", "--format", "sqlite,warc", "--workers", "0")
        assert crawl(web, *SEEDS, *words, cwd=tmp_path).returncode == 0
    (place / "shop" / "rule.yaml").write_text(RULE.replace("css: .price", 'css: ".price, .amount"'))
    words = ("rules", "apply", "--from", str(tmp_path / "o"), "--rules", str(place), "--write")
    assert run(*words, cwd=tmp_path).returncode == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        (marked,) = db.execute("SELECT count(*) FROM pages WHERE meta LIKE '%degraded%'").fetchone()
        (priced,) = db.execute("SELECT count(*) FROM items WHERE json_extract(data, '$.price') IS NOT NULL").fetchone()
    assert (marked, priced) == (0, PAGES)


def test_a_crawl_that_goes_on_knows_what_was_usual(tmp_path: Path) -> None:
    """Stopped before the change and resumed behind it, by a program that has seen no page of the old layout."""
    shop = Shop()
    place = rules(tmp_path)
    with serve(shop) as web:
        words = ("--rules", str(place), "--delay", "0", "--workers", "0")
        assert crawl(web, *SEEDS, *words, "--max-pages", "90", cwd=tmp_path).returncode == 0
        result = run("rules", "status", "--out", str(tmp_path / "o"), cwd=tmp_path)
        assert result.stdout.startswith("shop (version ")
        assert "healthy, 100% of its last pages have items" in result.stdout
        shop.asked += [0] * CHANGE
        done = crawl(web, "--resume", "--max-pages", str(PAGES), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert list(json.loads((tmp_path / "o" / "run.json").read_text())["degraded_rules"]) == ["shop"]
    result = run("rules", "status", "--out", str(tmp_path / "o"), cwd=tmp_path)
    assert "degraded: price: found on 100% of pages, now on 0%" in result.stdout


SERVICES = ("storage", "parser-1", "parser-2", "parser-3", "downloader", "scheduler")


@pytest.fixture(params=[Shop, RealShop])
def system(request, tmp_path, system_broker):  # noqa: F811
    """All services, three parsers among them, and a shop."""
    words = ("--bootstrap", system_broker.address, "--partitions", "16")
    assert run("service", "topics", "apply", *words, cwd=tmp_path).returncode == 0
    shop = request.param()
    with serve(shop) as web:
        made = System(tmp_path, system_broker, web)
        made.start(*SERVICES)
        yield made, shop
        for program in made.programs.values():
            program.kill()
            program.wait(60)


def test_a_change_of_layout_raises_the_alarm_over_three_parsers(system, tmp_path):
    """Within fifty pages of that rule; one parser judges it and says so, and all mark its rows."""
    made, shop = system
    real = isinstance(shop, RealShop)
    seeds = [shop.url(number) for number in range(HOSTS)] if real else SEEDS
    place = rules(tmp_path, rule_of_site() if real else RULE)
    words = ("--bootstrap", made.broker.address, "--rules", str(place), "--delay", "0.5", "--json")
    done = run("crawl", *seeds, *words, cwd=made.folder)
    assert done.returncode == 0, done.stderr
    check(made.folder / "rows" / "nephila.db", shop)
    parsers = [made.metrics(name) for name in SERVICES if name.startswith("parser")]
    parsed = [int(float(text.split("\nnephila_parser_pages_parsed_total ")[1].split()[0])) for text in parsers]
    assert sum(parsed) >= PAGES
    assert min(parsed) > 0
    assert sum(text.count('\nnephila_parser_rule_degraded{rule="shop"} 1.0') for text in parsers) == 1
    logs = "".join((made.folder / f"{name}.log").read_text() for name in SERVICES if name.startswith("parser"))
    said = [json.loads(line)["message"] for line in logs.splitlines() if "is degraded" in line]
    assert len(said) == 1
    assert "price: found on 100% of pages" in said[0]
