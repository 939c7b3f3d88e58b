"""Messages keep their order and their bytes over a pipe, whatever the pieces they arrive in."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.pipe.link import FRAME_BYTES, Channel
from nephila.kernel.bus.pipe.protocol import (
    ACKS,
    CONTROL,
    DECODE,
    HEAD,
    NUMBERS,
    Drain,
    Forget,
    FrameWriter,
    Reader,
    decode_acks,
    decode_control,
)
from nephila.kernel.bus.pipe.socket_pipe import Pipe, connect, pair
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import OUTLINKS, RECORDS, SEEDS


def message_of(item):
    """The message of an item as read."""
    return DECODE[item[0]](item[3])


def test_items_come_out_as_they_went_in_whatever_the_pieces():
    """Messages, words and acks, cut at random places, pieces of single bytes among them."""
    rng = random.Random(5)
    links = m.Outlinks("j", fingerprints=bytes(32), urls=b"http://x/")
    record = m.Record("j", b"k" * 16, "http://a/ü", text=rng.randbytes(100_000), links=links)
    frame = FrameWriter()
    frame.message(RECORDS, 1, 63, record)
    frame.control(Drain(1.5))
    frame.ack(7)
    frame.message(SEEDS, 2, 0, m.Seed("j", "u"))
    frame.ack(1 << 40)
    data = bytes(frame.take())
    assert len(frame) == 0
    for most in (7, 4096, 1 << 20):
        reader, items, at = Reader(), [], 0
        while at < len(data):
            size = rng.randint(1, most)
            items += list(reader.feed(data[at : at + size]))
            at += size
        assert [item[:3] for item in items] == [
            (NUMBERS[RECORDS], 1, 63),
            (CONTROL, 0, 0),
            (NUMBERS[SEEDS], 2, 0),
            (ACKS, 0, 0),
        ]
        assert message_of(items[0]) == record
        assert decode_control(items[1][3]) == Drain(1.5)
        assert list(decode_acks(items[3][3])) == [7, 1 << 40]


def test_a_text_that_is_no_utf8_costs_its_odd_letters_alone():
    """A lone surrogate is replaced; what was put before and after is whole."""
    frame, reader = FrameWriter(), Reader()
    frame.message(SEEDS, 1, 0, m.Seed("j", "one"))
    frame.message(SEEDS, 2, 0, m.Seed("j", "a\ud800b"))
    frame.message(SEEDS, 3, 0, m.Seed("j", "three"))
    assert [message_of(one).url for one in reader.feed(bytes(frame.take()))] == ["one", "a?b", "three"]


def test_a_text_may_be_any_buffer():
    """The native core gives buffers of its own; over there they are bytes."""
    frame = FrameWriter()
    frame.message(RECORDS, 1, 0, m.Record(text=memoryview(b"text")))
    (item,) = Reader().feed(bytes(frame.take()))
    assert message_of(item).text == b"text"


def test_what_no_end_writes_is_an_error():
    """An unknown kind, a body that is no such message, a word that there is not."""
    link = Channel(LocalBus(ManualClock()), print, print, print)
    for data in (
        HEAD.pack(200, 1, 0, 0),
        HEAD.pack(1, 1, 0, 3) + b"\xc1\xc1\xc1",
        HEAD.pack(CONTROL, 0, 0, 1) + b"\x90",
    ):
        with pytest.raises(ValueError):
            link.receive(data)


def test_one_turn_is_one_write_and_much_does_not_wait():
    """What is sent within a turn goes out together; beyond a frame's size at once."""
    clock = ManualClock()
    writes: list[bytes] = []
    link = Channel(LocalBus(clock), lambda data: writes.append(bytes(data)), clock.call_soon, print)
    for number in range(3):
        link.send(SEEDS, 0, m.Seed("j", str(number)))
    link.send_control(Forget("j"))
    assert writes == []
    clock.run_due()
    assert len(writes) == 1
    assert len(list(Reader().feed(writes[0]))) == 4
    link.send(RECORDS, 0, m.Record(text=bytes(FRAME_BYTES)))
    assert len(writes) == 2
    clock.run_due()
    assert len(writes) == 2


def test_what_is_sent_on_a_closed_link_goes_nowhere():
    """Its receipt never resolves: the sender keeps the message for the next process."""
    clock = ManualClock()
    writes: list[bytes] = []
    link = Channel(LocalBus(clock), lambda data: writes.append(bytes(data)), clock.call_soon, print)
    link.close()
    receipt = link.send(SEEDS, 0, m.Seed())
    clock.run_due()
    assert (writes, link.pending) == ([], 0)
    assert not receipt.done


async def test_what_was_written_before_the_end_is_read_before_it():
    """A process that dies has its last words heard, then its end, once."""
    heard: list[object] = []
    gone = asyncio.Event()
    ours, theirs = pair()
    pipe = Pipe(heard.append, lambda error: (heard.append("gone"), gone.set()))
    await connect(ours, pipe)
    theirs.sendall(b"x" * 300_000)
    theirs.close()
    await gone.wait()
    assert heard[-1] == "gone"
    assert sum(map(len, heard[:-1])) == 300_000
    assert heard.count("gone") == 1


async def test_a_reader_that_fails_ends_the_pipe_with_its_error():
    """Bytes that cannot be read count as the end of whoever wrote them."""
    gone: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def refuse(data: bytes) -> None:
        raise ValueError("nonsense")

    ours, theirs = pair()
    await connect(ours, Pipe(refuse, gone.set_result))
    theirs.sendall(b"x")
    assert str(await gone) == "nonsense"
    theirs.setblocking(False)
    assert await asyncio.get_running_loop().sock_recv(theirs, 1) == b""
    theirs.close()


async def test_what_nobody_reads_waits_and_is_whole():
    """A worker that stands still for a while loses nothing of what it is sent."""
    clock = ManualClock()
    ours, theirs = pair()
    pipe = Pipe(print, lambda error: None)
    await connect(ours, pipe)
    link = Channel(LocalBus(clock), pipe.write, lambda callback: callback(), print)
    for number in range(2_000):
        link.send(OUTLINKS, number % 64, m.Outlinks(urls=bytes(2_000)))
    reader, items = Reader(), []
    theirs.setblocking(False)
    while len(items) < 2_000:
        await asyncio.sleep(0)
        try:
            items += list(reader.feed(theirs.recv(1 << 16)))
        except BlockingIOError:
            continue
    assert [one[1] for one in items] == list(range(1, 2_001))
    pipe.close()
    theirs.close()
    await asyncio.sleep(0)


def test_the_ends_of_a_pair_are_sockets_of_this_machine():
    """No port is opened for workers."""
    ends = pair()
    assert {end.family for end in ends} == {socket.AF_UNIX}
    for end in ends:
        end.close()
