"""Ended URLs that a group fetches once more: the parts that the main process sends (`refetch.py`)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nephila.programs.groups.refetch import Again, Part
from nephila.scheduler.engine.refetch import Refetch
from nephila.scheduler.partition.owner import PartitionOwner


class Requeue:
    """Queues the URLs of parts."""

    def __init__(self, owners: Mapping[int, PartitionOwner]) -> None:
        self._owners = owners
        self._refetches: dict[tuple[str, int], Refetch] = {}
        """By job and partition: each reads the queue of a host once."""

    def part(self, data: bytes) -> bytes:
        """Queue the URLs of a part; the answer is how many."""
        part = msgspec.msgpack.decode(data, type=Part)
        for partition in {url.partition for url in part.urls}:
            self._owners[partition].begin_turn()
            self._owners[partition].wake()
        return msgspec.msgpack.encode(sum(self._queue(part.job, url) for url in part.urls))

    def _queue(self, uid: str, url: Again) -> bool:
        refetch = self._refetches.get((uid, url.partition))
        if refetch is None:
            owner = self._owners[url.partition]
            job = owner.frontier.jobs.get(uid)
            if job is None:
                return False
            refetch = self._refetches[uid, url.partition] = Refetch(owner.dispatcher, job)
        if url.row is not None:
            return refetch.ended(url.row, due=url.due, conditional=url.conditional)
        return refetch.link(url.url, url.url_key, url.depth)

    def end(self) -> None:
        """No part follows."""
        self._refetches.clear()
