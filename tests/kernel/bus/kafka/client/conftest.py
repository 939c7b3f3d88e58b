"""The secured broker of these tests, one per test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.bus.kafka.client.secured_broker import SecuredBroker
from tests.required import required
from tools.install import Missing


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A real broker with TLS and SASL."""
    with required(Missing):
        found = SecuredBroker(tmp_path_factory.mktemp("secured")).start()
    yield found
    found.broker.stop()
