"""The wire: what a message says survives it, and foreign bytes are refused in bounds."""

from __future__ import annotations

import random
import tracemalloc

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from nephila.kernel import messages
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import (
    Anchor,
    CrawlJob,
    FetchOutcome,
    FetchResult,
    Frame,
    FrameEncoding,
    FrontierCommit,
    Outlinks,
    Page,
    QueuedUrl,
    Receipt,
    Receipts,
    Record,
    Seed,
)
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import TOPICS
from nephila_cluster.kafka import wire
from nephila_cluster.kafka.wire import (
    CODECS,
    UnknownFormat,
    format_numbers,
    frame_of,
    headers_of,
    message_of,
    seal,
    unseal,
)

from tests.jobs import crawl_job

SAMPLES = [
    Seed("j", "https://ü.example/", "cli"),
    FetchOutcome("j", b"\0" * 16, result=FetchResult.REDIRECT, status=301, started_at=1.25, location="x"),
    Receipts("j", [Receipt(b"k", 2, messages.Outcome.STORED), Receipt()]),
    Record("j", links=Outlinks("j", depth=3, fingerprints=b"\x01" * 32), outcome=messages.Outcome.FAILED),
    crawl_job("u", seeds=["a", "b"], scope=Scope(max_depth=-1), politeness=Politeness(delay="0"), keywords=["ä"]),
    FrontierCommit(3, queued=[QueuedUrl("j", "h", b"\xffe", not_before=2.5)], anchors=[Anchor("j", "p")]),
    Page("j", body=b"\xff" * 5000),
]


@pytest.mark.parametrize("message", SAMPLES, ids=lambda m: type(m).__name__)
def test_a_message_comes_back_as_it_was(message):
    """Numbers, texts, bytes, enums, lists, messages within messages, and those that are there but empty."""
    struct = type(message)
    back = message_of(struct, unseal(struct, seal([frame_of(struct, message)]), headers_of(struct))[0])
    assert back == message
    assert type(back) is struct


def test_every_message_of_the_route_has_a_form():
    """An empty one is nothing but its type; every field of every struct is in its codec."""
    for topic in TOPICS:
        assert CODECS[topic.message].encode(topic.message()) == b""
    for struct, codec in CODECS.items():
        assert [name for name, _, _ in codec._fields] == [f.name for f in msgspec.structs.fields(struct)]


@given(texts=st.lists(st.text(st.characters(codec="utf-8")), max_size=5), data=st.binary(max_size=3000))
@settings(deadline=None, max_examples=50)
def test_any_text_and_any_bytes(texts, data):
    """What utf-8 can write arrives."""
    record = Record("j", text=data, title="".join(texts))
    job = crawl_job("u", seeds=texts)
    assert message_of(Record, frame_of(Record, record)) == record
    assert message_of(CrawlJob, frame_of(CrawlJob, job)) == job


def test_bytes_like_bodies_travel_as_bytes():
    """Within one program a body may be a view."""
    page = Page("j", body=memoryview(b"abc"))
    assert message_of(Page, frame_of(Page, page)).body == b"abc"


def test_several_messages_in_one_record_keep_their_order():
    """One record of what was published together."""
    frames = unseal(Seed, seal([frame_of(Seed, Seed("j", str(n))) for n in range(100)]), headers_of(Seed))
    assert [message_of(Seed, frame).url for frame in frames] == [str(n) for n in range(100)]


def test_large_messages_are_compressed_once():
    """A frame of zstd from a kilobyte on, as it is below."""
    assert frame_of(Seed, Seed("j", "u")).encoding is FrameEncoding.UNSPECIFIED
    frame = frame_of(Page, Page("j", body=b"<p>" * 30_000))
    assert frame.encoding is FrameEncoding.ZSTD
    assert len(frame.message) < 1000


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_half_a_character_is_refused_where_it_is_written(text):
    """Protobuf has no form for it; the error names the type."""
    with pytest.raises(PermanentError, match="a Seed cannot be written"):
        frame_of(Seed, Seed("j", text))


