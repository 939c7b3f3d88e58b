"""The backend contract: what a place for rows promises, and the order in which it is asked.

    open → (stage → ledger.commit → after_commit | rollback)* → close

`stage` writes a batch and makes it as durable as the backend can without the ledger; the ledger then commits its own
rows together with the lengths of all append-only files; `after_commit` says that this has happened, `rollback` that it
has not. On open a backend goes back to exactly what the ledger has committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nephila.storage.rows import Batch


class Backend(Protocol):
    """A place for rows. Used by the writer's thread only."""

    raw: bool
    """True when it keeps raw pages, so that the service has to collect them."""

    def open(self) -> None:
        """Recover to what the ledger has committed. Raises `UserError`, `OSError`."""

    def stage(self, batch: Batch) -> None:
        """Write the batch. Raises `OSError` or `sqlite3.Error`; the caller then calls `rollback`."""

    @property
    def lengths(self) -> Mapping[str, int]:
        """Bytes of each of its append-only files with everything staged; empty when it has none."""

    def after_commit(self) -> None:
        """The ledger has committed what was staged."""

    def rollback(self) -> None:
        """Forget what was staged."""

    def restore(self) -> str:
        """Write a file that was deleted or replaced while it is open back to its place; nothing is staged. Returns what
        happened in words, empty when nothing did. Called for every batch."""

    def close(self) -> None:
        """Finish files; nothing is staged. Raises like `stage`."""
