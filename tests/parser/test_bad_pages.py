"""A page that fails is an outcome with a reason and never stops the next."""

from __future__ import annotations

import json

import pytest
from nephila.kernel import messages as m

from tests.parser.parser_room import FakePass, Room


class Panic(BaseException):
    """What a native core raises when it gives up: no Exception."""


@pytest.mark.parametrize(
    "error",
    [ValueError("bad"), RecursionError(), MemoryError(), Panic("oh"), ValueError("\ud800")],
    ids=["error", "recursion", "memory", "panic", "not encodable"],
)
async def test_failing_page_ends_as_dead_letter_and_the_next_is_parsed(error: BaseException) -> None:
    """The row says failed(dead_letter), the dead letter names the URL, nothing stays unacked."""
    room = await Room(error).start()
    (record,) = room.send(b"<html>", fetch_no=3, attempt=2)
    assert isinstance(record, m.Record)
    assert (record.outcome, record.reason, record.fetch_no) == (m.Outcome.FAILED, "dead_letter", 3)
    assert "error" in json.loads(record.meta)
    assert [letter.url for letter in room.dead] == ["http://a.test/"]
    assert room.bus.unacked == 0
    room.found = FakePass(title="next")
    assert room.record().title == "next"
    assert (room.parser.pages, room.parser.failed) == (1, 1)


async def test_dead_page_keeps_its_partition() -> None:
    """The record of a dead page goes where the URL's fingerprint points: the top bits."""
    room = await Room(ValueError()).start()
    for first, partition in ((0x00, 0), (0x03, 0), (0x04, 1), (0x80, 32), (0xFF, 63)):
        room.send(url_key=bytes([first]) + bytes(15))
        assert room.partitions[-1] == partition


async def test_attribute_that_fails_is_a_failing_page() -> None:
    """The page pass is lazy: it may fail after the call, and still nothing half is published."""

    class Lazy(FakePass):
        @property
        def fingerprints(self) -> bytes:
            raise ValueError("later")

        @fingerprints.setter
        def fingerprints(self, value: bytes) -> None:
            pass

    room = await Room(Lazy(link_count=1)).start()
    (record,) = room.send()
    assert isinstance(record, m.Record)
    assert record.reason == "dead_letter"
