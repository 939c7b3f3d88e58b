"""A program that reads its tables no more does not go on as if it did."""

from __future__ import annotations

import asyncio
import logging

import pytest
from nephila.kernel.bus.kafka.compacted import CompactedTopics
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS


class Reader:
    """Of a table that is never asked for."""

    group = "scheduler"


class Broken(CompactedTopics):
    """Tables of a client with a defect."""

    def __init__(self, fatal) -> None:
        super().__init__(KafkaConfig(), fatal)
        self.add(JOBS, Reader())
        self.go_on = asyncio.Event()

    async def _read(self, tables) -> None:
        self.caught_up.set()
        await self.go_on.wait()
        raise ValueError("a defect")


async def test_what_nobody_expected_ends_the_program(caplog):
    """In one line, and the log has where it was."""
    ended: list[UserError] = []
    tables = Broken(ended.append)
    await tables.start()
    assert not ended
    tables.go_on.set()
    with pytest.raises(ValueError, match="a defect"):
        await tables._task
    await asyncio.sleep(0)
    assert [str(error) for error in ended] == ["reading the compacted topics ended: ValueError('a defect')"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_an_end_that_was_wanted_is_none():
    """The bus is closed."""
    ended: list[UserError] = []
    tables = Broken(ended.append)
    await tables.start()
    await tables.close()
    await asyncio.sleep(0)
    assert not ended
