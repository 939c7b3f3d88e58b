"""The partitions of a divided frontier have together what the one log had, each URL once."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from nephila.kernel.layout import layout_of
from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.recovery import open_frontier, restore
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import WHOLE, PartitionSlice
from nephila.scheduler.group import divide as division
from nephila.scheduler.group.divide import divide
from nephila.scheduler.group.partition_logs import PARTITIONS, directory_of, has_parts

from tests.scheduler.durability.observed_state import observed
from tests.scheduler.durability.test_recovered_equals_running import KEYS, running

NOW = 5000.0


def restored(config: SchedulerConfig, directory: Path, part: PartitionSlice, utc_now: float) -> Dispatcher:
    partitions = config.partitions if part is WHOLE else 1
    own = msgspec.structs.replace(config, directory=str(directory), partitions=partitions)
    dispatcher = Dispatcher(open_frontier(own, read_only=True, part=part))
    restore(dispatcher, CommitLog(directory, read_only=True).recover(), NOW, utc_now)
    return dispatcher


async def a_frontier(tmp_path: Path, seed: int):
    """The directory of a crawl that was killed after some steps, and its settings."""
    rng = random.Random(seed)
    world = await running(tmp_path / "o", segment_bytes=rng.choice([1 << 26, 3000]))
    for _ in range(rng.randrange(20, 160)):
        if world.clock.next_due is None:
            break
        world.clock.advance(max(0.0, world.clock.next_due - world.clock.monotonic()))
    return Path(world.scheduler.config.directory), world.scheduler.config, world.clock.now()


def queued_of(state) -> Counter[tuple[str, str]]:
    urls = Counter()
    for uid, job in state["jobs"].items():
        urls.update((uid, entry[0]) for entries in job["queued"].values() for entry in entries)
    urls.update(state["delayed"].keys())
    return urls


@pytest.mark.parametrize("seed", range(6))
async def test_the_parts_have_together_what_the_whole_has(tmp_path, seed):
    frontier, config, utc_now = await a_frontier(tmp_path, seed)
    before = observed(restored(config, frontier, WHOLE, utc_now), KEYS)
    divide(frontier, config, NOW, utc_now)
    layout = layout_of(PARTITIONS)
    parts = [
        observed(restored(config, directory_of(frontier, number), PartitionSlice(number, PARTITIONS), utc_now), KEYS)
        for number in range(PARTITIONS)
    ]
    assert sum((queued_of(part) for part in parts), Counter()) == queued_of(before)
    for number, part in enumerate(parts):
        assert all(layout.of(parse_url(url).fingerprint) == number for _, url in queued_of(part))
    for uid, job in before["jobs"].items():
        own = [part["jobs"][uid] for part in parts]
        assert {key for job in own for key in job["seen"]} == job["seen"]
        assert sum(len(job["seen"]) for job in own) == len(job["seen"])
        assert sum((Counter(job["ended"]) for job in own), Counter()) == Counter(job["ended"])
        assert {key: state for job in own for key, state in job["watched"].items()} == job["watched"]
        assert {key for job in own for key in job["held"]} == set(job["held"])
        assert {host: quarantine for job in own for host, quarantine in job["quarantines"].items()} == job[
            "quarantines"
        ]
        assert all(job_["anchors"] == job["anchors"] and job_["spec"] == job["spec"] for job_ in own)
        assert sum(job["links lost"] for job in own) == job["links lost"]
        assert {key for job in own for key in job["priority"]} == job["priority"]
    assert {name: host for part in parts for name, host in part["hosts"].items()} == before["hosts"]
    assert sum(len(part["hosts"]) for part in parts) == len(before["hosts"])
    uses = Counter()
    for part in parts:
        uses.update({account: pages for account, (_, pages, _) in part["quotas"].items()})
    assert +uses == +Counter({account: pages for account, (_, pages, _) in before["quotas"].items()})


@pytest.mark.parametrize("moved", [-1, 0, 7, 15, 16])
async def test_a_division_that_was_killed_is_begun_again_or_completed(tmp_path, monkeypatch, moved):
    """Killed in the middle of the parts, after some are in their place, and before the one log is removed."""
    frontier, config, utc_now = await a_frontier(tmp_path, 3)
    before = observed(restored(config, frontier, WHOLE, utc_now), KEYS)

    class Killed(BaseException):
        pass

    renamed: list[Path] = []
    rename, write_part = Path.rename, division._write_part

    def renames(self, target):
        if self.parent.name == "parts.tmp":
            if len(renamed) == moved:
                raise Killed
            renamed.append(target)
        return rename(self, target)

    def writes(frontier, parts, part, *args):
        if moved < 0 and part.number == 5:
            raise Killed
        write_part(frontier, parts, part, *args)

    def removes(frontier):
        raise Killed

    monkeypatch.setattr(Path, "rename", renames)
    monkeypatch.setattr(division, "_write_part", writes)
    monkeypatch.setattr(division, "remove_one_log", removes)
    with pytest.raises(Killed):
        divide(frontier, config, NOW, utc_now)
    monkeypatch.undo()
    assert has_parts(frontier) is (moved == PARTITIONS)
    if moved < PARTITIONS:
        assert observed(restored(config, frontier, WHOLE, utc_now), KEYS) == before
    divide(frontier, config, NOW, utc_now)
    assert sorted(path.name for path in frontier.iterdir()) == [f"{number:02}" for number in range(PARTITIONS)]
    parts = [restored(config, directory_of(frontier, n), PartitionSlice(n, PARTITIONS), utc_now) for n in range(16)]
    assert sum((queued_of(observed(part, KEYS)) for part in parts), Counter()) == queued_of(before)


async def test_a_damaged_log_is_not_divided(tmp_path):
    frontier, config, _ = await a_frontier(tmp_path, 1)
    (segment, *_) = frontier.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        divide(frontier, config, NOW, time.time())
    assert segment.read_bytes() == data
