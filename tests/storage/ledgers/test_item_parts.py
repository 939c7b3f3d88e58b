"""Items that are completed from a second page, in any order of pages, on both ledgers."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nephila.kernel import messages as m
from nephila.kernel.pages.item_parts import MISSING, NOT_YET
from nephila.native import parse_url
from nephila.storage.config import StorageConfig
from nephila.storage.read.items import export_items
from nephila.storage.writer import Writer

from tests.storage.storage_rig import JOB, record

SITE = "https://shop.test"


class Shop:
    """A writer and its tables."""

    def __init__(self, directory: Path, store: str) -> None:
        self.directory, self.store = directory, store
        config = StorageConfig(directory=directory, fsync=False, **({"store": store} if store else {}))
        self.writer = Writer(config)
        self.writer.open()

    def take(self, *records: m.Record) -> None:
        """One flush."""
        self.writer.commit(records, [None] * len(records), [])
        self.writer.after_commit()

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        if self.store:
            with psycopg.connect(self.store) as server:
                return server.execute(text).fetchall()
        file = sqlite3.connect(self.directory / "nephila.db")
        try:
            return file.execute(text).fetchall()
        finally:
            file.close()

    @property
    def items(self) -> list[Any]:
        """All items, complete or not."""
        return [json.loads(data) for (data,) in self.query("SELECT data FROM items ORDER BY url_key, ordinal")]


@pytest.fixture
def shop(database_url: str, tmp_path: Path) -> Iterator[Shop]:
    """A shop on each ledger."""
    made = Shop(tmp_path, database_url)
    yield made
    made.writer.close()


def fetched(path: str, items: list[Any] | None = None, rule: str = "", fetch_no: int = 1, **more: Any) -> m.Record:
    """The record of a page."""
    url = SITE + path
    data = [json.dumps(one).encode() for one in items or []]
    values: dict[str, Any] = {"url_key": parse_url(url).fingerprint, "url": url, "items": data, "rule": rule, **more}
    return record(1, fetch_no=fetch_no, **values)


def product(number: int, *parts: str, **more: Any) -> m.Record:
    """A page with an item that waits for some parts."""
    waits = {name: {"url": f"{SITE}/{name}/{number}", "why": NOT_YET} for name in parts}
    return fetched(f"/p/{number}", [{"name": f"n{number}", "stars": None, MISSING: waits}], "shop", **more)


def part(name: str, number: int, **fields: Any) -> m.Record:
    """A second page."""
    return fetched(f"/{name}/{number}", [fields], f"shop/{name}")


def ended(path: str, outcome: m.Outcome, reason: str, **more: Any) -> m.Record:
    """A URL that has brought no page."""
    return fetched(path, outcome=outcome, reason=reason, sha256=b"", text=b"", **more)


def test_one_item_complete_in_any_order(shop: Shop) -> None:
    """Both pages in one flush or in two, either first: one item with the fields of both, and no mark."""
    shop.take(product(1, "reviews"), part("reviews", 1, stars=4))
    shop.take(product(2, "reviews"))
    assert {
        "name": "n2",
        "stars": None,
        MISSING: {"reviews": {"url": f"{SITE}/reviews/2", "why": NOT_YET}},
    } in shop.items
    shop.take(part("reviews", 2, stars=5))
    shop.take(part("reviews", 3, stars=3))
    shop.take(product(3, "reviews"))
    expected = [{"name": f"n{number}", "stars": stars} for number, stars in ((1, 4), (2, 5), (3, 3))]
    assert sorted(shop.items, key=lambda item: item["name"]) == expected


@pytest.mark.parametrize(
    ("outcome", "reason", "why"),
    [
        (m.Outcome.FAILED, "http_404", "failed(http_404)"),
        (m.Outcome.DENIED, "robots", "denied(robots)"),
        (m.Outcome.DROPPED, "content_type", "dropped(content_type)"),
    ],
)
def test_a_second_page_that_does_not_come(shop: Shop, outcome: m.Outcome, reason: str, why: str) -> None:
    """The item stays as it is and says why, and is complete when a later fetch brings the page."""
    shop.take(product(1, "reviews"))
    shop.take(ended("/reviews/1", outcome, reason))
    assert shop.items == [{"name": "n1", "stars": None, MISSING: {"reviews": {"url": f"{SITE}/reviews/1", "why": why}}}]
    later = part("reviews", 1, stars=2)
    later.fetch_no = 2
    shop.take(later)
    assert shop.items == [{"name": "n1", "stars": 2}]


def test_a_page_that_gives_nothing(shop: Shop) -> None:
    """A second page without the required fields, and one that another rule has read, are told apart."""
    shop.take(product(1, "reviews"), fetched("/reviews/1", [], "shop/reviews"))
    shop.take(product(2, "reviews"), fetched("/reviews/2", [{"a": 1}], "other"))
    whys = [item[MISSING]["reviews"]["why"] for item in shop.items if MISSING in item]
    assert sorted(whys) == ["its page gave nothing", "its page was read by rule other"]


def test_redirects_are_followed(shop: Shop) -> None:
    """The part of a page behind two redirects, whichever of the rows comes first."""
    moved = {"outcome": m.Outcome.DROPPED, "reason": "redirect"}
    orders = list(itertools.permutations(range(4)))
    for number, order in enumerate(orders):
        last = part("reviews", number, stars=number)
        last.url = f"{SITE}/reviews/last/{number}"
        last.url_key = parse_url(last.url).fingerprint
        steps = [
            product(number, "reviews"),
            ended(f"/reviews/{number}", **moved, final_url=f"{SITE}/r/{number}"),
            ended(f"/r/{number}", **moved, final_url=last.url),
            last,
        ]
        for index in order:
            shop.take(steps[index])
    found = {item["name"]: item for item in shop.items}
    assert found == {f"n{number}": {"name": f"n{number}", "stars": number} for number in range(len(orders))}


def test_redirects_in_a_circle_end(shop: Shop) -> None:
    """Two URLs that redirect to each other."""
    moved = {"outcome": m.Outcome.DROPPED, "reason": "redirect"}
    shop.take(product(1, "reviews"))
    shop.take(ended("/reviews/1", **moved, final_url=f"{SITE}/r"), ended("/r", **moved, final_url=f"{SITE}/reviews/1"))
    assert shop.items[0][MISSING]["reviews"]["why"] == "too many redirects"


def test_many_items_of_many_pages_wait_for_one(shop: Shop) -> None:
    """A list whose items have one second page in common; more of them than are read at a time."""
    mark = {"seller": {"url": f"{SITE}/seller", "why": NOT_YET}}
    for page in range(3):
        shop.take(fetched(f"/list/{page}", [{"n": n, "by": None, MISSING: mark} for n in range(400)], "shop"))
    shop.take(fetched("/seller", [{"by": "Ada"}], "shop/seller"))
    assert [item["by"] for item in shop.items] == ["Ada"] * 1200
    assert not any(MISSING in item for item in shop.items)


def test_an_item_with_two_second_pages(shop: Shop) -> None:
    """Each part goes in beside the other; the mark says which is missing."""
    shop.take(product(1, "reviews", "stock"), part("stock", 1, left=7))
    assert shop.items[0]["left"] == 7
    assert list(shop.items[0][MISSING]) == ["reviews"]
    shop.take(part("reviews", 1, stars=4))
    assert shop.items == [{"name": "n1", "stars": 4, "left": 7}]


def test_pages_that_are_fetched_again(shop: Shop) -> None:
    """A newer part takes the older one's place, a newer item gets the part there is; one that waits no more is left."""
    shop.take(product(1, "reviews"), part("reviews", 1, stars=4))
    again = part("reviews", 1, stars=5)
    again.fetch_no = 2
    shop.take(again)
    assert shop.items == [{"name": "n1", "stars": 5}]
    shop.take(product(1, "reviews", fetch_no=2))
    assert shop.items == [{"name": "n1", "stars": 5}]
    shop.take(fetched("/p/1", [{"name": "other"}], "shop", fetch_no=3))
    newest = part("reviews", 1, stars=1)
    newest.fetch_no = 3
    shop.take(newest)
    assert shop.items == [{"name": "other"}]


