"""Ended URLs that a run fetches once more, over groups: each row goes to the group of its partition.

The main process reads the rows and sends them in parts (`GroupedRefetch`); a group queues them as one scheduler would
(`Requeue`). A part that is sent twice queues nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from nephila.kernel.layout import Layout
from nephila.kernel.messages import UrlState
from nephila.scheduler.engine.refetch import Refetch
from nephila.scheduler.partition.owner import PartitionOwner


class Again(msgspec.Struct, array_like=True):
    """One URL: a row, or a link that was refused."""

    partition: int
    row: UrlState | None = None
    due: bool = False
    conditional: bool = True
    url: str = ""
    url_key: bytes = b""
    depth: int = 0


class Part(msgspec.Struct, array_like=True):
    """Some URLs of one job."""

    job: str
    urls: list[Again]


Send = Callable[[Mapping[int, bytes]], Awaitable[list[bytes]]]
"""Sends a part to each of these groups; returns their answers. Raises `UserError`."""


class GroupedRefetch:
    """As `Refetch`, for all groups of the program."""

    def __init__(self, uid: str, layout: Layout, group_of: Callable[[int], int], send: Send) -> None:
        """`group_of`: the group of a partition."""
        self.queued = 0
        """URLs that were queued, as far as groups have answered."""
        self._uid = uid
        self._layout = layout
        self._group_of = group_of
        self._send = send
        self._waiting: dict[int, list[Again]] = {}

    def ended(self, row: UrlState, *, due: bool = False, conditional: bool = True) -> None:
        """Queue the URL of a terminal row; see `Refetch.ended`."""
        self._put(Again(self._layout.of(row.url_key), row, due, conditional))

    def link(self, url: str, key: bytes, depth: int) -> None:
        """Admit a link that the scope refused earlier; see `Refetch.link`."""
        self._put(Again(self._layout.of(key), url=url, url_key=key, depth=depth))

    def _put(self, url: Again) -> None:
        self._waiting.setdefault(self._group_of(url.partition), []).append(url)

    async def flush(self) -> None:
        """Send what waits. Raises `UserError`."""
        waiting, self._waiting = self._waiting, {}
        if waiting:
            parts = {group: msgspec.msgpack.encode(Part(self._uid, urls)) for group, urls in waiting.items()}
            self.queued += sum(msgspec.msgpack.decode(answer, type=int) for answer in await self._send(parts))


class Requeue:
    """The side of a group."""

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
