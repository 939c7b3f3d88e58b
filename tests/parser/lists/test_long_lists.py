"""A long list is read in slices, one in each turn of the loop: nothing else waits for the whole of it."""

from __future__ import annotations

import gzip

from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import ManualClock
from nephila.parser.links.link_list import ENTRIES_PER_SLICE, LINKS_PER_MESSAGE
from nephila.parser.lists import cooperative
from nephila.parser.lists.cooperative import CooperativeTasks
from nephila.parser.lists.detection import PIECE_BYTES

from tests.parser.parser_room import Room

COUNT = 50_000


def sitemap(count: int) -> bytes:
    """A sitemap of so many URLs, 90 bytes each."""
    entry = b"<url><loc>http://a.test/directory/%d</loc><lastmod>2026-05-01</lastmod></url>\n"
    return b"<urlset>" + b"".join(entry % n for n in range(count)) + b"</urlset>"


async def turn_by_turn(room: Room, body: bytes) -> list[int]:
    """Deliver a list; links that came out in each turn, that of its delivery first."""
    done: list[int] = []
    found = room.send(body, content_type="application/xml")
    while True:
        done.append(sum(len(one.fingerprints) // 16 for one in found if isinstance(one, m.Outlinks)))
        before = len(room.log)
        if not room.clock.run_one():
            return done
        found = room.log[before:]


async def test_a_sitemap_of_50000_urls() -> None:
    """No turn reads more than a piece, resolves more than a slice or passes on more than a message; the record is
    last, and the page is acked only then."""
    room = await Room().start()
    body = sitemap(COUNT)
    links = await turn_by_turn(room, body)
    assert sum(links) == COUNT
    assert max(links) == LINKS_PER_MESSAGE <= ENTRIES_PER_SLICE == 2_000
    reading, resolving, passing = len(body) // PIECE_BYTES, COUNT // ENTRIES_PER_SLICE, COUNT // LINKS_PER_MESSAGE
    assert len(links) == reading + resolving + passing
    assert isinstance(room.log[-1], m.Record)
    assert not any(isinstance(one, m.Record) for one in room.log[:-1])
    assert room.bus.unacked == 0


async def test_packed_and_out_of_turn() -> None:
    """Other pages, and short lists, go past a long one; what is packed is sliced as it unpacks."""
    room = await Room().start()
    assert room.send(gzip.compress(sitemap(COUNT)), url="http://a.test/long") == []
    assert room.bus.unacked == 1
    short = room.send(sitemap(10), url="http://a.test/short")
    assert [type(one) for one in short] == [m.Outlinks, m.Record]
    assert [type(one) for one in room.send(b"<p>", url="http://a.test/page")] == [m.Record]
    room.clock.run_due()
    assert room.log[-1].url == "http://a.test/long"


async def test_a_drain_with_time_does_it_all_one_without_leaves_it() -> None:
    """What is left undone stays unacked: it is fetched again."""
    for grace_s, unacked in ((1.0, 0), (0.0, 1)):
        room = await Room().start()
        room.send(sitemap(COUNT))
        await room.parser.drain(grace_s)
        await room.parser.close()
        assert room.bus.unacked == unacked
        published = len(room.log)
        room.clock.run_due()
        assert len(room.log) == published


async def test_a_drain_finishes_a_list_that_waits_for_the_classifier() -> None:
    """The classifier of encodings is loaded in a thread; the list begins when it is there."""
    room = await Room().start()
    room.send(sitemap(COUNT).replace(b"a.test/", "a.test/привет".encode("cp1251")), content_type="text/xml")
    assert room.parser.in_children == 1
    await room.parser.drain(30.0)
    assert isinstance(room.log[-1], m.Record)
    assert room.bus.unacked == 0


async def test_an_error_in_a_later_slice_ends_the_page(monkeypatch, caplog) -> None:
    """As failed(dead_letter), like that of any page."""
    room = await Room().start()
    room.send(sitemap(COUNT))
    monkeypatch.setattr("nephila.parser.page_to_record.hash_of_links", lambda rows: 1 / 0)
    room.clock.run_due()
    assert [(one.outcome, one.reason) for one in room.log] == [(m.Outcome.FAILED, "dead_letter")]
    assert "ZeroDivisionError" in room.log[0].meta
    assert (room.bus.unacked, room.parser.failed) == (0, 1)
    assert [(letter.topic, letter.url) for letter in room.dead] == [("pages", "http://a.test/")]
    assert "ZeroDivisionError" in caplog.text


def test_works_take_turns_and_are_bounded(monkeypatch) -> None:
    """One slice a turn, in rotation; beyond the bounds of number and bytes the oldest is done at once."""
    monkeypatch.setattr(cooperative, "MAX_TASKS", 2)
    monkeypatch.setattr(cooperative, "MAX_BYTES", 100)
    clock, log = ManualClock(), []
    slicing = CooperativeTasks(clock)

    def work(name: str, count: int):
        for number in range(count):
            log.append(f"{name}{number}")
            yield

    slicing.begin(work("a", 4), 10)
    slicing.begin(work("b", 2), 10)
    assert log == ["a0", "b0"]
    clock.run_one()
    clock.run_one()
    assert log[2:] == ["a1", "b1"]
    slicing.begin(work("c", 3), 10)
    assert log[4:] == ["c0", "a2", "a3"]
    slicing.begin(work("d", 2), 95)
    assert log[7:] == ["d0", "c1", "c2"]
    assert len(slicing) == 1
    slicing.begin(work("e", 9), 1_000)
    assert (log[10:], len(slicing)) == (["e0", "d1"], 1)
    clock.run_due()
    assert (log[-1], len(slicing)) == ("e8", 0)
