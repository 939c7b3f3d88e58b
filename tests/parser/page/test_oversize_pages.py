"""Very long pages are read in a child process, and come out as if they had been read in place."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS
from nephila.native import PassOptions, page_pass, sniff_encoding
from nephila.parser import steps
from nephila.parser.config import ParserConfig
from nephila.parser.page.oversize import PAGE, FoundPass, decode_result, payload_of, run
from nephila.parser.sandbox import Sandbox
from nephila.parser.service import Parser

from tests.jobs import crawl_job

HTML = (
    '<!doctype html><html lang="de"><head><meta charset="windows-1252"><title>Größe</title>'
    '<meta name="description" content="Says it"><link rel="canonical" href="/c"></head><body>'
    + "".join(f'<p>Line {n}, ß <a href="/x/{n}?b=1&amp;a=2">link {n}</a></p>' for n in range(3_000))
).encode("cp1252")


async def read(body: bytes, **settings: Any) -> list[m.Outlinks | m.Record]:
    """What a parser with the real core publishes for a page."""
    bus = LocalBus(ManualClock())
    log: list[m.Outlinks | m.Record] = []

    def take(delivery: Any) -> None:
        log.append(delivery.message)
        delivery.ack()

    for topic in (OUTLINKS, RECORDS):
        bus.subscribe(topic, "reader", take, credits=100)
    parser = Parser(ParserConfig(**settings), bus, bus.clock, page_pass, sniff_encoding, Sandbox())
    await parser.start()
    bus.publish(JOBS, 0, crawl_job(uid="j", links=True))
    fields = {"job": "j", "url": "http://a.test/", "url_key": bytes(16), "content_type": "text/html", "depth": 1}
    bus.publish(PAGES, 0, m.Page(body=body, **fields))
    try:
        async with asyncio.timeout(60):
            await parser.drain(30.0)
    finally:
        await parser.close()
    assert bus.unacked == 0
    return log


async def test_a_long_page_comes_out_the_same() -> None:
    """Text, title, links and metadata, in the same order of messages."""
    here, there = await read(HTML), await read(HTML, max_inline_bytes=1_000)
    assert [type(one) for one in there] == [m.Outlinks, m.Record]
    assert here == there
    record = there[1]
    assert isinstance(record, m.Record)
    assert (record.title, json.loads(record.meta)["encoding"]) == ("Größe", "windows-1252")


async def test_a_long_page_that_breaks_its_process_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two tries, with the reason."""
    monkeypatch.setattr(steps, "PAGE", replace(PAGE, module="tests.parser.sandbox_tasks"))
    monkeypatch.setattr(steps, "payload_of", lambda *page, **options: b"abort")
    (record,) = await read(HTML, max_inline_bytes=1_000)
    assert isinstance(record, m.Record)
    assert (record.outcome, record.reason) == (m.Outcome.FAILED, "dead_letter")
    assert "crash" in record.meta


def answer(**changed: Any) -> bytes:
    """What a child sends for a page with three links, with something else in its place."""
    links = b"".join(b"<a href=/%d>%d</a>" % (n, n) for n in range(3))
    options = PassOptions(max_links=100, max_text_bytes=1_000)
    found = msgspec.msgpack.decode(run(payload_of(b"<title>T</title>" + links, "http://a.test/", "", options)))
    return msgspec.msgpack.encode({**found, **changed})


def test_the_pass_travels_whole() -> None:
    """Every attribute that a page pass has."""
    found = decode_result(answer())
    assert (found.title, found.link_count, len(found.fingerprints)) == ("T", 3, 48)
    assert found.link_urls == b"http://a.test/0http://a.test/1http://a.test/2"
    assert set(FoundPass.__struct_fields__) >= {"title", "text", "meta", "anchors", "link_flags"}


@pytest.mark.parametrize(
    "changed",
    [
        {"link_count": 4},
        {"link_count": -1},
        {"fingerprints": b"x" * 47},
        {"link_ends": b"\xff" * 12},
        {"anchor_ends": b"\x05\0\0\0\x01\0\0\0\x03\0\0\0"},
        {"link_urls": b""},
        {"link_flags": b"1234"},
        {"text": b"\xff\xfe"},
        {"title": 5},
        {"meta": [["a"]]},
    ],
)
def test_an_answer_that_does_not_agree_is_not_taken(changed: dict[str, Any]) -> None:
    """Counts, ends, encodings and types are checked."""
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        decode_result(answer(**changed))
