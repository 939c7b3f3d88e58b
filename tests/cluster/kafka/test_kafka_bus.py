"""What only a bus over a broker has to bear: restarts, pressure, foreign bytes, lost logs, large messages, silence."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer, errors
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import CommitFailedError
from aiokafka.structs import TopicPartition
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import CrawlJob, FetchRequest, Page, ParseRule, RuleVerdict, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, UserError
from nephila.kernel.topics import DEAD, JOBS, PAGES, REQUESTS, RULE_VERDICTS, RULES, SEEDS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.claim_check import BlobClaimStore
from nephila_cluster.kafka.client import consumer
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.wire import FORMATS, headers_of
from nephila_stores.remote.blobs import DirectoryBlobs

from tests.contracts.buses import config_for
from tests.waits import until


@pytest.fixture
async def rig(broker):
    """Makes buses on topics of the test's own; starts and ends them."""

    class Rig:
        def __init__(self) -> None:
            self.config = config_for(broker)
            self.buses: list[KafkaBus] = []

        def bus(self, **settings: Any) -> KafkaBus:
            """A bus that is not started yet."""
            claim_store = settings.pop("claim_store", None)
            bus = KafkaBus(msgspec.structs.replace(self.config, **settings), SystemClock(), claim_store)
            self.buses.append(bus)
            return bus

        async def raw(
            self, topic: str, partition: int, value: bytes, headers: list[tuple[str, bytes]], key: bytes | None = None
        ) -> None:
            """A record that no bus of ours wrote."""
            producer = AIOKafkaProducer(bootstrap_servers=self.config.bootstrap)
            await producer.start()
            try:
                # A compacted topic takes nothing without a key.
                key = key or b"raw"
                await producer.send_and_wait(self.config.prefix + topic, value, key, partition, headers=headers)
            finally:
                await producer.stop()

        async def delete_before(self, topic: str, partition: int, offset: int) -> None:
            """As retention does."""
            client = AIOKafkaAdminClient(bootstrap_servers=self.config.bootstrap)
            await client.start()
            try:
                tp = TopicPartition(self.config.prefix + topic, partition)
                await client.delete_records({tp: RecordsToDelete(before_offset=offset)})
            finally:
                await client.close()

    made = Rig()
    await admin.apply(made.config)
    yield made
    await asyncio.gather(*(bus.close() for bus in made.buses))


def reader(bus: KafkaBus, got: list[Delivery], topic: Any = SEEDS, credits: int = 10_000, ack: bool = True) -> None:
    """A group that keeps what it gets."""
    bus.subscribe(topic, "reader", lambda d: (got.append((d, d.message)), ack and d.ack()), credits=credits)


def urls(got: list[Any]) -> list[str]:
    """URLs of the messages, in order."""
    return [message.url for _, message in got]


async def test_a_broker_killed_and_started_again_loses_nothing(rig, broker):
    """While messages flow: what was acknowledged arrives, in the end everything does, in order, and flow goes on."""
    bus, got = rig.bus(request_timeout_s=1.0), []  # shorter than the outage: requests expire
    reader(bus, got)
    await bus.start()
    receipts = []

    async def publish() -> None:
        for number in range(10**9):
            receipts.append(bus.publish(SEEDS, number % 4, Seed("j", str(number))))
            await asyncio.sleep(0.002)

    task = asyncio.ensure_future(publish())
    await until(lambda: len(got) > 100)
    await asyncio.to_thread(broker.crash)
    try:
        acknowledged = sum(receipt.done for receipt in receipts)
        await until(lambda: bool(bus.troubles) and not bus.may_emit("reader"))
    finally:
        await asyncio.to_thread(broker.start)
    await until(lambda: len(urls(got)) > acknowledged + 200)
    task.cancel()
    await asyncio.wait([task])
    await until(lambda: all(receipt.done for receipt in receipts) and len(set(urls(got))) == len(receipts))
    for partition in range(4):
        firsts = list(dict.fromkeys(int(m.url) for d, m in got if d.partition == partition))
        assert firsts == sorted(firsts)
    await until(lambda: not bus.troubles)


