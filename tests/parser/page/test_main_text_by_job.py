"""Main text by job: all, none, or by trafilatura in a child process, and what becomes of pages where it fails."""

from __future__ import annotations

import json
import logging
from typing import Final

import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import MainTextName, Parse
from nephila.kernel.runtime.errors import UsageError
from nephila.native import page_pass
from nephila.parser.page import trafilatura_text
from nephila.parser.page.text import text_hash
from nephila.parser.sandbox import ChildError, Task
from nephila.programs.crawl.stored import check_packages

from tests.jobs import crawl_job
from tests.parser.parser_room import FakePass, Room

PAGE = FakePass(text=b"menu\nsubject", main_text=b"subject")
TRAFILATURA = crawl_job(uid="j", parse=Parse(main_text="trafilatura"))


@pytest.mark.parametrize(("kind", "text"), [("density", b"subject"), ("all", b"menu\nsubject"), ("none", b"")])
async def test_a_job_says_what_the_text_is(kind: MainTextName, text: bytes) -> None:
    """A recrawl compares the main text, or all text where the job has no use for the main text."""
    record = (await Room(PAGE).start(crawl_job(uid="j", parse=Parse(main_text=kind)))).record()
    assert record.text == text
    assert record.text_hash == text_hash(PAGE.text if kind == "none" else PAGE.main_text)


NONE: Final = Parse(main_text="none")


@pytest.mark.parametrize(
    ("job", "settings"),
    [
        (crawl_job(uid="j", parse=NONE, links=True), {}),
        (crawl_job(uid="j", parse=NONE, strategy="best-first"), {}),
        (crawl_job(uid="j", parse=Parse(main_text="none", near_copies="mark")), {}),
        (crawl_job(uid="j", parse=NONE), {"full_text": True}),
    ],
    ids=["links", "priorities", "near-copies", "full text"],
)
async def test_other_uses_of_the_main_text(job: m.CrawlJob, settings: dict[str, bool]) -> None:
    """It is read though no row has it."""
    record = (await Room(PAGE, **settings).start(job)).record()
    assert record.text_hash == text_hash(PAGE.main_text)


async def test_a_job_without_main_text_that_changes_or_ends() -> None:
    """The next page follows the job as it is now; pages of no known job have a main text."""
    from nephila.kernel.topics import JOBS

    room = await Room(PAGE).start(crawl_job(uid="j", parse=NONE))
    assert room.record().text_hash == text_hash(PAGE.text)
    for job in (crawl_job(uid="j"), crawl_job(uid="j", parse=NONE), m.CrawlJob(uid="j", deleted=True)):
        room.bus.publish(JOBS, 0, job)
        now = spec_of(job).parse.main_text
        assert room.record().text_hash == text_hash(PAGE.text if now == "none" else PAGE.main_text)


@pytest.mark.parametrize(("kind", "comments"), [("density", "said below"), ("all", ""), ("none", "")])
async def test_the_comments_of_an_article_are_an_entry_of_the_metadata(kind: MainTextName, comments: str) -> None:
    """Where the text is without them, and longer than other values may be."""
    long = FakePass(text=b"subject", main_text=b"subject", comments=b"said below" * 1000, description="d" * 5000)
    record = (await Room(long).start(crawl_job(uid="j", parse=Parse(main_text=kind)))).record()
    found = json.loads(record.meta)
    assert found.get("comments", "") == comments * 1000
    assert len(found["description"]) == 2000


async def elsewhere(room: Room, body: bytes = b"<p>x") -> list[m.Outlinks | m.Record]:
    """What becomes of a page that goes through a child."""
    before = len(room.log)
    room.send(body)
    assert len(room.log) == before
    await room.parser.drain(30)
    found = room.log[before:]
    await room.parser.close()
    return found


class Answers:
    """A sandbox that answers as a test wants."""

    children, replaced = 1, 0

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked: list[bytes] = []

    def runs(self, task: Task[bytes]) -> bool:
        """See `Sandbox.runs`."""
        return True

    async def call(self, task: Task[bytes], payload: bytes) -> bytes:
        self.asked.append(payload)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        """Nothing to end."""


