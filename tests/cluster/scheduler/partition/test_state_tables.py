"""States of the scheduler's shell are enums with tables: a transition that the table does not have raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.layout import layout_of
from nephila.kernel.runtime.clock import ManualClock
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability import file_log
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.partition import member
from nephila.scheduler.partition.commit_pipeline import SchedulerCounters
from nephila_cluster.scheduler import stored_snapshots
from nephila_cluster.scheduler.addresses import address_lock
from nephila_cluster.scheduler.snapshot_store import SnapshotStore

Table = Mapping[Any, tuple[Any, ...]]
CLOCK = ManualClock()
CONFIG = SchedulerConfig()


def new_snapshots(directory: Path) -> Any:
    store = SnapshotStore(directory, 0, layout_of(1), None)
    return stored_snapshots.StoredSnapshots(CONFIG, store, None, None, CLOCK, None)  # type: ignore[arg-type]


CASES: dict[str, tuple[Table, Callable[[Path], Any]]] = {
    "member": (member.NEXT_STATES, lambda directory: member.Member(CONFIG, CLOCK, SchedulerCounters())),
    "file": (
        file_log.NEXT_STATES,
        lambda directory: file_log.FileLog(CommitLog(directory), CLOCK, 1.0, lambda error: None),
    ),
    "snapshot": (stored_snapshots.NEXT_STATES, new_snapshots),
    "address lock": (
        address_lock.NEXT_STATES,
        lambda directory: address_lock.AddressLock("me", 1, 1, None),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_transition_that_the_table_does_not_have_raises_and_changes_nothing(tmp_path: Path, name: str) -> None:
    """Every pair of states."""
    table, new = CASES[name]
    states: type[Enum] = type(next(iter(table)))
    assert set(table) == set(states)
    for before in states:
        for after in states:
            one = new(tmp_path)
            enter = getattr(one, "enter", None) or one._enter
            one.state = before
            if after in table[before]:
                enter(after)
                assert one.state is after
            else:
                with pytest.raises(RuntimeError, match=f"{after.value} cannot follow {before.value}"):
                    enter(after)
                assert one.state is before


@pytest.mark.parametrize("name", CASES)
def test_every_state_can_be_reached(name: str) -> None:
    """No state of a table is dead; the first is where it begins."""
    table, _ = CASES[name]
    reached = {after for states in table.values() for after in states}
    assert reached | {next(iter(table))} == set(table)