def test_the_result_does_not_depend_on_the_order(shop: Shop) -> None:
    """Products, parts and failures of twenty records in random order and random flushes: each as it has to be."""
    chance = random.Random(5)
    records: list[Callable[[], m.Record]] = []
    expected = {}
    for number in range(20):
        records.append(lambda number=number: product(number, "reviews"))
        item: dict[str, Any] = {"name": f"n{number}", "stars": None}
        match number % 4:
            case 0 | 1:
                records.append(lambda number=number: part("reviews", number, stars=number))
                item["stars"] = number
            case 2:
                records.append(lambda number=number: ended(f"/reviews/{number}", m.Outcome.FAILED, "http_500"))
                item[MISSING] = {"reviews": {"url": f"{SITE}/reviews/{number}", "why": "failed(http_500)"}}
            case 3:
                item[MISSING] = {"reviews": {"url": f"{SITE}/reviews/{number}", "why": NOT_YET}}
        expected[item["name"]] = item
    chance.shuffle(records)
    while records:
        shop.take(*(records.pop()() for _ in range(min(len(records), chance.randrange(1, 6)))))
    assert {item["name"]: item for item in shop.items} == expected


def test_hostile_marks_are_fields_like_any(shop: Shop) -> None:
    """What looks like a mark in a text or deeper in an item, or is none, makes nothing wait."""
    sign = '"_incomplete":{"a":{"url":"https://shop.test/x","why":"not fetched yet"}}'
    strange = [
        {"t": sign},
        {"in": {MISSING: {"a": {"url": SITE, "why": NOT_YET}}}},
        {MISSING: {"a": 5, "b": {"url": 7}}},
    ]
    shop.take(fetched("/p/1", strange, "shop"))
    assert shop.items == strange
    assert shop.query("SELECT * FROM waits") == []


def test_parts_are_no_items(shop: Shop, tmp_path: Path) -> None:
    """The table of items and its export hold records, not what completes them."""
    shop.take(product(1, "reviews"), part("reviews", 1, stars=4), part("reviews", 2, stars=9))
    assert len(shop.items) == 1
    with (tmp_path / "out").open("wb") as stream:
        assert export_items(shop.store or tmp_path, "jsonl", stream, JOB) == 1
    assert json.loads((tmp_path / "out").read_text())["data"] == {"name": "n1", "stars": 4}
