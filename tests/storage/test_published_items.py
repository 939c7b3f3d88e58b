"""Items on topics: which ones, in which form, and those that a broker would refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import RECORDS
from nephila.storage.config import StorageConfig
from nephila.storage.published_items import MAX_ITEM_BYTES
from nephila.storage.service import build

from tests.storage.storage_rig import key, record


class Published:
    """The messages."""

    def __init__(self) -> None:
        self.items: list[tuple[str, bytes, bytes, int]] = []

    async def publish(self, items: Sequence[tuple[str, bytes, bytes, int]]) -> None:
        """See `ItemTopics`."""
        self.items += items

    async def close(self) -> None:
        """See `ItemTopics`."""


async def published(directory: Path, *records: m.Record, **config: Any) -> list[tuple[str, bytes, bytes, int]]:
    """The messages of these records."""
    found, clock = Published(), ManualClock()
    bus = LocalBus(clock)
    storage = build(StorageConfig(directory=directory, fsync=False, **config), bus, clock, None, found)
    await storage.start()
    for one in records:
        bus.publish(RECORDS, 0, one)
    await storage.flush()
    await storage.close()
    return found.items


def page(number: int, *items: bytes, rule: str = "shop", **fields: Any) -> m.Record:
    """A page with items."""
    return record(number, rule=rule, rule_version=7, items=list(items), **fields)


async def test_items_of_platforms_are_published_and_with_the_setting_those_of_all_rules(tmp_path):
    """Not the parts of second pages, and nothing of a page without items."""
    pages = [
        page(1, b'{"a":1}', b'{"a":2}'),
        page(2, b'{"a":3}', rule="portal", context=m.Context(stage="content", platform="portal")),
        page(3, b"{}", rule="shop/more"),
        record(4),
    ]
    only = await published(tmp_path / "platforms", *pages)
    assert [(name, version) for name, _, _, version in only] == [("portal", 7)]
    found = await published(tmp_path / "rules", *pages, item_topics="rules")
    assert [name for name, *_ in found] == ["shop", "shop", "portal"]
    _, name, value, _ = found[1]
    assert name == key(1).hex().encode()
    assert json.loads(value) == {
        "id": f"{key(1).hex()}-1",
        "resource": "shop",
        "url": record(1).url,
        "time": "2027-01-15T08:00:01.250Z",
        "a": 2,
    }


async def test_an_item_that_a_broker_refuses_does_not_stop_the_others(tmp_path, caplog):
    """It is logged with its page, and stored in the table."""
    large = b'{"t":"%s"}' % (b"x" * MAX_ITEM_BYTES)
    found = await published(tmp_path, page(1, large, b'{"a":2}'), page(2, b'{"a":3}'), item_topics="rules")
    assert [json.loads(value)["a"] for _, _, value, _ in found] == [2, 3]
    assert f"page {key(1).hex()}, has" in caplog.text