async def test_a_restart_goes_on_behind_what_was_acked(rig):
    """Acked messages do not come again, unacked ones do."""
    first, got = rig.bus(), []
    first.subscribe(SEEDS, "reader", lambda d: got.append(d) or (d.message.url != "2" and d.ack()), credits=99)
    await first.start()
    for number in range(4):
        first.publish(SEEDS, 1, Seed("j", str(number)))
    await until(lambda: len(got) == 4)
    await first.close()
    again, got2 = rig.bus(), []
    reader(again, got2)
    await again.start()
    again.publish(SEEDS, 1, Seed("j", "4"))
    await until(lambda: "4" in urls(got2))
    assert "2" in urls(got2)
    assert "0" not in urls(got2) or len(urls(got2)) == 5  # one record may hold them all


async def test_pressure_is_bounded_and_everything_comes_in_the_end(rig):
    """A reader that takes its time: what waits here stays under its limits, partitions pause, nothing is left out."""
    bus, got = rig.bus(buffer_messages=50, buffer_bytes=200_000, fetch_bytes=50_000, batch_bytes=5_000), []
    bus.subscribe(SEEDS, "reader", got.append, credits=2)
    await bus.start()
    rng = random.Random(3)
    for number in range(2000):
        bus.publish(SEEDS, number % 4, Seed("j", f"{number}-{rng.randbytes(400).hex()}"))
    await until(lambda: bus.producer.unsent == 0)
    sub = bus.groups["reader"].inbox.topics[rig.config.prefix + "seeds"]
    most = [0, 0]
    seen: list[str] = []
    while len(seen) < 2000:
        most = [max(most[0], len(sub.waiting)), max(most[1], sub.held_bytes)]
        for delivery in got.copy():
            seen.append(delivery.message.url)
            delivery.ack()
            got.remove(delivery)
        await asyncio.sleep(0)
    assert most[0] <= 50 + 200 * 10
    assert most[1] <= 200_000 + 4 * 60_000
    assert [int(url.split("-")[0]) % 4 for url in seen].count(0) == 500
    for partition in range(4):
        mine = [int(url.split("-")[0]) for url in seen if int(url.split("-")[0]) % 4 == partition]
        assert mine == list(range(partition, 2000, 4))


async def test_long_work_is_no_reason_to_lose_a_partition(rig, monkeypatch):
    """Everything is paused because a reader is busy for longer than any limit of a poll: the member stays."""
    monkeypatch.setattr(consumer, "MAX_POLL_S", 1)
    bus, got = rig.bus(buffer_messages=1, session_s=1.0), []
    reader(bus, got, credits=1, ack=False)
    await bus.start()
    for number in range(20):
        bus.publish(SEEDS, number % 4, Seed("j", str(number)))
    await until(lambda: len(got) == 1 and len(bus.held("reader")) == 4)
    generation = bus.groups["reader"].consumer._coordinator.generation
    await asyncio.sleep(2.5)
    assert bus.groups["reader"].consumer._coordinator.generation == generation
    assert bus.may_emit("reader")

    def all_came() -> bool:
        for delivery, _ in got:
            delivery.ack()
        return len(got) == 20

    await until(all_came)
    assert sorted(map(int, urls(got))) == list(range(20))


async def test_bytes_that_are_no_message_are_a_dead_letter_and_the_next_goes_on(rig):
    """The letter says where it was and holds the bytes."""
    bus, got, dead = rig.bus(), [], []
    reader(bus, got)
    bus.subscribe(DEAD, "undertaker", lambda d: (dead.append(d.message), d.ack()), credits=9)
    await bus.start()
    await rig.raw("seeds", 2, b"\xff\xfe no message", [])
    await rig.raw("seeds", 2, b"", headers_of(Seed))
    await bus.publish(SEEDS, 2, Seed("j", "good"))
    await until(lambda: urls(got) == ["good"] and len(dead) == 2)
    assert (dead[0].topic, dead[0].service, dead[0].partition) == ("seeds", "reader", 2)
    assert dead[0].message == b"\xff\xfe no message"


