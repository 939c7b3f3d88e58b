"""Messages that are too large for a record: the claim check of the Kafka bus, over the blob store.

The object is durable before the record that names it is sent. Its name says the day from which it may be removed: when
every log record that can name it has been deleted by retention, with two days to spare for what a broker keeps longer.
So any member may sweep at any time, without a list of what is in use. Names are hashes of the content below that day:
the same message again on one day is the same object.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from typing import Protocol

from nephila.kernel.blobs import Blobs, check_reachable, open_blobs
from nephila.kernel.runtime.errors import PermanentError, TemporaryError

log = logging.getLogger(__name__)

DAY_S = 86_400.0
SPARE_S = 2 * DAY_S
"""A record outlives its topic's retention by the rest of its segment, a day at most (admin.py)."""
SWEEP_S = 6 * 3600.0
FIRST_SWEEP_S = 600.0
"""Not all members at once, and not only those that live for six hours."""
_ROOT = "claims"


class ClaimStore(Protocol):
    """A store of objects by name; called on a thread of its own."""

    def put(self, data: bytes, keep_s: float) -> str:
        """Keep it durably, for so many seconds at least; returns its name. Raises `TemporaryError`."""

    def get(self, name: str) -> bytes:
        """What `put` was given. Raises `PermanentError` when it is gone, `TemporaryError` when it cannot be read."""

    def reach(self) -> None:
        """Return when the store answers. Raises `TemporaryError`."""

    def expire(self, now: float) -> int:
        """Remove what need not be kept any more at an instant, in seconds since 1970 UTC; returns how many. Raises
        `TemporaryError`."""


class BlobClaimStore:
    """See the module."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def put(self, data: bytes, keep_s: float) -> str:
        """See `ClaimStore.put`."""
        until = _day(time.time() + keep_s + SPARE_S)
        name = f"{_ROOT}/{until}/{hashlib.sha256(data).hexdigest()}"
        self._blobs.put(name, data)
        return name

    def get(self, name: str) -> bytes:
        """See `ClaimStore.get`. Nothing but claim_store is read, whatever a record says."""
        if not name.startswith(f"{_ROOT}/") or ".." in name:
            raise PermanentError(f"no name of a claim: {name[:80]!r}")
        return self._blobs.get(name)

    def reach(self) -> None:
        """See `ClaimStore.reach`."""
        check_reachable(self._blobs)

    def expire(self, now: float) -> int:
        """See `ClaimStore.expire`. O(objects)."""
        today = _day(now)
        old = [name for name in self._blobs.names(_ROOT) if name.split("/")[1] < today]
        self._blobs.delete(old)
        return len(old)


def open_claim_store(place: str) -> BlobClaimStore | None:
    """The store at a directory or URL; None when none is named. Raises `UsageError`."""
    return BlobClaimStore(open_blobs(place)) if place else None


async def sweep(claim_store: ClaimStore) -> None:
    """Remove what is old, now and then, as long as the program lives."""
    wait_s = random.uniform(0, FIRST_SWEEP_S)
    while True:
        await asyncio.sleep(wait_s)
        wait_s = SWEEP_S
        try:
            removed = await asyncio.to_thread(claim_store.expire, time.time())
        except (TemporaryError, PermanentError) as error:
            log.warning("old objects were not removed: %s; next try in %g h", error, SWEEP_S / 3600)
        else:
            if removed:
                log.info("%d old objects were removed from the blob store", removed)


def _day(instant: float) -> str:
    return time.strftime("%Y%m%d", time.gmtime(instant))
