"""The secured broker of these tests, one per test process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kernel.bus.kafka.client.secured_broker import SecuredBroker
from tools.kafka_broker import Missing


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A real broker with TLS and SASL."""
    try:
        found = SecuredBroker(tmp_path_factory.mktemp("secured")).start()
    except Missing as missing:
        if os.environ.get("CI") or os.environ.get("NEPHILA_REQUIRE_ALL"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    yield found
    found.broker.stop()
