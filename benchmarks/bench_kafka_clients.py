"""What a Kafka client costs in a beat: aiokafka as the services use it beside librdkafka (confluent-kafka).

usage: pip install confluent-kafka, then python -m benchmarks.bench_kafka_clients [--partitions 16,256] [--seconds 20]
       [--repeat 2] [--messages 40] [--save]

Work: every half second a writer sends messages to random partitions of four topics, those of a partition in one record,
and waits for all; a reader takes them and commits its offsets every two seconds. Both are programs with an event loop,
which gets each answer. CPU of writer, reader and broker is read from /proc after a warm-up. The clients run in turn
against one broker, with the same messages, then without any. The requests of librdkafka are counted in a run of their
own, since its statistics cost CPU.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.produce import ProduceRequest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import Waiting
from nephila_cluster.kafka.client.consumer import relax_polling
from nephila_cluster.kafka.client.fetch_client import IDLE_WAIT_MS, gather_fetches
from nephila_cluster.kafka.config import KafkaConfig

from benchmarks import report
from tools.kafka_broker import Broker
from tools.system import cpu_s

PERIOD_S = 0.5
COMMIT_S = 2.0
TOPICS = 4
MESSAGE_BYTES = 400
WARM_S = 5.0
CLIENTS = ("aiokafka", "librdkafka")


def beats(seed: int, partitions: int, messages: int) -> Iterator[dict[tuple[int, int], bytes]]:
    """The records of each beat: (topic, partition) → its messages in one value."""
    random_number = random.Random(seed)
    message = random_number.randbytes(MESSAGE_BYTES)
    while True:
        records: dict[tuple[int, int], int] = Counter(
            (topic, random_number.randrange(partitions)) for topic in range(TOPICS) for _ in range(messages)
        )
        yield {where: message * count for where, count in records.items()}


def wait_s(part: float) -> float:
    """Seconds until the next instant that lies this part of the period after a beat."""
    now = time.time() / PERIOD_S
    return (int(now - part) + 1 + part - now) * PERIOD_S


def say(**figures: float) -> None:
    """Report what this program has done so far."""
    print(json.dumps(figures), flush=True)


class Rdkafka:
    """A producer of librdkafka behind an event loop: answers of a beat come back by one call."""

    def __init__(self, address: str, statistics: dict[str, Any]) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(
            {
                **statistics,
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "max.in.flight.requests.per.connection": 5,
            }
        )

    async def send(self, records: dict[tuple[int, int], bytes]) -> None:
        """Send the records and wait until the broker has all."""
        await asyncio.get_running_loop().run_in_executor(None, self._send, records)

    def _send(self, records: dict[tuple[int, int], bytes]) -> None:
        offsets: list[int] = []
        for (topic, partition), value in records.items():
            self._producer.produce(
                f"t{topic}", value, partition=partition, on_delivery=lambda error, sent: offsets.append(sent.offset())
            )
        self._producer.flush()
        assert len(offsets) == len(records)


class Aiokafka:
    """A producer as the services have it: a task for each record."""

    def __init__(self, address: str, statistics: dict[str, Any]) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, acks="all", linger_ms=0, max_batch_size=64 << 10
        )
        self._started = False

    async def send(self, records: dict[tuple[int, int], bytes]) -> None:
        """Send the records and wait until the broker has all."""
        if not self._started:
            await self._producer.start()
            self._started = True
            counted(self._producer.client, ProduceRequest, sent)
        await asyncio.gather(
            *(
                self._producer.send_and_wait(f"t{topic}", value, partition=partition)
                for (topic, partition), value in records.items()
            )
        )


sent: Counter[str] = Counter()
"""Requests of this program that carry messages."""


def statistics(kind: str) -> dict[str, Any]:
    """Settings with which librdkafka counts its requests of a kind."""

    def count(text: str) -> None:
        sent["requests"] = sum(broker["req"].get(kind, 0) for broker in json.loads(text)["brokers"].values())

    return {"statistics.interval.ms": 500, "stats_cb": count}


def counted(client: Any, kind: type, count: Counter[str]) -> None:
    """Count the requests of a kind that a client sends."""
    send: Callable[..., Any] = client.send

    async def counting(node_id: int, request: Any, **options: Any) -> Any:
        if isinstance(request, kind):
            count["requests"] += 1
        return await send(node_id, request, **options)

    client.send = counting


async def write(client: str, address: str, partitions: int, messages: int, count: bool) -> None:
    """Write in each beat, until this program is ended."""
    options = statistics("Produce") if count else {}
    producer = (Rdkafka if client == "librdkafka" else Aiokafka)(address, options)
    total = 0
    for records in beats(7, partitions, messages):
        await asyncio.sleep(wait_s(0.0))
        if messages:
            await producer.send(records)
        else:
            await producer.send({(0, 0): b"x"} if not total else {})
        total += max(len(records), not total)
        say(records=total, requests=sent["requests"])


async def read_aiokafka(address: str, partitions: int) -> None:
    """Read in each beat by the fetch client of the services."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address, group_id="aiokafka", enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await consumer.start()
    consumer.assign([TopicPartition(f"t{topic}", number) for topic in range(TOPICS) for number in range(partitions)])
    relax_polling(consumer, IDLE_WAIT_MS)
    counted(consumer._client, FetchRequest, sent)
    gather_fetches(consumer, KafkaConfig(), SystemClock(), lambda: Waiting.HOST, lambda: (PERIOD_S, wait_s(0.12)))
    total, committed, ends = 0, time.monotonic(), {}
    while True:
        for place, records in (await consumer.getmany(timeout_ms=200)).items():
            total += len(records)
            ends[place] = records[-1].offset + 1
        if time.monotonic() > committed + COMMIT_S:
            if ends:
                await consumer.commit(ends)
            ends, committed = {}, time.monotonic()
            say(records=total, requests=sent["requests"])


