"""A difference that the job ignores is no change: by expressions, by selectors, or by the fields of items."""

from __future__ import annotations

import json

import pytest
from nephila.kernel.documents.job_schema import Changes, Ignore
from nephila.native import PassOptions, page_pass
from nephila.parser.page.comparison import hash_of_fields, hash_of_text, text_without

from tests.jobs import crawl_job
from tests.parser.parser_room import Room

PAGE = "<title>t</title><h1>Tea</h1><p>Words about tea.</p><p class=counter>{n} visitors</p><div class=ad>ad {n}</div>"


async def hashes(ignore: Ignore, *pages: str, **options) -> list[bytes]:
    """Hashes of pages of a job."""
    room = await Room(page_pass).start(crawl_job(uid="j", changes=Changes(ignore=ignore), **options))
    return [room.record(body=page.encode()).text_hash for page in pages]


@pytest.mark.parametrize(
    ("ignore", "is_same"),
    [
        (Ignore(), False),
        (Ignore(expressions=[r"\d+ visitors", r"ad \d+"]), True),
        (Ignore(expressions=[r"\d+ visitors"]), False),
        (Ignore(selectors=[".counter", "div.ad"]), True),
        (Ignore(selectors=[".counter"]), False),
        (Ignore(selectors=[".counter"], expressions=[r"(?m)^ad \d+$"]), True),
        (Ignore(selectors=["body"]), True),
        (Ignore(only_fields=["price"]), False),
    ],
)
async def test_what_is_ignored_is_no_change(ignore: Ignore, is_same: bool) -> None:
    one, other = await hashes(ignore, PAGE.format(n=1), PAGE.format(n=22))
    assert (one == other) == is_same
    assert len(one) == 8


async def test_another_change_is_one() -> None:
    """The rest of the page counts, also where no text is stored."""
    one, other = await hashes(Ignore(selectors=[".counter", ".ad"]), PAGE, PAGE.replace("about", "of"))
    assert one != other


def test_elements_within_others_are_left_out_with_them() -> None:
    body = b"<div class=a>x<div class=a>y<b class=c>z</b></div></div><p>kept"
    options = {"max_links": 0, "max_text_bytes": 1000, "main_text": True, "agent": ""}
    text = text_without(
        body,
        "utf-8",
        [".c", ".a", ".a .a", "b"],
        lambda one: page_pass(one, "http://a.test/", "utf-8", PassOptions(**options)),
        True,
    )
    assert text.strip() == b"kept"


def test_items_are_compared_by_the_fields_that_are_named() -> None:
    items = [{"price": {"amount": 1}, "seen": n, "name": "a"} for n in range(2)]
    one, other = ([json.dumps(item).encode()] for item in items)
    assert hash_of_fields(one, ["price.amount", "name"]) == hash_of_fields(other, ["price.amount", "name"])
    assert hash_of_fields(one, ["price.amount", "seen"]) != hash_of_fields(other, ["price.amount", "seen"])
    assert hash_of_fields(one * 2, ["name"]) != hash_of_fields(one, ["name"])


def test_a_hash_of_nothing_is_one() -> None:
    assert len(hash_of_text(b"1 visitor", [r"\d+ visitor"])) == 8
    assert hash_of_text(b"a\n 1\nb", [r"\d"]) == hash_of_text(b"a\nb", [])
