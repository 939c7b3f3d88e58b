"""Ended URLs that a run fetches once more, over groups: each row goes to the group of its partition.

The main process reads the rows and sends them in parts (`GroupedRefetch`); a group queues them as one scheduler would
(`worker/requeue.py`). A part that is sent twice queues nothing twice.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from nephila.kernel.layout import Layout
from nephila.kernel.messages import UrlState


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
