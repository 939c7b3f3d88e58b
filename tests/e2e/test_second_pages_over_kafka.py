"""Items completed from second pages by a system of two parsers and two schedulers, one parser of which is killed."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from tests.e2e.test_second_pages import RULE as REVIEWS
from tests.e2e.test_services_over_kafka import System, system_broker  # noqa: F401 - a fixture
from tests.e2e.web import NEPHILA, Reply, run, serve

SERVICES = ("storage", "parser-2", "downloader", "scheduler", "scheduler-b")
PARTITIONS = 16
HOSTS, PRODUCTS = 12, 12
DETAILS = """\
    details:
      css: a.details
      url: '/details/'
      fields: {weight: {xpath: "//p[@class='weight']", type: number, required: true}}
"""
RULE = REVIEWS + DETAILS
"""Reviews are read in the parser, details in its child, where a page stays for a while."""


def answer(request: Any) -> Reply | None:
    """Shops whose products have their second pages at two other hosts; every fourth of the reviews has moved on."""
    if request.path == "/robots.txt":
        return None
    host = int(request.host[1:].partition(".")[0])
    if request.path == "/":
        return Reply("".join(f"<a href=/p/{number}>x</a>" for number in range(PRODUCTS)))
    kind, _, name = request.path[1:].partition("/")
    if kind == "p":
        own = f"{host}-{name}"
        moved = "moved/" if int(name) % 4 == 1 else ""
        reviews = f"http://h{(host + 5) % HOSTS}.test/reviews/{moved}{own}"
        details = f"http://h{(host + 7) % HOSTS}.test/details/{own}"
        return Reply(f"<h1>{own}</h1><a class=reviews href={reviews}>r</a><a class=details href={details}>d</a>")
    if name.startswith("moved/"):
        return Reply("", 301, headers={"Location": f"/reviews/{name.removeprefix('moved/')}"})
    shop, _, number = name.partition("-")
    said = int(shop) * 100 + int(number)
    return Reply(f"<p class=stars>{said}</p>" if kind == "reviews" else f"<p class=weight>{said}</p>")


EXPECTED = [
    {"name": f"{host}-{number}", "stars": host * 100 + number, "weight": host * 100 + number}
    for host in range(HOSTS)
    for number in range(PRODUCTS)
]
STORED = HOSTS * (1 + 3 * PRODUCTS)
MOVED = HOSTS * len(range(1, PRODUCTS, 4))


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services but the first parser, schedulers twice, and the shops."""
    words = ("--bootstrap", system_broker.address, "--partitions", str(PARTITIONS))
    assert run("service", "topics", "apply", *words, cwd=tmp_path).returncode == 0
    with serve(answer) as web:
        made = System(tmp_path, system_broker, web)
        made.start(*SERVICES)
        made.until_held("scheduler-b", PARTITIONS // 2)
        yield made
        for program in made.programs.values():
            program.kill()
            program.wait(60)


_HALVES = """
import sqlite3, sys, time
halves = "select count(*) from items where data like '%_incomplete%'"
second = "select count(*) from pages where rule like 'shop/%'"
for _ in range(800):
    with sqlite3.connect(sys.argv[1]) as db:
        found = [db.execute(one).fetchone()[0] for one in (halves, second)]
    if min(found) >= int(sys.argv[2]):
        sys.exit(0)
    time.sleep(0.05)
print(found, "incomplete items and second pages")
sys.exit(1)
"""


def until_halves(system: System, count: int) -> None:
    """Wait until so many items are stored that wait for a second page, and so many second pages."""
    words = [sys.executable, "-c", _HALVES, str(system.folder / "rows" / "nephila.db"), str(count)]
    waiter = subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)
    assert waiter.returncode == 0, waiter.stdout


def items(system: System) -> list[dict[str, Any]]:
    """What the table holds, by name."""
    with contextlib.closing(sqlite3.connect(system.folder / "rows" / "nephila.db")) as db:
        found = [json.loads(data) for (data,) in db.execute("SELECT data FROM items WHERE rule = 'shop'")]
    return sorted(found, key=lambda item: [int(part) for part in item["name"].split("-")])


class Crawl:
    """The shops crawled by the rule, watched."""

    def __init__(self, system: System) -> None:
        self._system = system
        (system.folder / "rule.yaml").write_text(RULE)
        seeds = [f"http://h{number}.test/" for number in range(HOSTS)]
        words = ("--bootstrap", system.broker.address, "--rules", "rule.yaml", "--delay", "0.2", "--json")
        self.process = subprocess.Popen(
            [*NEPHILA, "crawl", *seeds, *words],
            cwd=system.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ends_well(self) -> None:
        """By itself; every URL has its row, and every item is there once and has everything."""
        out, err = self.process.communicate(timeout=100)
        assert self.process.returncode == 0, err
        result = json.loads(out)
        assert result["reason"] == "done"
        assert result["outcomes"] == {"stored": STORED, "denied": 0, "failed": 0, "dropped": MOVED}
        assert self._system.rows() == Counter(stored=STORED, dropped=MOVED)
        assert items(self._system) == EXPECTED

    def stop(self) -> None:
        """Whether or not it has ended."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def crawl(system):
    """Begin a crawl, once."""
    begun = []
    yield lambda: begun.append(Crawl(system)) or begun[0]
    for one in begun:
        one.stop()


def test_items_are_complete_though_a_parser_is_killed(system, crawl):
    """kill -9 while items wait for pages that are on their way: the other parser reads what it held, nothing twice."""
    system.start("parser-1")
    begun = crawl()
    until_halves(system, 20)
    parsed = system.metrics("parser-1").split("\nnephila_parser_pages_parsed_total ")[1].split()[0]
    system.end("parser-1", number=signal.SIGKILL)
    begun.ends_well()
    assert float(parsed) > 0


def test_items_are_complete_though_a_parser_dies_with_a_second_page_in_hand(system, crawl):
    """At the first one that it gets; it takes the products with it that it has not handed on."""
    system.start("parser-1", NEPHILA_FAILPOINT="parse:/details/")
    begun = crawl()
    begun.ends_well()
    assert system.programs.pop("parser-1").wait(30) == -signal.SIGKILL