async def test_a_table_of_a_newer_release_is_not_passed_over(rig):
    """Who starts does not begin without it and may try again; who is at work goes on, and is not ready."""
    working, result, fatal = rig.bus(), [], []
    working.subscribe(JOBS, "working", lambda d: (result.append(d.message.uid), d.ack()), credits=9)
    working.on_fatal = fatal.append
    await working.start()
    await working.publish(JOBS, 0, CrawlJob("a"))
    await rig.raw("jobs", 0, b"whatever", [("v", b"%d" % (FORMATS[CrawlJob] + 1))], key=b"b")
    await until(lambda: bool(fatal))
    assert result == ["a"]
    assert isinstance(fatal[0], NotReadyError)
    written = (
        f"jobs at 1 was written by another release (format {FORMATS[CrawlJob] + 1} of CrawlJob, and this one reads 1)"
    )
    assert f"{written}: run one release in all services; nothing is lost" in str(fatal[0])
    assert working.troubles == [str(fatal[0])]
    starting = rig.bus()
    starting.subscribe(JOBS, "starting", lambda d: d.ack(), credits=9)
    reader(starting, [])
    for _ in range(2):
        with pytest.raises(NotReadyError, match="jobs at 1 was written by another release"):
            await starting.start()
    assert starting.held("reader") == frozenset()


async def test_what_a_newer_release_wrote_waits_for_a_newer_program(rig):
    """One clear line; that partition stands still with its position, the others go on."""
    bus, got, fatal = rig.bus(), [], []
    reader(bus, got)
    bus.on_fatal = fatal.append
    await bus.start()
    await rig.raw("seeds", 1, b"whatever", [("v", b"%d" % (FORMATS[Seed] + 1))])
    bus.publish(SEEDS, 1, Seed("j", "behind"))
    bus.publish(SEEDS, 2, Seed("j", "beside"))
    await until(lambda: urls(got) == ["beside"] and bool(fatal))
    assert f"written by another release (format {FORMATS[Seed] + 1} of Seed" in str(fatal[0])
    assert bus.troubles
    state = bus.groups["reader"].inbox.partition_states[TopicPartition(rig.config.prefix + "seeds", 1)]
    assert state.position.committed_to == 0


@pytest.mark.parametrize("accept", [False, True])
async def test_a_position_below_the_log_is_refused(rig, accept):
    """Messages deleted unread are a loss: one line that says how many and what to do, unless it is accepted."""
    first, got = rig.bus(), []
    reader(first, got)
    await first.start()
    await first.publish(SEEDS, 1, Seed("j", "0"))
    await until(lambda: len(got) == 1)
    await first.close()
    second = rig.bus()
    await second.start()
    for number in range(1, 6):
        await second.publish(SEEDS, 1, Seed("j", str(number)))
    await rig.delete_before("seeds", 1, 4)
    third, late, fatal = rig.bus(accept_loss=accept), [], []
    reader(third, late)
    third.on_fatal = fatal.append
    await third.start()
    if accept:
        await until(lambda: urls(late) == ["4", "5"])
        assert not fatal
    else:
        await until(lambda: bool(fatal))
        assert "seeds/1: the next offset to read is 1, but 3 records were deleted" in str(fatal[0])
        assert "ACCEPT_LOSS" in str(fatal[0])
        third.publish(SEEDS, 2, Seed("j", "other"))
        await until(lambda: urls(late) == ["other"])


async def test_requests_are_committed_on_reading(rig):
    """Their lease brings them back, so a restart does not: nobody fetches twice what a slow server still answers."""
    first, got = rig.bus(), []
    reader(first, got, REQUESTS, ack=False)
    await first.start()
    await first.publish(REQUESTS, 0, FetchRequest("j", b"", "held"))
    await until(lambda: len(got) == 1)
    await first.close()
    again, got2 = rig.bus(), []
    reader(again, got2, REQUESTS)
    await again.start()
    again.publish(REQUESTS, 0, FetchRequest("j", b"", "next"))
    await until(lambda: bool(got2))
    assert urls(got2) == ["next"]


async def test_a_request_is_delivered_behind_its_position(rig, monkeypatch):
    """Whoever dies over it leaves nothing to a successor that would begin at once what has just been done; as long as
    no position can be committed nothing is delivered, and nothing is skipped."""
    bus, result, refused = rig.bus(), [], []
    group_of = bus.groups

    def take(delivery: Delivery) -> None:
        partition_states = group_of["reader"].inbox.partition_states
        result.append((delivery.message.url, max(state.position.sent for state in partition_states.values())))
        delivery.ack()

    bus.subscribe(REQUESTS, "reader", take, credits=10)
    await bus.start()
    commit = consumer.commit_offsets

    async def fails(client: Any, offsets: Any) -> None:
        refused.append(offsets)
        if len(refused) < 3:
            raise CommitFailedError
        await commit(client, offsets)

    monkeypatch.setattr(consumer, "commit_offsets", fails)
    for url in ("one", "two"):
        await bus.publish(REQUESTS, 0, FetchRequest("j", b"", url))
    await until(lambda: len(result) == 2)
    assert [url for url, _ in result] == ["one", "two"]
    assert result[0][1] >= 1
    assert result[1][1] >= 2
    assert len(refused) >= 3


