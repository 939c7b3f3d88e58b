"""Items that are published in addition to their rows: for programs that read them from a broker.

They are published before their rows are durable: a crash in between repeats them and loses none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from nephila.kernel import messages as m
from nephila.kernel.pages.item_parts import is_part
from nephila.kernel.runtime.errors import TemporaryError
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.lost_store import LostStore
from nephila.storage.rows import URL_KEY, items_of, row_of
from nephila.storage.sinks.item_files import item_lines

log = logging.getLogger(__name__)

MAX_ITEM_BYTES = 2_000_000
"""Longest item that is published; brokers refuse a longer message, each time."""
Line = tuple[str, bytes, bytes, int]
"""(name, key, item, version of the rule)."""


class ItemTopics(Protocol):
    """Where items of platforms, or of all rules, are published in addition."""

    async def publish(self, items: Sequence[Line]) -> None:
        """Raises `TemporaryError`."""

    async def close(self) -> None: ...


class PublishedItems:
    """The items of one storage service."""

    def __init__(self, config: StorageConfig, topics: ItemTopics | None, lost_store: LostStore) -> None:
        """`topics`: None where nothing is published."""
        self._of_rules = config.item_topics == "rules"
        self._topics = topics
        self._lost_store = lost_store

    def of(self, records: Sequence[m.Record]) -> list[Line]:
        """All items of records that are published."""
        if self._topics is None:
            return []
        return [
            (record.rule, row[URL_KEY].encode(), line, record.rule_version)
            for record in records
            if record.items and self._is_published(record)
            for row in (row_of(record),)
            for line in item_lines(row, items_of(record, ""))
        ]

    async def publish(self, lines: Sequence[Line], waiting: int) -> None:
        """Publish items; `waiting`: rows that wait for it. Raises `StoreLost` if the service is closed meanwhile."""
        if self._topics is None:
            return
        items = [line for line in lines if len(line[2]) <= MAX_ITEM_BYTES]
        for name, key, value, _ in lines if len(items) < len(lines) else ():
            if len(value) > MAX_ITEM_BYTES:
                log.error(
                    "storage: an item of %s, page %s, has %d bytes, and a message %d at most: it is in the table only",
                    *(name, key.decode(), len(value), MAX_ITEM_BYTES),
                )
        if items:
            await self._lost_store.repeat(partial(_publish, self._topics, items), waiting)

    async def close(self) -> None:
        """Publish no more."""
        if self._topics is not None:
            await self._topics.close()

    def _is_published(self, record: m.Record) -> bool:
        if self._of_rules:
            return bool(record.rule) and not is_part(record.rule)
        return record.context is not None and record.context.platform == record.rule


async def _publish(topics: ItemTopics, items: Sequence[Line]) -> None:
    try:
        await topics.publish(items)
    except TemporaryError as error:
        raise StoreLost(str(error)) from error
