"""The table of items: columns and filters stand in the address, money is one column, heads say what fields hold."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from urllib.parse import urlencode

import pytest
from lxml import html
from nephila_console.screens.item_columns import columns_of
from nephila_control.access.roles import Role

from tests.console.asked_site import asked_site
from tests.console.console_rig import console
from tests.console.styled_shop import PIXEL

ITEMS = (
    {"name": "Lamp", "price": {"amount": 19.5, "currency": "EUR"}, "stock": 3},
    {"name": "Desk", "price": {"amount": 240, "currency": "EUR"}, "stock": 0},
    {"name": "Rug", "price": {"amount": 80, "currency": "CHF"}, "stock": None},
)


@pytest.fixture
async def browser(tmp_path):
    """A console over four items: one of the rig and three with money."""
    async with console(tmp_path) as rig:
        with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
            (key,) = database.execute("SELECT url_key FROM items").fetchone()
            database.execute("DELETE FROM items")
            rows = [("news", key, "shop", 1, number, json.dumps(item)) for number, item in enumerate(ITEMS)]
            database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.commit()
        yield await rig.opened()


def heads(screen):
    """Titles of the columns, after those of page and rule."""
    return [head.xpath("string(a/bdi)") for head in screen.xpath("//table[contains(@class,'grid')]//thead//th")[2:]]


async def get(browser, query=""):
    answer = await browser.get(f"/console/items{query}")
    assert answer.status_code == 200
    return html.fromstring(answer.text)


async def test_amount_and_currency_are_one_column(browser):
    screen = await get(browser)
    assert heads(screen) == ["name", "price", "stock"]
    cells = [cell.text_content().strip() for cell in screen.xpath("//tbody//td[@data-name='price']")]
    assert cells == ["19.5 EUR", "240 EUR", "80 CHF"]
    assert [row.xpath("string(td[2])") for row in (await get(browser, "?sort=-price.amount")).xpath("//tbody/tr")] == [
        "Desk",
        "Rug",
        "Lamp",
    ]


def test_an_amount_without_a_currency_stays_a_field():
    (column,) = columns_of(["price.amount"], {}, [{"price.amount": 3}])
    assert (column.title, column.text({"price.amount": 3})) == ("price.amount", "3")


async def test_the_head_of_a_column_says_what_its_field_holds(browser):
    screen = await get(browser)
    profiles = [one.text_content().strip() for one in screen.xpath("//thead//span[@class='profile']/span")]
    assert profiles == ["100 % · 3 values", "100 % · 19.5–240", "67 % · 0–3"]
    assert screen.xpath("string(//h1/span[@class='count'])") == "3"


async def test_chosen_columns_stand_in_the_address_and_stay_with_the_next_step(browser):
    screen = await get(browser, "?col=stock&col=name")
    assert heads(screen) == ["name", "stock"]
    (sort,) = screen.xpath("//thead//th[3]/a/@href")
    assert "col=name&col=stock" in sort
    assert heads(await get(browser, sort.removeprefix("/console/items"))) == ["name", "stock"]


async def test_filters_add_up_and_each_is_removed_by_its_chip(browser):
    first = await get(browser, "?field=price.amount&test=above&value=50")
    assert len(first.xpath("//tbody/tr")) == 2
    (where,) = first.xpath("//form[@class='filters']/input[@name='where']/@value")
    assert json.loads(where) == [["price.amount", "above", "50"]]
    both = await get(browser, "?" + urlencode({"where": where, "field": "name", "test": "contains", "value": "des"}))
    assert [row.xpath("string(td[2])") for row in both.xpath("//tbody/tr")] == ["Desk"]
    chips = both.xpath("//p[contains(@class,'filter-chips')]/a[not(@class)]/@href")
    assert len(chips) == 2
    without_first = await get(browser, chips[0].removeprefix("/console/items"))
    assert [row.xpath("string(td[2])") for row in without_first.xpath("//tbody/tr")] == ["Desk"]
    assert len((await get(browser, chips[1].removeprefix("/console/items"))).xpath("//tbody/tr")) == 2


async def test_a_filter_that_cannot_compare_is_a_line_and_can_be_removed(browser):
    answer = await browser.get("/console/items?field=price.amount&test=above&value=cheap")
    assert answer.status_code == 400
    screen = html.fromstring(answer.text)
    assert "is not a number" in screen.get_element_by_id("problem").text_content()
    assert screen.xpath("//p[contains(@class,'filter-chips')]/a")


@pytest.mark.parametrize("where", ["x", "[1]", '[["a"]]', '[["a","b","c"]]', "[" * 3000, '{"a":1}'])
async def test_an_address_that_somebody_has_changed_filters_nothing(browser, where):
    assert len((await get(browser, "?" + urlencode({"where": where}))).xpath("//tbody/tr")) == 3


async def test_an_export_has_the_filters_and_every_field(browser):
    screen = await get(browser, "?col=name&field=price.amount&test=above&value=50")
    links = {link.rpartition("items.")[2][:3]: link for link in screen.xpath("//a[@download]/@href")}
    assert sorted(links) == ["csv", "jso", "par"]
    lines = (await browser.get(links["csv"])).text.splitlines()
    assert len(lines) == 3
    assert "price.currency" in lines[0]


async def test_a_column_of_pictures_is_shown_by_this_server_alone(tmp_path):
    """An editor sees small pictures; a viewer, who may fetch nothing, sees their addresses."""
    async with (
        asked_site(lambda path: PIXEL if path == "/lamp.png" else "<html><script>run()</script>") as (base, asked),
        console(tmp_path, **{"dns.allow_private": True}) as rig,
    ):
        with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
            for column, name in (("image", "lamp.png"), ("photo", "page.png")):
                database.execute("UPDATE items SET data = json_set(data, ?, ?)", (f"$.{column}", f"{base}/{name}"))
            database.commit()
        browser = await rig.opened()
        image, photo = (await get(browser)).xpath("//tbody//img/@src")
        answer = await browser.get(image)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
        assert "sandbox" in answer.headers["content-security-policy"]
        assert (await browser.get(photo)).status_code == 404
        wrong_field, wrong_rule = image.replace("field=image", "field=name"), image.replace("rule=shop", "rule=x")
        for wrong in (wrong_field, wrong_rule, "/console/items/picture"):
            assert (await browser.get(wrong)).status_code == 404
        viewer = rig.of_role(Role.VIEWER)
        screen = await get(viewer)
        assert not screen.xpath("//tbody//img")
        assert f"{base}/lamp.png" in screen.text_content()
        fetches = len(asked)
        assert (await viewer.get(image)).status_code == 404
        assert len(asked) == fetches
