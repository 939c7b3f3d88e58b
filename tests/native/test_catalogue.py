"""Entries with a price are more probable on pages that declare no product or article; lines around a product less."""

from __future__ import annotations

import pytest
from nephila.native import page_pass

from tests.native.conftest import load

PROSE = "The desk is made of solid walnut, and each of its drawers is dovetailed by hand. " * 3
PRODUCT = '<script type="application/ld+json">{"@type": "Product", "name": "Desk"}</script>'
UNSURE, UNLIKELY, SURE = 100, -400, 6000


def main_text(head: str, body: str) -> list[str]:
    """The main text if prose is certain, what has no price unlikely, and an aside just probable."""
    html = f"<title>Desks</title>{head}<body>{body}".encode()
    lines = page_pass(html, "http://a.test/", "utf-8").text.decode().split("\n")
    scores = [SURE if line in PROSE else UNSURE if line.startswith("Aside") else UNLIKELY for line in lines]
    return load("rust").main_text_by(html, "utf-8", scores).decode().split("\n")


def cards(count: int, price: str) -> str:
    return "".join(f"<div class=card><p>Chair {n}</p><p>{price}</p></div>" for n in range(count))


@pytest.mark.parametrize("price", ["$ 49", "49,00 €", "£49.50", "₹ 4,900", "ab ¥49"])
def test_entries_with_a_price_are_more_probable(price: str) -> None:
    text = main_text("", cards(4, price) + f"<p>{PROSE}")
    assert ("Chair 0" in text, price in text) == (True, True)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", cards(3, "$ 49")),
        ("", cards(9, "49 pieces")),
        ("", cards(9, "$ each")),
        (PRODUCT, cards(9, "$ 49")),
        ("<meta property=og:type content=article>", cards(9, "$ 49")),
    ],
)
def test_others_are_not(head: str, body: str) -> None:
    assert "Chair 0" not in main_text(head, body + f"<p>{PROSE}")


@pytest.mark.parametrize(
    ("head", "stays"),
    [
        ("", True),
        (PRODUCT, False),
        ("<meta property=og:type content=product>", False),
        (PRODUCT * 4, True),
        (PRODUCT + PRODUCT.replace("Product", "ItemList"), True),
    ],
)
def test_a_line_beside_a_product_is_less_probable(head: str, stays: bool) -> None:
    """Of a list of products it is not."""
    text = main_text(head, f"<div>Aside: what others have bought with it</div><p>{PROSE}</p>")
    assert ("Aside: what others have bought with it" in text) is stays


def test_a_hostile_nest_of_prices_takes_no_long() -> None:
    html = ("<div>" * 500 + "$1" + "</div>" * 500) * 300
    assert main_text("", html)