async def read_librdkafka(address: str, partitions: int, count: bool) -> None:
    """Read by a thread of librdkafka; the broker holds each fetch for a period, so that there are as few as with us."""
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as Part

    consumer = Consumer(
        {
            **(statistics("Fetch") if count else {}),
            "bootstrap.servers": address,
            "group.id": "librdkafka",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": int(PERIOD_S * 1000),
            "fetch.min.bytes": 1 << 20,
        }
    )
    consumer.assign([Part(f"t{topic}", number) for topic in range(TOPICS) for number in range(partitions)])
    loop = asyncio.get_running_loop()
    total, committed, ends = 0, time.monotonic(), {}
    while True:
        messages = await loop.run_in_executor(None, lambda: consumer.consume(1000, 0.2))
        for message in messages:
            if message.error() is None:
                total += bool(message.value())
                ends[message.topic(), message.partition()] = message.offset() + 1
        if time.monotonic() > committed + COMMIT_S:
            if ends:
                offsets = [Part(topic, number, offset) for (topic, number), offset in ends.items()]
                consumer.commit(offsets=offsets, asynchronous=True)
            ends, committed = {}, time.monotonic()
            say(records=total, requests=sent["requests"])


async def create(address: str, partitions: int) -> None:
    """Make the topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(f"t{number}", partitions, 1) for number in range(TOPICS)])
    await admin.close()


class Program:
    """One writer or reader, with the figures that it has said last."""

    def __init__(self, folder: Path, role: str, client: str, args: list[str]) -> None:
        self._log = folder / f"{role}-{client}-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "benchmarks.bench_kafka_clients", "--role", role, "--client", client, *args]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log)

    def read(self) -> dict[str, float]:
        """CPU seconds, and what the program has said."""
        lines = self._log.read_text().splitlines()
        said = json.loads(lines[-1]) if lines and lines[-1].endswith("}") else {}
        if self.process.poll() is not None:
            raise SystemExit(f"a program has ended: {self._log}")
        return {"cpu_s": cpu_s(self.process.pid), "records": 0.0, "requests": 0.0, **said}

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


def once(
    broker: Broker,
    folder: Path,
    client: str,
    args: argparse.Namespace,
    partitions: int,
    messages: int,
    count: bool = False,
) -> dict[str, Any]:
    """One client for some seconds. `count`: librdkafka counts its requests."""
    words = ["--address", broker.address, "--partitions", str(partitions), "--messages", str(messages)]
    words += ["--count"] if count else []
    assert broker.process is not None
    programs = {role: Program(folder, role, client, words) for role in ("read", "write")}
    try:
        time.sleep(WARM_S)
        before, load = {role: program.read() for role, program in programs.items()}, os.getloadavg()[0]
        broker_s, began = cpu_s(broker.process.pid), time.monotonic()
        time.sleep(args.seconds)
        after = {role: program.read() for role, program in programs.items()}
        periods = (time.monotonic() - began) / PERIOD_S
        row: dict[str, Any] = {"client": client, "partitions": partitions, "messages": messages * TOPICS, "load": load}
        for role in programs:
            spent = {name: after[role][name] - before[role][name] for name in after[role]}
            row[f"{role} ms"] = spent["cpu_s"] * 1000 / periods
            row[f"{role} records"] = spent["records"] / periods
            row[f"{role} requests"] = spent["requests"] / periods
        row["broker ms"] = (cpu_s(broker.process.pid) - broker_s) * 1000 / periods
        return row
    finally:
        for program in programs.values():
            program.stop()


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians of the runs of each kind."""
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        kinds[row["partitions"], row["messages"], row["client"]].append(row)
    return [
        {
            name: median(row[name] for row in same) if isinstance(same[0][name], float) else same[0][name]
            for name in same[0]
        }
        for same in kinds.values()
    ]


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(prog="benchmarks.bench_kafka_clients", description="Two Kafka clients in a beat.")
    options.add_argument("--partitions", default="16,256")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--repeat", type=int, default=2)
    options.add_argument("--messages", type=int, default=40, help="of each topic in a beat")
    options.add_argument("--save", action="store_true", help="write the raw result")
    for name in ("--role", "--client", "--address"):
        options.add_argument(name, help=argparse.SUPPRESS)
    options.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    args = options.parse_args(argv)
    counts = [int(word) for word in args.partitions.split(",")]
    if args.role == "write":
        uvloop.run(write(args.client, args.address, counts[0], args.messages, args.count))
    elif args.role == "read" and args.client == "librdkafka":
        uvloop.run(read_librdkafka(args.address, counts[0], args.count))
    elif args.role == "read":
        uvloop.run(read_aiokafka(args.address, counts[0]))
    if args.role:
        return 0
    rows = []
    for partitions in counts:
        with tempfile.TemporaryDirectory() as name:
            broker = Broker(Path(name)).start()
            try:
                asyncio.run(create(broker.address, partitions))
                for number in range(args.repeat):
                    for client in CLIENTS if number % 2 == 0 else reversed(CLIENTS):
                        rows.append(once(broker, Path(name), client, args, partitions, args.messages))
                        print(json.dumps(rows[-1]), flush=True)
                for client in CLIENTS:
                    rows.append(once(broker, Path(name), client, args, partitions, 0))
                    print(json.dumps(rows[-1]), flush=True)
                counts_of = once(broker, Path(name), "librdkafka", args, partitions, args.messages, count=True)
                for row in rows:
                    if row["client"] == "librdkafka" and row["messages"] and row["partitions"] == partitions:
                        row |= {f"{role} requests": counts_of[f"{role} requests"] for role in ("read", "write")}
            finally:
                broker.stop()
    shown = summary(rows)
    print(report.table(list(shown[0]), [[_rounded(value) for value in row.values()] for row in shown]))
    if args.save:
        known = report.versions("aiokafka", "confluent-kafka", "uvloop")
        path = report.save("kafka-clients", {"versions": known, "seconds": args.seconds, "rows": shown, "runs": rows})
        print(f"raw: benchmarks/results/{path.name}")
    return 0


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


if __name__ == "__main__":
    raise SystemExit(main())
