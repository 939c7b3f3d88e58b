"""Fetch requests name what has changed since the last answer, and pause after records."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v4, FetchRequest_v11
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.kafka.client.fetch_client import (
    IDLE_WAIT_MS,
    PARTIAL_WAIT_MS,
    FetchClient,
    IncrementalFetch,
    Pause,
)

NOT_FOUND = 70


class Broker:
    """A client that answers at once: what was sent, and the next answer."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.answer: Any = answer()

    async def send(self, node_id: int, request: Any) -> Any:
        """Keep the request; raise an error that is set."""
        self.sent.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def answer(records: bytes = b"", session: int = 7, error: int = 0, version: int = 11) -> Any:
    """An answer with the records of one partition."""
    topics = [("a", [(0, 0, 5, records)])] if records else []
    return SimpleNamespace(API_VERSION=version, error_code=error, session_id=session, topics=topics)


def whole(**offsets: int) -> FetchRequest:
    """A request as aiokafka makes it: a0=5 is partition 0 of topic a at offset 5."""
    topics: dict[str, list[tuple[int, int, int]]] = {}
    for name, offset in offsets.items():
        topics.setdefault(name[0], []).append((int(name[1:]), offset, 1000))
    return FetchRequest(1, 1, 1 << 20, 0, list(topics.items()), rack_id="")


def named(request: IncrementalFetch) -> tuple[tuple[int, int], dict[str, int], list[tuple[str, list[int]]]]:
    """(session, epoch), offsets by partition and forgotten partitions, as they are sent."""
    fields = request.build(FetchRequest_v11)
    assert fields.encode()
    offsets = {f"{topic}{entry[0]}": entry[2] for topic, entries in fields.topics for entry in entries}
    return (fields.session_id, fields.session_epoch), offsets, fields.forgotten_topics_data


@pytest.fixture
def clock() -> ManualClock:
    """The time of the pauses."""
    return ManualClock()


@pytest.fixture
def broker() -> Broker:
    """The broker behind the client."""
    return Broker()


@pytest.fixture
def client(broker: Broker, clock: ManualClock) -> FetchClient:
    """A client that pauses for 2 s, and reads three partitions."""
    return FetchClient(broker, clock, lambda: Pause(2.0, 100), lambda: 3)


async def test_only_what_has_changed_is_named(broker, client):
    """A moved position, a new partition; one that is not read any more is forgotten. All the rest the broker knows."""
    await client.send(1, whole(a0=5, a1=6, b0=7))
    await client.send(1, whole(a0=5, a1=8, b0=7))
    await client.send(1, whole(a0=5, b0=7, b1=0))
    await client.send(1, whole(a0=5, b0=7, b1=0))
    assert [named(request) for request in broker.sent] == [
        ((0, 0), {"a0": 5, "a1": 6, "b0": 7}, []),
        ((7, 1), {"a1": 8}, []),
        ((7, 2), {"b1": 0}, [("a", [1])]),
        ((7, 3), {}, []),
    ]


async def test_each_broker_has_its_session(broker, client):
    """A position that one broker was told is unknown to another."""
    await client.send(1, whole(a0=5))
    await client.send(2, whole(a0=5))
    assert [named(request)[0] for request in broker.sent] == [(0, 0), (0, 0)]


async def test_a_lost_answer_names_everything_again(broker, client):
    """Whether the broker took the request is unknown; the new session ends the old one."""
    await client.send(1, whole(a0=5, a1=6))
    broker.answer = KafkaConnectionError()
    with pytest.raises(KafkaConnectionError):
        await client.send(1, whole(a0=6, a1=6))
    broker.answer = answer(session=8)
    await client.send(1, whole(a0=6, a1=6))
    await client.send(1, whole(a0=6, a1=7))
    assert [named(request)[:2] for request in broker.sent[2:]] == [((7, 0), {"a0": 6, "a1": 6}), ((8, 1), {"a1": 7})]


@pytest.mark.parametrize("refusal", [answer(error=NOT_FOUND), answer(session=0)], ids=["forgotten", "no room"])
async def test_without_a_session_everything_is_named(broker, client, refusal):
    """The broker has dropped the session, or keeps none."""
    await client.send(1, whole(a0=5))
    broker.answer = refusal
    for _ in range(2):
        await client.send(1, whole(a0=5))
    assert named(broker.sent[-1]) == ((0, 0), {"a0": 5}, [])


async def test_a_broker_without_sessions(broker, client):
    """Its requests have no place for one."""
    broker.answer = answer(version=4)
    for _ in range(2):
        await client.send(1, whole(a0=5))
    assert broker.sent[-1].build(FetchRequest_v4).topics == [("a", [(0, 5, 1000)])]