def test_a_number_out_of_range_is_refused():
    """Below zero, or too large for its field."""
    for number in (-1, 1 << 40):
        with pytest.raises(PermanentError, match="cannot be written"):
            frame_of(Page, Page("j", depth=number))


def test_unknown_fields_are_skipped_and_unknown_words_are_not():
    """A field that a later release added does no harm; an enum value it added must not be guessed at."""
    later = CODECS[Seed].encode(Seed("j", "u")) + b"\xa2\x06\x01x"
    assert message_of(Seed, Frame(later)) == Seed("j", "u")
    with pytest.raises(UnknownFormat, match="FetchResult 77"):
        message_of(FetchOutcome, Frame(b"\x40\x4d"))


def test_a_record_of_a_later_format_is_not_read():
    """The header says so before anything is parsed."""
    with pytest.raises(UnknownFormat, match="format 9"):
        unseal(Seed, b"\xff\xff", [("v", b"9")])


def test_the_format_number_of_a_message_rises_alone_or_with_a_message_inside_it():
    """With the frames of all records every number rises."""
    before = format_numbers({})
    assert set(before.values()) == {1}

    def risen(**rises: int) -> set[str]:
        return {struct.__name__ for struct, number in format_numbers(rises).items() if number > before[struct]}

    assert risen(Seed=1) == {"Seed"}
    assert risen(Receipt=2) >= {"Receipt", "Receipts", "LeasedUrl"}
    assert risen(Receipt=2).isdisjoint({"Seed", "Page", "FetchRequest"})
    assert risen(Context=1) >= {"Context", "FetchRequest", "Page", "Record"}
    assert risen(Frame=1) == {struct.__name__ for struct in CODECS}
    assert format_numbers({"Receipt": 1, "Receipts": 2})[Receipts] == 4


def test_a_reader_refuses_another_number_of_its_own_message_only(monkeypatch):
    """Whether it is higher or lower: what the others wrote is read."""
    monkeypatch.setitem(wire.FORMATS, Record, 3)
    for number in (2, 4):
        with pytest.raises(UnknownFormat, match=f"format {number} of Record, and this one reads 3"):
            unseal(Record, seal([frame_of(Record, Record("j"))]), [("v", b"%d" % number), headers_of(Record)[1]])
    for struct in (Record, Seed, Page):
        assert unseal(struct, seal([frame_of(struct, struct("j"))]), headers_of(struct))


@given(data=st.binary(max_size=200))
@settings(deadline=None, max_examples=200)
def test_foreign_bytes_are_an_error_and_nothing_else(data):
    """Whatever they are: a message, or one of two errors."""
    try:
        for frame in unseal(Record, data, headers_of(Record)):
            message_of(Record, frame)
    except (PermanentError, UnknownFormat):
        pass


def test_a_bomb_does_not_unfold():
    """A frame that claims, or hides, more than a message may hold costs no memory."""
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(200 << 20))
    hidden = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(bytes(200 << 20))
    tracemalloc.start()
    try:
        for data in (bomb, hidden, bomb[:-1], b""):
            with pytest.raises(PermanentError):
                message_of(Page, Frame(data, FrameEncoding.ZSTD))
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_truncated_records_are_errors():
    """Every prefix of a record is refused or holds fewer frames, never a wrong message."""
    rng = random.Random(4)
    frames = [frame_of(Page, Page("j", url=f"u{n}", body=rng.randbytes(40))) for n in range(5)]
    whole = seal(frames)
    for end in range(len(whole)):
        try:
            found = unseal(Seed, whole[:end], headers_of(Seed))
        except PermanentError:
            continue
        assert found == frames[: len(found)]


def test_a_message_of_the_largest_size_travels(monkeypatch):
    """One byte more does not."""
    size = len(CODECS[CrawlJob].encode(CrawlJob("j" * 500)))
    monkeypatch.setattr(wire, "MAX_MESSAGE_BYTES", size)
    assert message_of(CrawlJob, frame_of(CrawlJob, CrawlJob("j" * 500))).uid == "j" * 500
    with pytest.raises(PermanentError, match=f"a CrawlJob of {size + 1} bytes is too large to travel"):
        frame_of(CrawlJob, CrawlJob("j" * 501))
