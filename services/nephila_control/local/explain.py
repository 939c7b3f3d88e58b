"""An explanation of a URL in one program joins the state of its frontier with its rows in the database."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from nephila.kernel.runtime.clock import Clock
from nephila.scheduler import job_facts
from nephila.scheduler.standalone import Scheduler
from nephila.storage.source import Source

from nephila_control import api, job_view
from nephila_control.explain.explain import Explanation
from nephila_control.explain.facts import Home


class LocalExplain:
    """Reads the rows in threads, and the frontier between them."""

    def __init__(self, scheduler: Scheduler, clock: Clock, rows: Source, home: Home) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._source = rows
        self._home = home

    async def explain(self, href: str, name: str) -> Explanation:
        rows, disk = self._source, asyncio.get_running_loop().run_in_executor
        uids = await disk(None, job_view.named, rows, job_facts.specs(self._scheduler), name, href)
        explanation = await self._best(uids, href)
        queued = explanation.queued
        if explanation.row is None and (explanation.kind == "seen" or (queued is not None and not queued.position)):
            # It may have ended, and got its row, between the look into the database and that into the frontier.
            explanation = await self._best([explanation.job], href)
        fetches = await disk(None, job_view.fetches, rows, explanation.job, href)
        explanation = self._explained(explanation.job, href, explanation.row, fetches)
        return await disk(None, job_view.left_out, rows, explanation)

    async def _best(self, uids: list[str], href: str) -> Explanation:
        uids = job_view.candidates(self._scheduler.frontier.jobs, uids, href)
        rows = await asyncio.get_running_loop().run_in_executor(None, self._rows, uids, href)
        return job_view.best([self._explained(uid, href, rows[uid]) for uid in uids])

    def _explained(
        self, uid: str, href: str, row: Mapping[str, Any] | None, fetches: Sequence[Mapping[str, Any]] = ()
    ) -> Explanation:
        if job_facts.spec(self._scheduler, uid) is None:
            raise api.NotFound(f"job {uid!r} was deleted just now")
        now = self._clock.monotonic()
        return job_view.explain(self._scheduler, uid, href, now, self._home, row, fetches)

    def _rows(self, uids: list[str], href: str) -> dict[str, dict[str, Any] | None]:
        return {uid: job_view.row(self._source, uid, href) for uid in uids}
