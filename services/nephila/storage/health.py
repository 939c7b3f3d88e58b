"""The state of the store as people and monitors see it: since when, why, what to do, and what waits for it.

The file or server of the rows is where a crawl waits without an error of its own: the receipts stop, and everything
before it stands still. So its state is a message, which members publish and which the control API shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nephila.kernel.messages import StoreState, StoreStatus
from nephila.kernel.runtime.clock import Clock
from nephila.storage.batch_size import SLOW_S, BatchSize
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.schema import DATABASE
from nephila.storage.lost_store import LostStore
from nephila.storage.source import display_name

REMEDIES: Mapping[StoreState, str] = {
    StoreState.UNSPECIFIED: "",
    StoreState.WORKING: "",
    StoreState.SLOW: "look for locks and slow disks of the database; flushes shrink until it takes them in time",
    StoreState.AWAY: "start it, or repair the way to it; rows wait, and none is lost",
    StoreState.FAILED: "repair the cause and start storage again; no row with a receipt is lost",
}
"""What a person does; empty where nothing is wrong."""
LOGIN_REMEDY: Final = (
    "put the present password into the Secret or the file of storage.store (NEPHILA_STORAGE__STORE_FILE, "
    "PGPASSWORD_FILE): it is read again at each attempt; rows wait, and none is lost"
)
"""The same while the server refuses the login."""


def remedy(status: StoreStatus) -> str:
    """What a person does about a store."""
    return LOGIN_REMEDY if status.login_refused else REMEDIES[status.state]


class StoreHealth:
    """Follows the flushes of one storage service."""

    def __init__(self, config: StorageConfig, clock: Clock, lost: LostStore, size: BatchSize) -> None:
        self._place = display_name(config.store) if config.store else str(config.directory / DATABASE)
        self._clock = clock
        self._lost = lost
        self._size = size
        self._began = 0.0
        """When the present attempt of a flush began (UTC); 0.0: none runs."""
        self._flushed_at = 0.0
        self._opened = False
        self._failed = ""
        self._failed_at = 0.0

    def opened(self) -> None:
        """The store can be written to."""
        self._opened = True

    def begins(self) -> None:
        """An attempt of a flush begins."""
        self._began = self._clock.now()

    def ends(self, *, durable: bool) -> None:
        """The attempt has ended; `durable`: its rows are in the store."""
        self._began = 0.0
        if durable:
            self._flushed_at = self._clock.now()

    def fails(self, error: BaseException) -> None:
        """No row is written any more."""
        self._failed, self._failed_at = str(error) or type(error).__name__, self._clock.now()

    @property
    def away_s(self) -> float:
        """Seconds since the store is away; 0.0 while it is not."""
        return max(self._clock.now() - self._lost.since, 0.0) if self._lost.trouble else 0.0

    @property
    def login_refused(self) -> bool:
        """Whether the server refuses the login at present."""
        return bool(self._lost.trouble) and self._lost.refused

    def status(self, waiting: int) -> StoreStatus:
        """The state now; `waiting`: rows received and not durable."""
        state, since, cause = StoreState.WORKING, 0.0, ""
        if self._failed:
            state, since, cause = StoreState.FAILED, self._failed_at, self._failed
        elif self._lost.trouble:
            state, since, cause = StoreState.AWAY, self._lost.since, self._lost.trouble
        elif not self._opened:
            state = StoreState.UNSPECIFIED
        elif self._began and self._clock.now() - self._began > SLOW_S:
            state, since = StoreState.SLOW, self._began
            cause = f"a flush has not ended for more than {SLOW_S:g} s"
        return StoreStatus(
            place=self._place,
            state=state,
            since=since,
            cause=cause,
            rows_waiting=waiting,
            flushed_at=self._flushed_at,
            batch_rows=self._size.limit,
            login_refused=state is StoreState.AWAY and self.login_refused,
        )
