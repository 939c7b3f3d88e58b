"""A stored shop with styles: a style sheet that imports another one, pictures, SVG; a server has the files."""

# ruff: noqa: E501

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.console import shop
from tests.console.asked_site import asked_site

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP49e0dAAXMAt9NjFIKAAAAAElFTkSuQmCC")
SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='160' height='120' onload='run()'><script>run()</script>"
    "<rect width='160' height='120' fill='#c9b79c'/><rect x='20' y='45' width='120' height='14' fill='#6b4f2a'/>"
    "<rect x='30' y='59' width='10' height='45' fill='#6b4f2a'/><rect x='120' y='59' width='10' height='45' fill='#6b4f2a'/></svg>"
)
SHEET = """@import "/css/colours.css";
body { margin: 0; font: 16px/1.5 Georgia, serif; color: var(--ink); background: var(--paper) url(/img/paper.png) }
header { display: flex; gap: 2rem; padding: 1rem 2rem; background: #3b2f20; color: #fff } header a { color: #f2e3c6 }
main { display: grid; grid-template-columns: 1fr 2fr; gap: 2rem; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
.photo { width: 100% } .price { font: 700 2rem/1.2 sans-serif; color: #a33b1f; padding: 1rem; border: 2px solid }
.stock { color: #2a6b34 } .tag { display: inline-block; background: #eadfc8; border-radius: 1rem; padding: .1rem .8rem; margin: .2rem }
@media (max-width: 30rem) { main { grid-template-columns: 1fr } }
"""
COLOURS = ":root { --ink: rgb(38, 30, 20); --paper: rgb(250, 246, 238) }"
FILES: dict[str, str | bytes] = {
    "/css/shop.css": SHEET,
    "/css/colours.css": COLOURS,
    "/img/paper.png": PIXEL,
    "/img/table.svg": SVG,
}


def product(base: str, number: int, *, data: bool = True) -> str:
    """A page of the shop; `data`: it states its facts as JSON-LD."""
    facts = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": f"Table {number}",
        "image": f"{base}/img/table.svg",
        "offers": {"price": f"{number * 10}.50", "priceCurrency": "USD", "availability": "https://schema.org/InStock"},
        "aggregateRating": {"ratingValue": f"4.{number % 10}"},
    }
    stated = f'<script type="application/ld+json">{json.dumps(facts)}</script>'
    tags = "".join(f"<span class=tag>{tag}</span>" for tag in ("oak", "new", f"no {number}"))
    return (
        f"<!doctype html><html lang=en><head><title>Table {number} - Shop</title>{stated if data else ''}"
        f"<link rel=stylesheet href='{base}/css/shop.css'></head><body><header><b>Oak &amp; Sons</b>"
        f"<a href=/list/1>Tables</a><a href=/about>About</a></header><main><img class=photo src='{base}/img/table.svg' alt=Photo>"
        f"<div class=facts><h1>Table {number}</h1><p class=price>${number * 10}.50</p><p class=stock>In stock</p>"
        f"<p class=rating>4.{number % 10} of 5</p><p>A table of oak, number {number}, made by hand in the village.</p>{tags}"
        f"<p><a href=/p/{number + 1}>Next product</a></p></div></main></body></html>"
    )


@asynccontextmanager
async def styled_shop(directory: Path, *, data: bool = True) -> AsyncIterator[tuple[str, list[str]]]:
    """The base URL of the files, and the paths that were asked for; the pages are stored in the directory."""
    async with asked_site(lambda path: FILES.get(path, "no such file")) as (base, asked):
        pages = {f"{shop.HOST}/s/{number}": product(base, number, data=data) for number in range(1, 13)}
        shop.write(directory, pages)
        yield base, asked
