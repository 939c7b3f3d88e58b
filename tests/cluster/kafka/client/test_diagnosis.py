"""What a failed connection is tried with again, to name the cause: no connection stays open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from nephila_cluster.kafka.client import diagnosis
from nephila_cluster.kafka.config import KafkaConfig

CONFIG = KafkaConfig(bootstrap="b1.test:1,b2.test:2")


class Brokers:
    """Connections to brokers that advertise `b3.test:3`; those of `broken` fail at the first request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *broken: str) -> None:
        self.broken = broken
        self.opened: list[str] = []
        self.closed: list[str] = []
        monkeypatch.setattr(diagnosis, "create_conn", self._connect)
        monkeypatch.setattr(diagnosis, "_speaks_tls", self._speaks_tls)

    async def _connect(self, host: str, port: int, **options: Any) -> Any:
        async def send(request: object) -> Any:
            if host in self.broken:
                raise KafkaConnectionError("gone")
            return SimpleNamespace(brokers=[(1, "b3.test", 3)])

        async def close() -> None:
            self.closed.append(host)

        self.opened.append(host)
        return SimpleNamespace(send=send, close=close)

    async def _speaks_tls(self, host: str, port: int) -> bool:
        return False


async def test_a_broker_that_answers_is_asked_for_its_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that answers, in any order; then what it advertises."""
    brokers = Brokers(monkeypatch)
    assert await diagnosis.diagnose(CONFIG) == ""
    assert brokers.opened[0] in ("b1.test", "b2.test")
    assert brokers.opened[1:] == ["b3.test"]
    assert brokers.closed == brokers.opened


async def test_brokers_that_close_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is tried; the fault of the first is named."""
    brokers = Brokers(monkeypatch, "b1.test", "b2.test")
    found = await diagnosis.diagnose(CONFIG)
    assert found.startswith(f"{brokers.opened[0]}:")
    assert "closes the connection before the first request" in found
    assert sorted(brokers.opened) == ["b1.test", "b2.test"]
    assert brokers.closed == brokers.opened


async def test_an_advertised_listener_that_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named as such."""
    brokers = Brokers(monkeypatch, "b3.test")
    found = await diagnosis.diagnose(KafkaConfig(bootstrap="b1.test:1"))
    assert found.startswith("the broker advertises b3.test:3: b3.test:3 closes the connection before the first request")
    assert brokers.closed == brokers.opened == ["b1.test", "b3.test"]
