"""The operation `list_changes`: the change feed of the databases that hold the rows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import Source
from nephila_harvest.change_feed import FeedPage, UnknownChange, feed

from nephila_control import api, system_types

NO_ROWS = (
    "changes are read from the database of the rows, and this API has none: set api.store "
    "(for --bootstrap: NEPHILA_STORAGE__STORE), or read the topic `changes`"
)


class TableChanges(api.Control):
    """Reads the change feed of the rows for the control APIs and, without a running program, for `nephila changes`."""

    def __init__(self, source: Source | None, jobs: Collection[str] | None = None) -> None:
        """`jobs` limits the feed to these jobs; None is no limit."""
        self._source = source
        self._jobs = jobs

    async def list_changes(self, request: system_types.ListChanges) -> system_types.ChangeList:
        batch = await asyncio.to_thread(self._read, request)
        rows = [system_types.Change(seq=row.seq, **row.change._asdict()) for row in batch.rows]
        return system_types.ChangeList(changes=rows, next=batch.next)

    def _read(self, request: system_types.ListChanges) -> FeedPage:
        if self._source is None:
            raise UserError(NO_ROWS)
        try:
            return feed(
                self._source,
                since=request.since,
                jobs=self._jobs if self._jobs is not None or not request.job else [request.job],
                change=request.change,
                limit=request.limit,
                newest=request.newest,
            )
        except UnknownChange as error:
            raise api.NotFound(str(error)) from None
