"""The log of a partition: which commits count, and commits that are too large for a record."""

from __future__ import annotations

import typing

import pytest
from nephila.kernel.messages import (
    EndedUrl,
    FrontierClaim,
    FrontierCommit,
    FrontierRecord,
    LeasedUrl,
    RobotsTxt,
)
from nephila.kernel.runtime.errors import UserError
from nephila_cluster.scheduler.changelog import LogFilter, commit_bytes, split_commit

from tests.queue_rows import queue_row


def claim(member: str, at: float = 0.0) -> FrontierRecord:
    """A claim."""
    return FrontierRecord(FrontierClaim(member, 1.0, at))


def commit(epoch: int, sequence: int) -> FrontierRecord:
    """A commit without content."""
    return FrontierRecord(None, FrontierCommit(3, epoch, sequence))


def counted(reading: LogFilter, *records: tuple[int, FrontierRecord]) -> list[int]:
    """Numbers of the commits that count."""
    found = [reading.take(offset, record) for offset, record in records]
    return [one.sequence for one in found if one is not None]


def test_commits_of_lower_epochs_are_ignored():
    """What the owner before writes behind a claim is nobody's."""
    reading = LogFilter(3)
    records = [
        (0, claim("a")),
        (1, commit(0, 1)),
        (2, claim("b")),
        (3, commit(0, 2)),
        (4, commit(2, 2)),
        (5, commit(0, 3)),
        (6, commit(2, 3)),
    ]
    assert counted(reading, *records) == [1, 2, 3]
    assert reading.ignored == 2


def test_reading_begins_behind_a_snapshot():
    """With its epoch and its number; what it has already is passed over."""
    reading = LogFilter(3, epoch=7, sequence=4)
    assert counted(reading, (20, commit(7, 4)), (20, commit(7, 5)), (21, commit(5, 6)), (22, commit(7, 6))) == [5, 6]


def test_records_that_were_sent_twice_count_once():
    """A producer that had no answer sends again: claims and commits."""
    reading = LogFilter(3)
    records = [(0, claim("a")), (1, claim("a")), (2, commit(1, 1)), (3, commit(1, 1)), (4, commit(1, 2))]
    assert counted(reading, *records) == [1, 2]
    assert counted(LogFilter(3), (0, claim("a")), (1, claim("a")), (2, commit(0, 1))) == [1]


@pytest.mark.parametrize("records", [[(5, commit(4, 9))], [(5, claim("b")), (6, commit(5, 9))]])
def test_a_hole_is_refused(records):
    """A number that is missing is a URL that is lost."""
    with pytest.raises(UserError, match=r"frontier/3 at \d: commit 9 follows 7: the log has a hole"):
        counted(LogFilter(3, epoch=4, sequence=7), *records)


def test_another_log_of_the_same_name_is_refused():
    """Topic deleted and made again: its numbers begin anew, and the snapshot is of the old one."""
    with pytest.raises(UserError, match="its snapshot is of another system"):
        counted(LogFilter(3, epoch=4, sequence=7), (9, claim("b")), (10, commit(9, 1)))


def test_a_large_commit_is_several():
    """Consecutive numbers, the order in which it is replayed, none much above the limit."""
    whole = FrontierCommit(3, 8, 21)
    whole.queued = [queue_row("j", bytes([i]) * 16, f"http://a.test/{i}" + "x" * 500, "a.test") for i in range(40)]
    whole.ended = [EndedUrl(bytes([i]) * 16, "j", "a.test", 1) for i in range(5)]
    whole.robots = [RobotsTxt("http://a.test", "a.test", 200, b"x" * 9000)]
    whole.leased = [LeasedUrl(bytes(16), "j", "a.test", 1)]
    parts = list(split_commit(whole, limit=4000))
    assert [part.sequence for part in parts] == list(range(21, 21 + len(parts)))
    assert {(part.partition, part.epoch) for part in parts} == {(3, 8)}
    assert all(commit_bytes(part) <= 4000 + 9200 for part in parts)
    assert len(parts) > 5
    for name in ("queued", "ended", "robots", "leased"):
        assert [item for part in parts for item in getattr(part, name)] == getattr(whole, name)
    kinds = [name for part in parts for name in ("ended", "queued", "robots", "leased") for _ in getattr(part, name)]
    assert kinds == ["ended"] * 5 + ["queued"] * 40 + ["robots", "leased"]


def test_a_small_commit_is_itself():
    """One piece, equal to the whole."""
    whole = FrontierCommit(3, 8, 21, [queue_row("j", bytes(16), "http://a.test/", "a.test")])
    assert list(split_commit(whole)) == [whole]


def test_a_large_commit_loses_no_kind_of_change():
    """Every list of a commit, also one that is added later: the pieces together are the whole."""
    hints = typing.get_type_hints(FrontierCommit)
    kinds = {name: typing.get_args(hint)[0] for name, hint in hints.items() if typing.get_origin(hint) is list}
    whole = FrontierCommit(3, 8, 21, **{name: [kind() for _ in range(3)] for name, kind in kinds.items()})
    parts = list(split_commit(whole, limit=150))
    assert {name: [item for part in parts for item in getattr(part, name)] for name in kinds} == {
        name: getattr(whole, name) for name in kinds
    }
    assert max(sum(len(getattr(part, name)) for name in kinds) for part in parts) == 2
    assert commit_bytes(whole) >= 100 * 3 * len(kinds)
