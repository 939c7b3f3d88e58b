"""The <h1> of a page is in its main text: of products in every template of shops, of pages whose title names it."""

from __future__ import annotations

from types import ModuleType

import pytest

NAME = "Walnut writing desk with two drawers"
MENU = "<nav><ul>" + "".join(f"<li><a href=/c{n}>Category {n}</a>" for n in range(15)) + "</ul></nav>"
CARDS = "".join(
    f"<div class=card><a href=/p{n}><img src=/p{n}.jpg>Chair {n}</a><span>€ {n}9</span></div>" for n in range(8)
)
PROSE = (
    "<p>The desk is made of solid walnut from sustainable forests, and each of its drawers is dovetailed by hand. "
    "It has room for a large screen, a lamp and a pile of books, and the oil finish can be renewed at any time.</p>"
) * 3
TABLE = "<table><tr><th>Width<td>140 cm<tr><th>Depth<td>70 cm<tr><th>Colour<td>walnut</table>"


def page(body: str, title: str) -> bytes:
    return f"<!doctype html><title>{title}</title><body><header>{MENU}</header>{body}<footer>{MENU}</footer>".encode()


SHOPS = {
    "beside the picture": f"<main><div class=gallery><img src=a.jpg></div><div class=buy><h1>{NAME}</h1>"
    f"<span>€ 899</span><button>Add to cart</button></div><div class=tabs>{PROSE}{TABLE}</div></main>",
    "without main": f"<div id=product><div class=col><h1 class=title>{NAME}</h1><p>€ 899"
    f"<form><button>Buy</button></form></div><div class=description>{PROSE}</div></div>"
    f"<div class=related>{CARDS}</div>",
    "in a header of its own": f"<div class=page><header class=product-header><h1>{NAME}</h1></header>{PROSE}</div>",
    "as a link": f"<main><h1><a href=/p1>{NAME}</a></h1><p>€ 899</p>{PROSE}</main>",
    "after the crumbs": f"<ul class=breadcrumb><li><a href=/>Home</a><li>{NAME}</ul><h1>{NAME}</h1>"
    f"<p>€ 899{PROSE}{TABLE}",
    "far above the text": f"<main><h1>{NAME}</h1><div class=offers>{CARDS}</div><div>{PROSE}</div></main>",
    "in a sidebar": f"<main><div>{PROSE}</div><aside class=sidebar><h1>{NAME}</h1><p>€ 899</p></aside></main>",
}
TITLES = [f"{NAME} – Desks & Co", f"Buy {NAME.lower()} at Desks & Co", "Desks & Co"]


PAGES = [(shop, title) for shop in SHOPS for title in TITLES]
PAGES.remove(("in a header of its own", "Desks & Co"))  # it may hold the name of the site: the title does not tell


@pytest.mark.parametrize(("shop", "title"), PAGES)
def test_the_name_of_a_product_is_never_lost(core: ModuleType, shop: str, title: str) -> None:
    found = core.page_pass(page(SHOPS[shop], title), "http://shop.test/p", "utf-8")
    assert found.main_text.decode().split("\n").count(NAME) == 1
    assert "dovetailed" in found.main_text.decode()


def test_the_name_of_the_site_is_no_heading(core: ModuleType) -> None:
    logo = "<header class=site-header><h1 class=logo><a href=/>Desks &amp; Co</a></h1></header>"
    body = f"{logo}<main><h2>{NAME}</h2>{PROSE}</main>"
    found = core.page_pass(page(body, f"{NAME} | Desks &amp; Co"), "http://shop.test/p", "utf-8")
    assert "Desks & Co" not in found.main_text.decode()