async def test_a_table_is_read_before_work_begins(rig):
    """Whoever starts later knows all jobs when start returns, whichever group it is, and hears of changes."""
    bus = rig.bus()
    await bus.start()
    for number in range(3):
        await bus.publish(JOBS, 0, CrawlJob("j1", generation=number))
    await bus.publish(JOBS, 3, CrawlJob("j2"))
    later, jobs = rig.bus(name="later"), {"a": {}, "b": {}}
    for name, known in jobs.items():
        later.subscribe(
            JOBS, name, lambda d, known=known: (known.__setitem__(d.message.uid, d.message), d.ack()), credits=1
        )
    await later.start()
    assert {uid: job.generation for uid, job in jobs["a"].items()} == {"j1": 2, "j2": 0}
    assert jobs["a"].keys() == jobs["b"].keys()
    await bus.publish(JOBS, 0, CrawlJob("j3"))
    await until(lambda: "j3" in jobs["a"] and "j3" in jobs["b"])


async def test_tables_are_read_one_after_the_other_as_they_were_asked_for(rig):
    """Whoever asks for rules before jobs knows all rules when the first job comes; an empty table holds up none."""
    bus, got = rig.bus(), []
    await bus.start()
    for number in range(20):
        await bus.publish(JOBS, 0, CrawlJob(f"j{number}"))
        await bus.publish(RULES, 0, ParseRule(f"r{number}"))
    later = rig.bus(name="later")
    for topic in (RULES, RULE_VERDICTS, JOBS):
        later.subscribe(topic, "reader", lambda d: (got.append(d.message), d.ack()), credits=1000)
    await later.start()
    assert [type(message) for message in got] == [ParseRule] * 20 + [CrawlJob] * 20
    await bus.publish(RULES, 0, ParseRule("r20"))
    await bus.publish(RULE_VERDICTS, 0, RuleVerdict("r20"))
    await bus.publish(JOBS, 0, CrawlJob("j20"))
    await until(lambda: len(got) == 43)


async def test_a_table_of_a_newer_release_stops_alone(rig):
    """One line names it; the others are read, and go on."""
    bus, got, fatal = rig.bus(), [], []
    bus.on_fatal = fatal.append
    for topic in (RULES, JOBS):
        bus.subscribe(topic, "reader", lambda d: (got.append(d.message), d.ack()), credits=1000)
    await bus.start()
    await rig.raw("rules", 0, b"whatever", [("v", b"%d" % (FORMATS[Seed] + 1))])
    await until(lambda: bool(fatal))
    assert f"rules at 0 was written by another release (format {FORMATS[ParseRule] + 1} of ParseRule" in str(fatal[0])
    await bus.publish(RULES, 0, ParseRule("behind"))
    await bus.publish(JOBS, 0, CrawlJob("beside"))
    await until(lambda: got == [CrawlJob("beside")])
    assert len(fatal) == 1


async def test_what_is_too_large_for_a_record_goes_by_the_blob_store(rig, tmp_path):
    """In its order among the others; without a store it is refused when published; a lost object is a dead letter."""
    body = random.Random(1).randbytes(3 << 20)
    claim_store = BlobClaimStore(DirectoryBlobs(tmp_path))
    bus, got, dead = rig.bus(claim_store=claim_store), [], []
    bus.subscribe(PAGES, "reader", lambda d: (got.append(d.message), d.ack()), credits=9)
    bus.subscribe(DEAD, "undertaker", lambda d: (dead.append(d.message), d.ack()), credits=9)
    await bus.start()
    for url, content in (("a", b"x"), ("b", body), ("c", memoryview(b"y"))):
        bus.publish(PAGES, 0, Page("j", b"", url, body=content))
    await until(lambda: len(got) == 3)
    assert [(page.url, page.body) for page in got] == [("a", b"x"), ("b", body), ("c", b"y")]
    assert claim_store.expire(time.time() + 8 * 86_400) == 0
    with pytest.raises(PermanentError, match="needs a blob store"):
        rig.bus().publish(PAGES, 0, Page("j", b"", "b", body=body))
    other = rig.bus(claim_store=BlobClaimStore(DirectoryBlobs(tmp_path / "elsewhere")), name="m2")
    other.subscribe(PAGES, "raw", lambda d: (got.append(d.message), d.ack()), credits=9)
    await other.start()
    await until(lambda: (len(dead) == 1 and [page.url for page in got[3:]] == ["a", "c"]) or len(dead) > 1)
    assert "is gone from the blob store" in dead[0].error
    assert claim_store.expire(time.time() + 11 * 86_400) == 1


