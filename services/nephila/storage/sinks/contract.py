"""The contract of a sink: its methods, and the order of their calls.

    open → (stage → ledger.commit → after_commit | rollback)* → close

`stage` writes a batch and makes it as durable as the sink can. The ledger then commits its rows together with the
lengths of all append-only files. `after_commit` follows a commit, `rollback` a failure. On open a sink restores
exactly what the ledger has committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nephila.storage.rows import RowBatch


class Sink(Protocol):
    """An output of rows. Only the writer's thread uses it."""

    raw: bool
    """Whether it stores raw pages, so that the service has to collect them."""

    def open(self) -> None:
        """Restore what the ledger has committed. Raises `UserError`, `OSError`."""

    def stage(self, batch: RowBatch) -> None:
        """Write the batch. Raises `OSError` or `sqlite3.Error`; the caller then calls `rollback`."""

    @property
    def lengths(self) -> Mapping[str, int]:
        """Name → bytes of each of its append-only files, staged data included; empty without such files."""

    def after_commit(self) -> None:
        """Called after the ledger has committed the staged batch."""

    def rollback(self) -> None:
        """Discard what was staged."""

    def restore(self) -> str:
        """Restore a file that was deleted or replaced while it is open; nothing is staged. Returns a message for
        people, empty if nothing happened. Called for each batch."""

    def close(self) -> None:
        """Finish the files; nothing is staged. Raises as `stage`."""
