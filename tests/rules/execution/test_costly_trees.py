"""Pages whose tree takes a time that grows with their square: never in the loop, ended in a child, said of the row."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS
from nephila.native import PassOptions, page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.links import extra_links, extra_links_child
from nephila.parser.page.html_tree import tree_fits
from nephila.parser.sandbox import Sandbox
from nephila.parser.service import Parser
from nephila.parser.single import child as extract_child
from nephila.parser.single.extract import extract
from nephila_rules.run_rule import RuleRunner
from nephila_rules.runtime import document, task
from nephila_rules.stored_pages import StoredPage

from tests.jobs import crawl_job
from tests.rules.execution.rule_rig import rule as rule_of

LINK = '<link rel=next href="/next">'
FORMATTING = LINK + "".join(f"<p><b id={n}><i><u><a href=x{n}>y</p>" for n in range(40))
"""Small enough to end at once, of a kind that has no bound."""
QUADRATIC = {
    "formatting": lambda n: "<b><i><u><a>x" * n,
    "in a marker": lambda n: "".join(f"<p><b id={k}></p><object></b></object>" for k in range(n)),
    "attributes of <html>": lambda n: "".join(f"<html a{k}>" for k in range(n)),
    "text": lambda n: "x <td id=1>" * (n * 3),
    "depth": lambda n: "<div><i>" * n,
}


@pytest.mark.parametrize("shape", QUADRATIC)
def test_none_is_for_the_loop(shape: str) -> None:
    """The page pass names no depth for them, and without one no tree is built there."""
    body = QUADRATIC[shape](6_000).encode()
    found = page_pass(body, "http://a.test/", "utf-8", PassOptions(main_text=False))
    assert not tree_fits(len(body), found.depth)


def test_options_are_linear() -> None:
    """100,000 options in one select are a tree within a second, in every place that builds one."""
    body = b"<select>" + b"<option>x" * 100_000
    assert len(document.html_tree(body).css("option")) == 100_000


async def crawled(body: bytes, follow: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], m.Record]:
    """URLs of the links, and the record, of a page in a service that may build no tree in its own process."""

    def here(*_: Any) -> Any:
        raise AssertionError("a tree in the loop")

    monkeypatch.setattr("nephila.parser.steps.tree_of", here)
    clock = ManualClock()
    bus = LocalBus(clock)
    parser = Parser(ParserConfig(), bus, clock, page_pass, sniff_encoding, Sandbox())
    links: list[m.Outlinks] = []
    records: list[m.Record] = []
    bus.subscribe(OUTLINKS, "t", lambda d: (links.append(d.message), d.ack()), credits=100)
    bus.subscribe(RECORDS, "t", lambda d: (records.append(d.message), d.ack()), credits=100)
    await parser.start()
    bus.publish(JOBS, 0, crawl_job(uid="j", parse=Parse(follow=follow)))
    bus.publish(PAGES, 0, m.Page(job="j", url="http://a.test/", url_key=b"k" * 16, body=body, content_type="text/html"))
    try:
        async with asyncio.timeout(60):
            await parser.drain(30.0)
    finally:
        await parser.close()
    return [url for one in links for url in urls_of(one)], records[0]


def urls_of(links: m.Outlinks) -> list[str]:
    """The URLs of a message."""
    ends = memoryview(links.url_ends).cast("I").tolist()
    return [links.urls[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]


async def test_further_links_come_from_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of <link> are found, and those of the page pass as ever."""
    urls, record = await crawled(FORMATTING.encode(), ["next"], monkeypatch)
    assert "http://a.test/next" in urls
    assert "http://a.test/x39" in urls
    assert "links_problem" not in record.meta


async def test_a_child_that_is_killed_costs_the_page_its_further_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is stored with its own links, and says what it lacks."""
    monkeypatch.setattr(extra_links_child, "EXTRA_LINKS", replace(extra_links_child.EXTRA_LINKS, wall_s=0.3))
    body = LINK + '<a href="/own">x</a>' + QUADRATIC["formatting"](80_000)
    urls, record = await crawled(body.encode(), ["next"], monkeypatch)
    assert urls == ["http://a.test/own"]
    assert "timeout" in json.loads(record.meta)["links_problem"]
    assert record.outcome == m.Outcome.STORED


def test_extract_goes_on_without_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """`nephila extract` reads such a page in a child; where that is killed it has all but what needs a tree."""
    assert extract((FORMATTING + "<img src=/p.png>").encode(), "http://a.test/")["images"] == ["http://a.test/p.png"]
    monkeypatch.setattr(extract_child, "EXTRACT", replace(extract_child.EXTRACT, wall_s=0.3))
    found = extract(("<title>T</title>" + QUADRATIC["formatting"](80_000)).encode(), "http://a.test/")
    assert found["title"] == "T"
    assert "timeout" in found["problem"]


def test_rules_of_commands_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that asks for a selector in the content, its extraction and its near matches: each within its time."""
    monkeypatch.setattr(task, "RULES", replace(task.RULES, wall_s=0.3))
    rule = rule_of("match: {url: '^http', content: {css: p}}\nfields: {x: {css: '.none p'}}")
    costly = StoredPage("http://a.test/", "text/html", "", QUADRATIC["formatting"](80_000).encode(), "p.html")
    with RuleRunner() as runner:
        chosen, found = runner.run_first([rule], costly)
        assert chosen is rule
        assert "timeout" in found.problems[0]
        assert runner.hints(rule, costly, ["x"]) == {}
        page = replace(costly, body=b"<div><p>near</p></div>")
        assert runner.run_first([rule], page)[0] is rule
        assert "near" in str(runner.hints(rule, page, ["x"]))


def test_what_a_child_sends_is_checked() -> None:
    """Links of kinds that nobody asked for are refused."""
    good = extra_links_child.run(extra_links_child.payload_of(LINK.encode(), "utf-8", "http://a.test/", ["next"]))
    assert extra_links_child.decode_result(good)[0][0] == extra_links.LINK_ELEMENT
    with pytest.raises(ValueError, match="not requested"):
        extra_links_child.decode_result(good.replace(bytes((extra_links.LINK_ELEMENT,)), b"\x7e", 1))
