"""A stored crawl of a small shop, for the studio: bodies of product pages, a list, and pages of another kind."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from nephila_stores.raw_file import RawPageHead, member

HOST = "http://shop.test"
HEAD = "<!doctype html><html><head><title>{title} - Shop</title>{head}</head><body><nav><a href=/>Shop</a></nav>"


def product(number: int) -> str:
    """A page of the shop; every fifth product has no rating."""
    rating = f"<p class=rating>{number % 5}.5 of 5</p>" if number % 5 else ""
    tags = "".join(f"<li class=tag>{tag}</li>" for tag in ("new", "oak", f"no {number}"))
    return (
        HEAD.format(title=f"Table {number}", head="")
        + f"<main class='css-1x9fQ product'><h1 class=_a8Kz>Table {number}</h1><img src=/img/{number}.jpg alt=Photo>"
        f"<p class=price>${number * 10}.50</p>{rating}<p class=description>A table of oak, number {number}.</p>"
        f"<ul>{tags}</ul><a href=/p/{number + 1}>Next product</a></main></body></html>"
    )


def listing(number: int) -> str:
    """A list of products."""
    boxes = "".join(
        f"<div class=card><h2>Table {one}</h2><span class=price>${one * 10}.50</span><a href=/p/{one}>See</a></div>"
        for one in range(10 * number, 10 * number + 10)
    )
    head = HEAD.format(title="Tables", head="")
    return f"{head}<section class=grid>{boxes}</section><a class=next href=/list/{number + 1}>More</a></body></html>"


def pages(products: int = 24) -> dict[str, str]:
    """URL → HTML."""
    found = {f"{HOST}/p/{number}": product(number) for number in range(1, products + 1)}
    found |= {f"{HOST}/list/{number}": listing(number) for number in range(1, 4)}
    return found | {f"{HOST}/about": HEAD.format(title="About", head="") + "<p>We make tables.</p></body></html>"}


def write(directory: Path, found: dict[str, str]) -> None:
    """The bodies as `--keep-raw` stores them."""
    with (directory / "raw-00000.gz").open("ab") as file:
        for url, text in found.items():
            body = text.encode("utf-8", "replace")
            digest = hashlib.sha256(body).hexdigest()
            head = RawPageHead(
                url=url, content_type="text/html", charset="utf-8", sha256=digest, bytes=len(body), fetched_at=1.7e9
            )
            file.write(gzip.compress(member(head, body)))