async def test_a_silent_consumer_is_begun_anew(rig):
    """Assigned, behind and silent, as when its fetcher has died: it is replaced and nothing is left out or doubled."""
    bus, got = rig.bus(silent_s=0.6), []
    reader(bus, got)
    await bus.start()
    bus.publish(SEEDS, 0, Seed("j", "0"))
    await until(lambda: urls(got) == ["0"])

    async def never(*_: Any) -> bool:
        await asyncio.Event().wait()
        return False

    bus.groups["reader"].consumer._fetcher._proc_fetch_request = never
    sent = 1
    while not bus.groups["reader"].restarts:
        bus.publish(SEEDS, 0, Seed("j", str(sent)))
        sent += 1
        await asyncio.sleep(0.02)
    await until(lambda: len(got) == sent)
    assert urls(got) == [str(number) for number in range(sent)]
    assert bus.groups["reader"].restarts == 1


async def test_no_broker_is_one_line_with_the_remedy():
    """Whoever asks: the bus and the topics."""
    config = KafkaConfig(bootstrap="127.0.0.1:1")
    bus = KafkaBus(config, SystemClock())
    with pytest.raises(UserError, match=r"^no Kafka broker answers at 127.0.0.1:1 .*--bootstrap HOST:PORT"):
        await bus.start()
    with pytest.raises(UserError, match="no Kafka broker answers"):
        await admin.apply(config)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            errors.KafkaConnectionError("Unable to bootstrap"),
            "no Kafka broker answers at 127.0.0.1:1 (KafkaConnectionError)",
        ),
        (TimeoutError(), "no Kafka broker answers at 127.0.0.1:1 (TimeoutError)"),
        (
            errors.TopicAuthorizationFailedError("pages"),
            "127.0.0.1:1 refuses: [Error 29] TopicAuthorizationFailedError: pages",
        ),
        (errors.InvalidSessionTimeoutError(), "refuses: [Error 26] InvalidSessionTimeoutError: set kafka: {session_s"),
        (errors.GroupCoordinatorNotAvailableError(), "it has no coordinator for groups yet"),
        (errors.KafkaError("two\nlines"), "the broker at 127.0.0.1:1 refuses: KafkaError: two lines"),
    ],
)
async def test_what_a_broker_says_is_told_as_it_is(error, line):
    """Silence is silence, a refusal is its own words; both are waited for, in one line."""
    result = await admin.trouble_with(KafkaConfig(bootstrap="127.0.0.1:1"), error)
    assert isinstance(result, NotReadyError)
    assert line in str(result)
    assert len(str(result).splitlines()) == 1


async def test_no_topics_is_one_line_with_the_remedy(rig):
    """It names them and the command."""
    bus = rig.bus(prefix="nothing-")
    with pytest.raises(UserError, match=r"has no topic nothing-jobs, .*nephila service topics apply --bootstrap"):
        await bus.start()


async def test_whatever_order_acks_come_in_all_is_counted_and_committed(rig):
    """Deliveries are counted down to nothing, and the position ends behind the last."""
    bus, got = rig.bus(), []
    reader(bus, got, ack=False)
    await bus.start()
    for number in range(50):
        bus.publish(SEEDS, number % 4, Seed("j", str(number)))
    await until(lambda: len(got) == 50)
    random.Random(2).shuffle(got)
    assert bus.unacked == 50
    for delivery, _ in got:
        delivery.ack()
    assert bus.unacked == 0
    assert Counter(urls(got)).most_common(1)[0][1] == 1
    await bus.groups["reader"].commit()
    partition_states = bus.groups["reader"].inbox.partition_states
    assert all(state.position.sent == state.position.next for state in partition_states.values())
