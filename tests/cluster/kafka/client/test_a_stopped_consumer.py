"""A consumer that was stopped has no connection, also none that a request opens while it stops."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from nephila_cluster.kafka.client.consumer import stop_consumer


class Client:
    """As the client of the library: a request opens a connection when it has none; `close` closes those there are."""

    def __init__(self) -> None:
        self._get_conn_lock = asyncio.Lock()
        self.open = {"first"}
        self.answer = asyncio.Event()

    async def _get_conn(self, node_id: int) -> str:
        async with self._get_conn_lock:
            await self.answer.wait()
            self.open.add("second")
            return "second"

    async def close(self) -> None:
        self.open.clear()


async def test_a_connection_that_is_opened_meanwhile_is_closed_and_no_other_follows():
    client = Client()
    late = asyncio.ensure_future(client._get_conn(1))
    await asyncio.sleep(0)
    consumer = SimpleNamespace(stop=client.close, _client=client, _coordinator=SimpleNamespace())
    stopping = asyncio.ensure_future(stop_consumer(consumer, leave=True))
    for _ in range(5):
        await asyncio.sleep(0)
    client.answer.set()
    await stopping
    assert late.done()
    assert not client.open
    assert await client._get_conn(1) is None
    assert not client.open
