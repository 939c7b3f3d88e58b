"""What a partition is given: its log, its ownership, its snapshots and a frontier that knows what a restart does.

The scheduler of one program gives files (`durability/file_log.py`), the scheduler of a cluster gives topics and a blob
store (`cluster/topic_parts.py`). The partition does not know which. tests/scheduler/partition runs one suite over both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import FrontierCommit, FrontierSnapshot
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters


class Log(Protocol):
    """The commits of one partition, in order. A commit that was appended is replayed at every later start."""

    @property
    def size(self) -> int:
        """Bytes that the next start would replay: those since the last snapshot."""

    @property
    def end(self) -> int:
        """A position at or behind the last commit that is known to be in the log."""

    def replayed(self, commit: FrontierCommit) -> None:
        """A start has replayed this commit."""

    def begin(self, epoch: int) -> None:
        """Append from now on, for the ownership with this epoch."""

    def fit(self, commits: list[FrontierCommit]) -> list[FrontierCommit]:
        """The same changes as commits that `append` takes, with consecutive sequence numbers."""

    def append(self, commits: list[FrontierCommit]) -> Receipt | None:
        """Append commits that `fit` has returned; None when they are in the log already. Raises `UserError`."""


class Standing(Enum):
    """Whether what was committed may be published."""

    OWNED = "owned"
    UNANSWERED = "unanswered"
    """The group does not answer: ask again soon."""
    CLAIMED = "claimed"
    """Another member has written to the log. The partition gets a turn when this is decided."""


class Ownership(Protocol):
    """Whether the partition still belongs to this program."""

    @property
    def standing(self) -> Standing:
        """The owner reads it before every publication."""

    def begin(self, epoch: int) -> None:
        """The partition was claimed with this epoch."""

    def on_written(self, offset: int) -> None:
        """A record of this owner is in the log at this offset."""

    def close(self) -> None:
        """The partition is not owned any more."""


class SoleOwner:
    """The `Ownership` of a partition that no other program can claim."""

    standing = Standing.OWNED

    def begin(self, epoch: int) -> None:
        pass

    def on_written(self, offset: int) -> None:
        pass

    def close(self) -> None:
        pass


class Snapshots(Protocol):
    """The states that the log continues from."""

    @property
    def limit_bytes(self) -> int:
        """Growth of the log that calls for a snapshot."""

    @property
    def ready(self) -> bool:
        """No snapshot is being stored."""

    @property
    def overdue(self) -> bool:
        """A commit is older than a snapshot may be."""

    @property
    def age_s(self) -> float:
        """Seconds since the last complete snapshot; 0 while nothing is missing in it."""

    def write(self, states: Iterable[FrontierSnapshot], sequence: int) -> None:
        """Write the state after a commit that was appended. Raises `UserError`."""

    def commit(self, sequence: int, offset: int) -> None:
        """That commit is in the log, before this offset: a start may use the state from now on."""

    def drop(self) -> None:
        """The partition is lost: work in progress must not become visible."""


class OwnerEvents(Protocol):
    """The events that log, ownership, snapshots and frontier report to their partition."""

    def wake(self) -> None:
        """The partition is to take a turn."""

    def fail(self, error: BaseException) -> None:
        """The program cannot continue."""

    def note_anchors(self, uid: str, anchors: Sequence[str]) -> None:
        """The scope of a job has got further anchors here."""


class Parts(NamedTuple):
    frontier: Frontier
    log: Log
    ownership: Ownership
    snapshots: Snapshots


Build = Callable[[OwnerEvents, FrontierCounters], Parts]
"""Builds the parts of a partition; the counters are those of the program."""
