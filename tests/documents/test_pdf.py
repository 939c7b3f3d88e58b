"""PDFs in a child process: text, title, dates, links; a PDF that cannot be read gives a reason and delays no page."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.parser import steps
from nephila.parser.documents.content import DocumentContent, decode_result
from nephila.parser.documents.pdf_task import PDF, pdf_payload
from nephila.parser.sandbox import BlockingSandbox, ChildError, Sandbox
from nephila.parser.sandbox.child_queue import ChildProcessQueue

from tests.jobs import crawl_job
from tests.parser.parser_room import FakePass, Room
from tests.parser.pdfs import bomb, pdf
from tests.waits import until

INFO = "/Title(A paper)/Author(Ann Author)/CreationDate(D:20240131120000+01'00')/ModDate(D:2024)"


@asynccontextmanager
async def started(*jobs: m.CrawlJob, **settings: Any) -> AsyncIterator[Room]:
    """A room whose children are ended with it."""
    room = await Room(FakePass(title="next"), **settings).start(*jobs)
    try:
        yield room
    finally:
        await room.parser.close()
        assert room.sandbox.pids == []


async def settled(room: Room, count: int = 1) -> list[m.Outlinks | m.Record]:
    """What was published, once `count` records are among it."""
    await until(lambda: sum(isinstance(one, m.Record) for one in room.log) >= count, 30.0)
    return room.log


async def test_pdf_becomes_text_metadata_and_links() -> None:
    """Links before the record, one level deeper; the row is typed and hashed as any."""
    body = pdf("Hello there", "Second page, see http://b.test/y", info=INFO, link="/x")
    async with started(crawl_job(uid="j", links=True)) as room:
        assert room.send(body, content_type="application/pdf", depth=2) == []
        links, record = await settled(room)
        assert isinstance(links, m.Outlinks)
        assert isinstance(record, m.Record)
        assert (links.urls, links.depth) == (b"http://a.test/xhttp://b.test/y", 3)
        assert record.links is not None
        assert record.text.decode() == "Hello there\nSecond page, see http://b.test/y"
        assert (record.title, record.outcome, record.size_bytes) == ("A paper", m.Outcome.STORED, len(body))
        assert (len(record.sha256), len(record.text_hash)) == (32, 8)
        meta = json.loads(record.meta)
        assert meta == {
            "author": "Ann Author",
            "published": "2024-01-31T12:00:00+01:00",
            "modified": "2024",
            "pages": "2",
        }
        assert room.bus.unacked == 0


async def test_bytes_decide_where_the_type_is_wrong() -> None:
    """A PDF sent as HTML is a PDF."""
    async with started() as room:
        room.send(pdf("Hello"), content_type="text/html")
        (record,) = await settled(room)
        assert isinstance(record, m.Record)
        assert (record.text, json.loads(record.meta)["sniffed_type"]) == (b"Hello", "application/pdf")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "broken: not a whole PDF"),
        (b"%PDF-1.7\n", "broken: not a whole PDF"),
        (pdf("Hello")[:200], "broken: not a whole PDF"),
        (pdf("Hello", encrypted=True), "encrypted: a password is needed"),
        (b"%PDF-1.4\n" + bytes(range(256)) * 100, "broken: not a whole PDF"),
    ],
    ids=["empty", "head", "torn", "encrypted", "noise"],
)
async def test_what_cannot_be_read_is_a_row_with_a_reason(body: bytes, problem: str) -> None:
    """The row is stored, without text: the page was fetched."""
    async with started() as room:
        room.send(body, content_type="application/pdf")
        (record,) = await settled(room)
        assert isinstance(record, m.Record)
        assert (record.outcome, record.text, json.loads(record.meta)["problem"]) == (m.Outcome.STORED, b"", problem)


async def test_stall_is_tried_twice_then_a_dead_letter_and_the_next_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two children are killed; pages behind it are parsed meanwhile and after."""
    task = replace(PDF, module="tests.parser.sandbox_tasks", wall_s=1.0)
    monkeypatch.setattr(steps, "PDF", task)
    monkeypatch.setattr(steps, "pdf_payload", lambda body, *limits: body.removeprefix(b"%PDF-"))
    answer = msgspec.msgpack.encode(DocumentContent(text=b"fine"))
    async with started() as room:
        room.send(b"%PDF-spin", content_type="application/pdf", url="http://a.test/bad")
        room.send(b"%PDF-echo " + answer, content_type="application/pdf", url="http://a.test/good")
        assert room.record(b"<p>", url="http://a.test/page").title == "next"
        await settled(room, 3)
        rows = {one.url: one for one in room.log if isinstance(one, m.Record)}
        bad, good = rows["http://a.test/bad"], rows["http://a.test/good"]
        assert (bad.outcome, bad.reason) == (m.Outcome.FAILED, "dead_letter")
        assert json.loads(bad.meta)["error"] == "ChildError: pdf: timeout (after 1 s), tried 2 times"
        assert (good.outcome, good.text) == (m.Outcome.STORED, b"fine")
        assert [(one.url, one.topic, one.attempts) for one in room.dead] == [("http://a.test/bad", "pages", 2)]
        assert (room.sandbox.replaced, room.parser.failed, room.bus.unacked) == (2, 1, 0)


