"""Dead letters of a broker: which are listed, what can be replayed, and where the message goes."""

from __future__ import annotations

import contextlib

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import DeadLetter, FetchOutcome, Frame, Receipts
from nephila_cluster.kafka import grow
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.wire import frame_of, headers_of, seal
from nephila_control import api, system_types
from nephila_control.cluster.dead_letters import KafkaDeadLetters, StoredLetter

from tests.contracts.buses import config_for


def letter(topic: str = "pages", message: bytes = b"a page", **fields: object) -> DeadLetter:
    """Of a page that the parser could not read."""
    return DeadLetter(
        topic, "parser", "ValueError: x", 3, "news", message=message, **{"partition": 2, "format": 1, **fields}
    )


@pytest.mark.parametrize(
    ("found", "refused"),
    [
        (letter("pages"), ""),
        (letter("outlinks"), ""),
        (letter("requests"), "a request is not replayed: its lease has brought its URL back"),
        (letter("elsewhere"), "topic 'elsewhere' is none of the route"),
        (letter("pages", b""), "the message was not kept"),
        (
            letter("pages", format=2),
            "its Page has format 2, and this program writes 1: replay it with the release that wrote it",
        ),
    ],
)
def test_a_message_is_published_again_unless_there_is_a_reason(found, refused):
    """One line for each."""
    assert StoredLetter("0:0", 0.0, found).refused == refused
    assert StoredLetter("0:0", 0.0, found, "it cannot be read").refused == "it cannot be read"


class Store:
    """A blob store with one object."""

    def __init__(self, name: str, data: bytes) -> None:
        self.objects = {name: data}

    def get(self, name: str) -> bytes:
        """See `ClaimStore.get`."""
        return self.objects[name]


@contextlib.asynccontextmanager
async def producer(config):
    """Writes records as they are."""
    one = AIOKafkaProducer(bootstrap_servers=config.bootstrap)
    await one.start()
    yield one
    await one.stop()


async def records(config, topic: str, partition: int) -> list[bytes]:
    """All of a partition."""
    consumer = AIOKafkaConsumer(bootstrap_servers=config.bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    tp = TopicPartition(config.prefix + topic, partition)
    consumer.assign([tp])
    found: list[bytes] = []
    while await consumer.position(tp) < (await consumer.end_offsets([tp]))[tp]:
        found += [record.value for record in (await consumer.getmany(tp, timeout_ms=500)).get(tp, ())]
    await consumer.stop()
    return found


async def test_letters_are_listed_and_their_messages_published_again(broker):
    """Also one of several in a record, and one that lies in the blob store because of its size; without that store it
    is listed, and refused with a reason."""
    config = config_for(broker)
    await admin.apply(config)
    small, large = frame_of(DeadLetter, letter()), frame_of(DeadLetter, letter(message=b"a large page"))
    store = Store("dead/1", large.message)
    async with producer(config) as one:
        for frames in ([small], [small, Frame(b"", large.encoding, "dead/1")]):
            await one.send_and_wait(config.prefix + "dead", seal(frames), partition=0, headers=headers_of(DeadLetter))
    bare = await KafkaDeadLetters(config, None).page(system_types.ListDeadLetters())
    assert [(row.id, row.refused) for row in bare.dead_letters] == [
        ("0:0", ""),
        ("0:1.0", ""),
        ("0:1.1", "it lies in the blob store, and none is set (kafka: blobs)"),
    ]
    letters = KafkaDeadLetters(config, store)
    rows = (await letters.page(system_types.ListDeadLetters())).dead_letters
    assert [(row.id, row.message, row.job, row.attempts, row.bytes) for row in rows] == [
        ("0:0", "Page", "news", 3, 6),
        ("0:1.0", "Page", "news", 3, 6),
        ("0:1.1", "Page", "news", 3, 12),
    ]
    assert [row.id for row in (await letters.page(system_types.ListDeadLetters(after="0:1.0"))).dead_letters] == [
        "0:1.1"
    ]
    answer = await letters.replay(system_types.ReplayDeadLetters(ids=["0:1"]))
    assert [(row.id, row.replayed, row.refused) for row in answer.dead_letters] == [
        ("0:1.0", True, ""),
        ("0:1.1", True, ""),
    ]
    assert await records(config, "pages", 2) == [b"a page", b"a large page"]
    with pytest.raises(api.NotFound, match="no dead letter at 0:2"):
        await letters.replay(system_types.ReplayDeadLetters(ids=["0:2"]))


async def test_a_message_goes_to_the_lane_of_its_partition_and_says_the_partition(broker):
    """The partition follows from its URL, also in a system that has grown; without a URL it is that of the letter."""
    config = config_for(broker, partitions=4, lanes=2)
    await admin.apply(config)
    await grow.grow(config, 8, wait_s=0.0)
    key = b"\x70" + bytes(15)
    partition = layout_of(4, 8).of(key)
    outcome, batch = frame_of(FetchOutcome, FetchOutcome("j")), frame_of(Receipts, Receipts("j"))
    letters = [
        letter("outcomes", seal([outcome]), url_key=key),
        letter("receipts", seal([batch]), partition=7, url_key=b""),
    ]
    async with producer(config) as one:
        record = seal([frame_of(DeadLetter, each) for each in letters])
        await one.send_and_wait(config.prefix + "dead", record, partition=0, headers=headers_of(DeadLetter))
    answer = await KafkaDeadLetters(config, None).replay(system_types.ReplayDeadLetters(all=True))
    assert [row.replayed for row in answer.dead_letters] == [True, True]
    assert partition == 5
    outcome.partition, batch.partition = partition + 1, 8
    assert await records(config, "outcomes", partition % 2) == [seal([outcome])]
    assert await records(config, "receipts", 1) == [seal([batch])]
