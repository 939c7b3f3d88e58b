"""The claim of a takeover, and which logs fit which snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import FrontierClaim, FrontierManifest, FrontierRecord
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import FRONTIER
from nephila_cluster.scheduler.takeover import Takeover, claim

from tests.cluster.scheduler.cluster_rig import PARTITIONS, World, ends, web


class Producer:
    """A `LogBus` that knows the offset of a record only for the first so many of each partition: `silent` answers
    come without an offset, as from a broker that has deduplicated the record."""

    member = "me"

    def __init__(self, last: dict[int, int], silent: dict[int, int]) -> None:
        self.last = last
        self.silent = silent
        self.published: list[tuple[int, Any]] = []

    def last_offset(self, topic: Any, partition: int) -> int:
        assert topic is FRONTIER
        return self.last[partition]

    def publish(self, topic: Any, partition: int, message: Any) -> Receipt:
        assert topic is FRONTIER
        self.published.append((partition, message))
        if self.silent.get(partition, 0):
            self.silent[partition] -= 1
        else:
            self.last[partition] += 10
        return Receipt(0)


async def test_the_epoch_is_the_offset_of_this_claim() -> None:
    """Where the answer has no offset, the last known one is of an older record: the claim is sent again."""
    bus = Producer({0: -1, 1: 70, 2: 0}, silent={1: 2})
    epochs = await claim(bus, [0, 1, 2], layout_of(4), 5.0, 9.0)  # type: ignore[arg-type]
    assert epochs == {0: 9, 1: 80, 2: 10}
    assert [partition for partition, _ in bus.published] == [0, 1, 2, 1, 1]
    claims = [message for _, message in bus.published]
    assert claims == [FrontierRecord(FrontierClaim("me", 5.0, 9.0, 4))] * 5


@pytest.mark.parametrize(
    ("bounds", "refused"),
    [
        ((0, 21), ""),
        ((0, 20), r"frontier/3 ends at 20, and its snapshot was taken at 20: the topic was deleted"),
        ((0, 5), r"frontier/3 ends at 5"),
        ((20, 30), ""),
        ((21, 30), ""),
        ((22, 30), r"frontier/3: the newest snapshot was taken at 20, and the log begins at 22"),
    ],
)
def test_a_log_fits_a_snapshot_when_no_record_between_is_missing(bounds: tuple[int, int], refused: str) -> None:
    """The snapshot holds everything up to the record at offset 20."""
    manifest = FrontierManifest(partition=3, offset=20)
    if refused:
        with pytest.raises(UserError, match=refused):
            Takeover._check(manifest, bounds)
    else:
        Takeover._check(manifest, bounds)


async def test_a_log_that_begins_right_after_the_snapshot_is_taken_over(tmp_path: Path) -> None:
    """The broker deleted every record that the snapshot holds."""
    world = World(tmp_path, web(4, 6), snapshot_bytes=1 << 20)
    await world.start("a")
    await world.give("a")
    world.submit(*(f"http://h{host}.test/0" for host in range(4)))
    await world.until(8)
    for owner in world.members["a"][1].owners.values():
        owner.log.size = (1 << 20) + 1
        owner.wake()
    await world.settle()
    first = {p: world.broker.first["frontier", p] for p in range(PARTITIONS)}
    assert max(first.values()) > 0
    for p, offset in first.items():
        if offset and offset + 1 < len(world.broker.logs["frontier", p]):
            world.broker.first["frontier", p] = offset + 1
    world.kill("a")
    await world.start("b")
    await world.give("b")
    await world.until(24)
    world.check()
    assert world.outcomes() == ends(world.site)