@pytest.mark.parametrize("act", [b"abort", b"eat", b"raise", b"echo nonsense"])
async def test_crash_memory_and_forged_answers_end_the_same(act: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, one dead letter, nothing unacked."""
    monkeypatch.setattr(steps, "PDF", replace(PDF, module="tests.parser.sandbox_tasks", memory_bytes=64 << 20))
    monkeypatch.setattr(steps, "pdf_payload", lambda body, *limits: act)
    async with started() as room:
        room.send(b"%PDF-", content_type="application/pdf")
        (record,) = await settled(room)
        assert isinstance(record, m.Record)
        assert (record.outcome, record.reason, len(room.dead)) == (m.Outcome.FAILED, "dead_letter", 1)
        assert room.bus.unacked == 0


async def test_missing_library_is_told_in_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with the page: it is stored, and says why it has no text."""
    monkeypatch.setattr(steps, "PDF", replace(PDF, module="no_such_library_here"))
    async with started() as room:
        room.send(b"%PDF-", content_type="application/pdf")
        (record,) = await settled(room)
        assert isinstance(record, m.Record)
        assert record.outcome == m.Outcome.STORED
        assert "no_such_library_here" in json.loads(record.meta)["problem"]


async def test_end_of_the_program_leaves_a_page_unacked() -> None:
    """It is delivered or fetched again; no row says that it has failed."""
    async with started() as room:
        room.send(pdf("Hello"), content_type="application/pdf")
        await asyncio.sleep(0)
        await room.parser.close()
        assert (room.log, room.dead, room.bus.unacked) == ([], [], 1)


async def test_drain_waits_for_what_is_under_way() -> None:
    """Within its grace period."""
    async with started() as room:
        room.send(pdf("Hello"), content_type="application/pdf")
        await room.parser.drain(30.0)
        assert len(room.log) == 1


async def test_a_second_word_ends_a_drain_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is in a hurry does not wait for a document; its page stays unacked."""
    monkeypatch.setattr(steps, "PDF", replace(PDF, module="tests.parser.sandbox_tasks"))
    monkeypatch.setattr(steps, "pdf_payload", lambda body, *limits: b"sleep 60")
    async with started() as room:
        room.send(b"%PDF-", content_type="application/pdf")
        draining = asyncio.ensure_future(room.parser.drain(60.0))
        await until(lambda: room.sandbox.pids)
        assert not draining.done()
        await room.parser.drain(0.0)
        async with asyncio.timeout(30):
            await draining
        assert room.bus.unacked == 1


async def test_bodies_beyond_a_bound_wait_on_disk() -> None:
    """What waits holds no more memory than it may, and comes back whole."""
    elsewhere = ChildProcessQueue(Sandbox(), spool_bytes=100)
    bodies = [bytes([number]) * 60 for number in range(4)]
    held = [elsewhere.spool(body) for body in bodies]
    assert elsewhere.waiting_bytes == 60
    assert [one.take() for one in held] == bodies
    assert elsewhere.waiting_bytes == 0
    await elsewhere.close()


def test_bomb_costs_no_more_than_its_limits() -> None:
    """Contents packed a million times smaller end by memory, time or pdfium's own limits, and soon."""
    body = bomb(400)
    assert len(body) < 100_000
    task = replace(PDF, wall_s=2.0, memory_bytes=256 << 20)
    before = time.monotonic()
    with BlockingSandbox() as box:
        reason = ""
        try:
            assert len(box.call(task, pdf_payload(body, 10_000, 10)).text) <= 10_000
        except ChildError as broken:
            reason = broken.reason
        assert reason in ("", "timeout", "memory", "crash")
        assert box.call(PDF, pdf_payload(pdf("after"), 1_000, 10)).text == b"after"
    assert time.monotonic() - before < 60


def test_limits_of_pages_text_and_links() -> None:
    """The start is given, and why there is no more."""
    many = pdf(*(f"page {number} http://p{number}.test/" for number in range(30)))
    with BlockingSandbox() as box:
        short = box.call(PDF, pdf_payload(many, 100, 3))
        assert (len(short.text), len(short.links), short.problem) == (100, 3, "more than 100 bytes of text")
        whole = box.call(PDF, pdf_payload(many, 10_000, 100))
        assert (len(whole.links), whole.problem, whole.facts["pages"]) == (30, "", "30")


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([b"text", 5]),
        msgspec.msgpack.encode([b"\xff\xfe"]),
        msgspec.msgpack.encode([b"a\x00b"]),
        msgspec.msgpack.encode([b"", "t" * 5_000]),
        msgspec.msgpack.encode([b"", "", "", "", "", "", [["http://a.test/"]]]),
        msgspec.msgpack.encode([b"", "", "", "", "", "", [], {"a": {"b": 1}}]),
    ],
    ids=["nothing", "noise", "type", "utf-8", "control", "long", "link", "nested"],
)
def test_answer_of_a_child_is_taken_only_in_form(forged: bytes) -> None:
    """A child that has read hostile bytes may say anything."""
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        decode_result(forged)


def test_words_of_a_child_are_one_line() -> None:
    """No control characters reach a row or a terminal."""
    content = decode_result(msgspec.msgpack.encode(DocumentContent(title="a\x1b[31m\nb", facts={"x": "y\x00"})))
    assert (content.title, content.facts) == ("a [31m b", {"x": "y"})