async def room_with(answer: bytes | Exception, monkeypatch: pytest.MonkeyPatch, job: m.CrawlJob = TRAFILATURA) -> Room:
    """A parser whose sandbox is that, and whose library is there."""
    monkeypatch.setattr(trafilatura_text, "is_installed", lambda: True)
    room = Room(PAGE)
    room.parser._child_queue.sandbox = Answers(answer)  # type: ignore[assignment]
    return await room.start(job)


async def test_the_other_text_takes_the_place_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """All else of the page stays as it is, its hash too; a page in another encoding travels as UTF-8."""
    room = await room_with(b"their text", monkeypatch)
    room.sniffed = "windows-1252"
    (record,) = await elsewhere(room, b"<p>caf\xe9")
    assert isinstance(record, m.Record)
    assert record.text == b"their text"
    assert record.text_hash == (await Room(PAGE).start()).record().text_hash
    assert "<p>caf\u00e9".encode() in room.parser._child_queue.sandbox.asked[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("answer", [b"", ChildError("trafilatura", "timeout"), OSError("disk"), ValueError("\ud800")])
async def test_where_it_fails_ours_stays(answer: bytes | Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is stored, and says why; nothing found is no failure."""
    (record,) = await elsewhere(await room_with(answer, monkeypatch))
    assert isinstance(record, m.Record)
    assert (record.text, record.outcome) == (b"subject", m.Outcome.STORED)
    assert ("text_problem" in json.loads(record.meta)) is isinstance(answer, Exception)


async def test_what_is_no_page_is_not_sent_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents, 304s, pages of other jobs, and those of this one once it has changed its mind."""
    from nephila.kernel.topics import JOBS

    room = await room_with(ValueError("asked"), monkeypatch)
    assert room.record(b"words", content_type="text/plain").text == b"words"
    assert room.record(b"", not_modified=True).not_modified
    assert room.record(job="other").text == b"subject"
    room.bus.publish(JOBS, 0, crawl_job(uid="j"))
    assert room.record().text == b"subject"
    await room.parser.close()


async def test_without_the_library_one_line_and_our_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At submission it is refused; a parser that is told by others says it once for the job, and never for a page."""
    monkeypatch.setattr(trafilatura_text, "is_installed", lambda: False)
    with pytest.raises(UsageError, match="pip install"):
        check_packages(spec_of(TRAFILATURA))
    with caplog.at_level(logging.WARNING):
        room = await Room(PAGE).start(TRAFILATURA)
        assert [room.record().text for _ in range(3)] == [b"subject"] * 3
    assert len([line for line in caplog.messages if "trafilatura" in line]) == 1


async def test_the_body_stays_whole_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one program a raw sink reads the same page: what waits for a child must not take its body away."""
    from nephila.kernel.topics import PAGES

    room = await room_with(b"x", monkeypatch)
    taken: list[m.Page] = []
    room.bus.subscribe(PAGES, "raw", lambda delivery: taken.append(delivery.message), credits=10)
    room.send(b"<p>whole")
    room.send(b"%PDF-1.7", content_type="application/pdf")
    await room.parser.drain(30)
    await room.parser.close()
    assert [page.body for page in taken] == [b"<p>whole", b"%PDF-1.7"]


async def test_with_the_library_itself() -> None:
    """In a child that can open nothing; hostile markup ends within its limits."""
    pytest.importorskip("trafilatura")
    words = "The harbour bridge was opened again on Monday after two years of work on its pillars and its road. " * 5
    body = f"<body><nav><a href=/>Home</a> <a href=/x>Contact</a></nav><article><p>{words}</p></article>".encode()
    room = await Room(page_pass).start(TRAFILATURA)
    (first, second) = [one for one in [*await elsewhere(room, body)] if isinstance(one, m.Record | m.Outlinks)]
    assert isinstance(first, m.Outlinks)
    assert isinstance(second, m.Record)
    assert second.text.decode().startswith("The harbour bridge")
    assert b"Contact" not in second.text
    assert "text_problem" not in json.loads(second.meta)