async def test_other_requests_pass(broker, client):
    """And so does what else the fetcher uses of its client."""
    await client.send(1, "offsets")
    assert broker.sent == ["offsets"]
    assert client.answer is broker.answer


async def test_a_pause_follows_records(broker, client, clock):
    """What arrives within it is read at once; it counts from the answer, so work on the records is part of it."""
    broker.answer = answer(b"r" * 99)
    await client.send(1, whole(a0=5))
    clock.advance(1.5)
    waiting = asyncio.ensure_future(client.send(1, whole(a0=6)))
    for due in (0.4, 0.2):
        await asyncio.sleep(0)
        assert len(broker.sent) == 1
        clock.advance(due)
    await waiting
    assert len(broker.sent) == 2


@pytest.mark.parametrize("records", [b"", b"r" * 100], ids=["silence", "full"])
async def test_no_pause_after_silence_and_after_a_full_answer(broker, client, records):
    """The first record after a silence is sent at once; behind a full answer there is more."""
    broker.answer = answer(records)
    await client.send(1, whole(a0=5))
    await client.send(1, whole(a0=6))
    assert len(broker.sent) == 2


async def test_a_request_for_a_part_waits_briefly(broker, client):
    """Partitions that are paused at present are named by the next request."""
    await client.send(1, whole(a0=5, a1=5, a2=5))
    await client.send(1, whole(a0=5, a1=5))
    waits = [request.build(FetchRequest_v11).max_wait_time for request in broker.sent]
    assert waits == [IDLE_WAIT_MS, PARTIAL_WAIT_MS]


@pytest.mark.parametrize(
    ("size", "passed_s", "pause_s"),
    [(0, 9.0, 0.0), (100, 9.0, 0.0), (10, 9.0, 2.0), (50, 0.5, 1.0), (1, 0.001, 0.1)],
    ids=["silence", "full", "slow", "as fast as fills one in a second", "first of many"],
)
def test_a_pause_is_no_longer_than_it_takes_to_fill_an_answer(size, passed_s, pause_s):
    assert Pause(2.0, 100).after(size, passed_s) == pytest.approx(pause_s)


async def test_the_pause_follows_the_rate_of_the_last_two_answers(broker, client, clock):
    broker.answer = answer(b"r" * 50)
    await client.send(1, whole(a0=5))
    clock.advance(2.0)
    await client.send(1, whole(a0=6))
    broker.answer = answer(b"r" * 80)
    clock.advance(2.0)
    await client.send(1, whole(a0=7))
    broker.answer = answer(b"r" * 99)
    waiting = asyncio.ensure_future(client.send(1, whole(a0=8)))
    await asyncio.sleep(0)
    clock.advance(2.0)
    await waiting
    assert len(broker.sent) == 4


@pytest.mark.parametrize(
    ("records", "took_s", "wait_s"),
    [(b"x", 0.0, 0.3), (b"", 0.08, 0.3), (b"x", 0.05, 0.08), (b"x" * 1000, 0.0, 0.0)],
    ids=["the records of a beat", "none", "records that were late", "a full answer"],
)
async def test_in_a_beat_there_is_one_fetch(broker, clock, records, took_s, wait_s):
    """Records that come after it was sent end it at the first of them; the others are fetched in the same beat."""
    client = FetchClient(broker, clock, lambda: Pause(2.0, 100), lambda: 3, lambda: (0.5, 0.3), full_bytes=1000)
    broker.answer = answer(records)
    send = broker.send

    async def slowly(node_id: int, request: Any) -> Any:
        clock.advance(took_s)
        return await send(node_id, request)

    broker.send = slowly
    began = clock.monotonic()
    await client.send(1, whole(a0=5))
    assert broker.sent[0].build(FetchRequest_v11).max_wait_time == 80, "the broker does not hold it to the next beat"
    assert client._nodes[1].resume_at - began - took_s == pytest.approx(wait_s)


async def test_in_a_beat_a_reader_without_records_asks_seldom(broker, clock):
    """The broker holds its request until the first record comes, as without a beat."""
    client = FetchClient(broker, clock, lambda: Pause(2.0, 100), lambda: 1, lambda: (0.5, 0.0), full_bytes=1000)
    waits = []
    for records in (b"x", b"", b"", b"x", b""):
        broker.answer = answer(records)
        await client.send(1, whole(a0=5))
        waits.append(broker.sent[-1].build(FetchRequest_v11).max_wait_time)
    assert waits == [80, 80, IDLE_WAIT_MS, IDLE_WAIT_MS, 80]
