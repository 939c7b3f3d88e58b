"""A client that has stopped is replaced once, however many messages it has refused; each message is sent."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaError
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.waits import Backoff
from nephila.kernel.topics import SEEDS
from nephila_cluster.kafka import producer as module
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.producer import BatchingProducer


class Client:
    """Takes every message, or has stopped and takes none."""

    def __init__(self, stopped: bool) -> None:
        self.taken: list[int] = []
        self.ends = 0
        task = asyncio.get_running_loop().create_future()
        self._sender = SimpleNamespace(sender_task=task)
        self.stopped = stopped
        if stopped:
            task.set_result(None)

    async def send_and_wait(self, topic: str, value: bytes, *, partition: int, **_: object) -> SimpleNamespace:
        """See `AIOKafkaProducer`."""
        await asyncio.sleep(0)
        if self.stopped:
            raise KafkaError("the sender has stopped")
        self.taken.append(partition)
        return SimpleNamespace(offset=len(self.taken), timestamp_type=0, timestamp=0)

    async def stop(self) -> None:
        """See `AIOKafkaProducer`."""
        self.ends += 1
        self._sender.sender_task.cancel()


class Producer(BatchingProducer):
    """Its first client has stopped, the next ones work."""

    def __init__(self) -> None:
        super().__init__(KafkaConfig(linger_s=0.0), SystemClock(), None)
        self.clients: list[Client] = []

    async def _connect(self) -> Client:  # type: ignore[override]
        await asyncio.sleep(0)
        self.clients.append(Client(stopped=not self.clients))
        return self.clients[-1]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Between attempts."""
    monkeypatch.setattr(module, "RETRY", Backoff(0.0, 0.0))


async def test_messages_of_many_partitions_share_one_new_client():
    """A second replacement would end the client that others send with, or leave it open for ever."""
    producer = Producer()
    await producer.start()
    receipts = [producer.put(SEEDS, partition, Seed("j", "u")) for partition in range(4)]
    async with asyncio.timeout(60):
        while not all(receipt.done for receipt in receipts):  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert len(producer.clients) == 2
    assert [client.ends for client in producer.clients] == [1, 0]
    assert sorted(producer.clients[1].taken) == [0, 1, 2, 3]
    assert (producer.unsent, producer.trouble) == (0, "")
    await producer.close(1.0)
    assert producer.clients[1].ends == 1


async def test_a_client_that_cannot_stop_does_not_end_the_program_with_an_error(monkeypatch):
    """The broker is away: its last messages wait for an answer until the time is over."""
    producer = Producer()
    await producer.start()

    async def times_out() -> None:
        raise TimeoutError

    monkeypatch.setattr(producer.clients[0], "stop", times_out)
    await producer.close(1.0)
    assert producer.clients[0].ends == 0
