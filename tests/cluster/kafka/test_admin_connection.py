"""The admin connection is closed however its use ends: also where the start is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from nephila.kernel.runtime.errors import NotReadyError
from nephila_cluster.kafka.admin import topics
from nephila_cluster.kafka.config import KafkaConfig


class Client:
    """An admin client whose start and close are counted."""

    made: list[Client]
    starts: Any = None
    """Raised by the start; `asyncio.Event`: the start waits for it."""

    def __init__(self, **_: object) -> None:
        self.closed = 0
        self.made.append(self)

    async def start(self) -> None:
        """See the client of aiokafka."""
        if isinstance(self.starts, asyncio.Event):
            await self.starts.wait()
        elif self.starts is not None:
            raise self.starts

    async def close(self) -> None:
        """See the client of aiokafka."""
        self.closed += 1


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    """The class of the clients that are made."""
    kind = type("Client", (Client,), {"made": []})
    monkeypatch.setattr(topics, "AIOKafkaAdminClient", kind)
    return kind


async def used(error: BaseException | None = None) -> None:
    """Connect, and raise this error while connected."""
    async with topics.admin(KafkaConfig(bootstrap="127.0.0.1:1")):
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("starts", "error", "raised"),
    [
        (None, None, None),
        (OSError("no route"), None, NotReadyError),
        (ValueError("no version"), None, NotReadyError),
        (None, KafkaError("refused"), NotReadyError),
        (None, ValueError("of the caller"), ValueError),
        (None, OSError("of the caller"), OSError),
    ],
)
async def test_it_is_closed_once_and_errors_are_lines(
    clients: type[Client], starts: Exception | None, error: Exception | None, raised: type[Exception] | None
) -> None:
    """Errors of the broker are translated, those of the caller are not."""
    clients.starts = starts
    if raised is None:
        await used(error)
    else:
        with pytest.raises(raised):
            await used(error)
    assert [one.closed for one in clients.made] == [1]


async def test_it_is_closed_when_its_start_is_cancelled(clients: type[Client]) -> None:
    """As when a program ends while no broker answers."""
    clients.starts = asyncio.Event()
    task = asyncio.ensure_future(used())
    await asyncio.sleep(0)  # up to the start, which waits
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.closed for one in clients.made] == [1]
