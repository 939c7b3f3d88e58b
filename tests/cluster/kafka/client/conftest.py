"""The secured broker of these tests, one per test process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cluster.kafka.client.secured_broker import SecuredBroker
from tests.required import required
from tests.waits import until
from tools.install import Missing


@pytest.fixture(autouse=True)
async def every_socket_is_closed() -> AsyncIterator[None]:
    """No client of a test leaves a socket open. One over TLS is closed some turns after its client: until then the loop
    must not end, or the socket is a ResourceWarning of a later test."""
    yield
    selector: Any = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    await until(lambda: len(selector.get_map()) <= 1, 60.0)  # the loop has a socket of its own


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A real broker with TLS and SASL."""
    with required(Missing):
        found = SecuredBroker(tmp_path_factory.mktemp("secured")).start()
    yield found
    found.broker.stop()
