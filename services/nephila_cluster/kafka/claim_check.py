"""Claim check: a message that is too large for a record is stored as an object, and the record holds the object's
name.

The object is durable before the record is sent. Its name contains the day from which it may be deleted: when retention
has deleted every record that can name it, plus two days of reserve. Any member can therefore delete expired objects at
any time, without a list of references. Names are content hashes per day: the same message on the same day is one
object.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from typing import Protocol

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError, TemporaryError
from nephila.kernel.runtime.waits import sleep
from nephila_stores.remote.blobs import Blobs, check_reachable, open_blobs

log = logging.getLogger(__name__)

DAY_S = 86_400.0
SPARE_S = 2 * DAY_S
"""A record outlives the retention of its topic by the rest of its segment, one day at most (admin/topics.py)."""
SWEEP_S = 6 * 3600.0
FIRST_SWEEP_S = 600.0
"""Spreads the first sweeps of the members; short-lived members sweep too."""
_ROOT = "claims"


class ClaimStore(Protocol):
    """A store of objects by name; called on a thread."""

    def put(self, data: bytes, until: float) -> str:
        """Store data durably, at least until an instant in UTC seconds; returns its name. Raises `TemporaryError`."""

    def get(self, name: str) -> bytes:
        """The stored data. Raises `PermanentError` when it is gone, `TemporaryError` when it cannot be read."""

    def reach(self) -> None:
        """Return when the store answers. Raises `TemporaryError`."""

    def expire(self, now: float) -> int:
        """Delete objects that have expired at a time (seconds since 1970 UTC); returns how many. Raises
        `TemporaryError`."""


class BlobClaimStore:
    """A claim store in a blob store."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def put(self, data: bytes, until: float) -> str:
        day = _day(until + SPARE_S)
        name = f"{_ROOT}/{day}/{hashlib.sha256(data).hexdigest()}"
        self._blobs.put(name, data)
        return name

    def get(self, name: str) -> bytes:
        """A record with any other name than that of a claim reads nothing."""
        if not name.startswith(f"{_ROOT}/") or ".." in name:
            raise PermanentError(f"no name of a claim: {name[:80]!r}")
        return self._blobs.get(name)

    def reach(self) -> None:
        check_reachable(self._blobs)

    def expire(self, now: float) -> int:
        """O(objects)."""
        today = _day(now)
        old = [name for name in self._blobs.names(_ROOT) if name.split("/")[1] < today]
        self._blobs.delete(old)
        return len(old)


def open_claim_store(location: str) -> BlobClaimStore | None:
    """The store of a directory or URL; None when none is configured. Raises `UsageError`."""
    return BlobClaimStore(open_blobs(location)) if location else None


async def sweep(claim_store: ClaimStore, clock: Clock) -> None:
    """Delete expired objects periodically."""
    wait_s = random.uniform(0, FIRST_SWEEP_S)
    while True:
        await sleep(clock, wait_s)
        wait_s = SWEEP_S
        try:
            removed = await asyncio.to_thread(claim_store.expire, clock.now())
        except (TemporaryError, PermanentError) as error:
            log.warning("expired objects were not deleted: %s; next try in %g h", error, SWEEP_S / 3600)
        else:
            if removed:
                log.info("%d expired objects were deleted from the blob store", removed)


def _day(instant: float) -> str:
    return time.strftime("%Y%m%d", time.gmtime(instant))
