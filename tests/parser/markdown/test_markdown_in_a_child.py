"""Markdown of pages with many tags: made in a child process, equal to that of the loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, PAGES, RECORDS
from nephila.native import page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.markdown import MAX_LOOP_TAGS, document_markdown
from nephila.parser.sandbox import Sandbox
from nephila.parser.service import Parser

TEXT = "The harbour was closed for a week, and <b>ships</b> waited outside until the storm was over."
LONG = "<title>t</title><h1>Harbour</h1>" + f"<p>{TEXT} <a href='/x'>More</a></p>" * (MAX_LOOP_TAGS // 4)


async def record_of(body: bytes, parser: Parser, bus: LocalBus, **fields: Any) -> m.Record:
    """The record of a page."""
    found: asyncio.Future[m.Record] = asyncio.get_running_loop().create_future()

    def take(delivery: Any) -> None:
        found.set_result(delivery.message)
        delivery.ack()

    bus.subscribe(RECORDS, "reader", take, credits=10)
    await parser.start()
    bus.publish(JOBS, 0, m.CrawlJob(uid="j", parse=m.Parse(**fields)))
    page = m.Page(job="j", body=body, url="http://a.test/", url_key=bytes(16), content_type="text/html")
    bus.publish(PAGES, 0, page)
    try:
        return await asyncio.wait_for(found, 30)
    finally:
        await parser.close()


def make() -> tuple[Parser, LocalBus]:
    """A parser that makes Markdown."""
    bus = LocalBus(ManualClock())
    return Parser(ParserConfig(markdown=True), bus, bus.clock, page_pass, sniff_encoding, Sandbox()), bus


@pytest.mark.parametrize("follow", [(), ("canonical",)])
async def test_a_page_with_many_tags(follow: tuple[str, ...]) -> None:
    """The loop does not convert it; the row has the same Markdown, also where a child reads its extra links."""
    parser, bus = make()
    record = await record_of(LONG.encode(), parser, bus, follow=follow)
    assert bytes(record.markdown) == document_markdown(LONG.encode(), "http://a.test/", "text/html", "")
    assert b"**ships**" in bytes(record.markdown)


async def test_a_child_that_cannot_convert(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is stored without Markdown and names the reason."""
    parser, bus = make()

    async def fail(*_: Any) -> bytes:
        raise ValueError("no memory")

    monkeypatch.setattr(parser._child_queue, "run", fail)
    record = await record_of(LONG.encode(), parser, bus)
    assert not record.markdown
    assert "no memory" in record.meta
    assert record.outcome is m.Outcome.STORED
