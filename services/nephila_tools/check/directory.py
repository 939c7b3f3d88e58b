"""`nephila check` of an output directory: all pages of nephila.db are checked, lost rows are found by keys and, by
option, queued again.

The directory is locked meanwhile: frontier and rows are of one time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from nephila.kernel.messages import ForgottenUrl, UrlState
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.engine import forget_urls
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.ledgers.schema import DATABASE, check_whole, recount
from nephila_control.recorded_frontier import recorded_frontier
from nephila_control.stopped_frontier import held_scheduler

from nephila_tools.check import lost_urls
from nephila_tools.check.result import JobCheck

Lost = Mapping[str, Mapping[bytes, UrlState]]
"""Uid → key → state of each lost URL."""


def check(directory: OutputDirectory, *, repair: bool) -> list[JobCheck]:
    """Each job of the directory. Raises `UserError` while a program runs there, or when it is damaged."""
    run = directory.read()
    if run is None or not directory.has_log:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    if holder := directory.holder():
        raise UserError(f"{directory.path} is in use by process {holder}; stop it first: what it writes is not lost")
    with directory.locked():
        dispatcher, _ = recorded_frontier(directory, run, time.monotonic(), time.time())
        lost: dict[str, dict[bytes, UrlState]] = {}
        checks: dict[str, JobCheck] = {}
        source = directory.rows(run)
        if isinstance(source, Path):
            check_whole(source)
        with open_for_reading(source) as rows:
            for uid, job in dispatcher.frontier.jobs.items():
                counted = lost_urls.Counted(lost_urls.ended_keys(dispatcher, job))
                keys = list(lost_urls.missing(iter(counted), lost_urls.row_keys(rows, uid)))
                log = CommitLog(directory.frontier, read_only=True).recover() if keys else ()
                lost[uid] = states = lost_urls.states(job, keys, log, rows)
                lost_urls.complete_outcomes(job, rows, states)
                urls = [state.url for state in states.values() if state.url]
                checks[uid] = JobCheck(job=uid, ended=counted.number, lost=len(keys), urls=urls)
        if repair and any(lost.values()):
            if isinstance(source, Path):
                recount(source / DATABASE)
            asyncio.run(_repair(directory, lost, checks))
    return list(checks.values())


async def _repair(directory: OutputDirectory, lost: Lost, checks: Mapping[str, JobCheck]) -> None:
    """Queue lost URLs again; forget those without a text and those that the scope refuses now. In one commit."""
    async with held_scheduler(directory) as scheduler:
        for uid, states in lost.items():
            refetch = scheduler.refetch(uid)
            if refetch is None:
                continue
            for key, state in states.items():
                if state.url and refetch.ended(state, conditional=False):
                    checks[uid].repaired += 1
                    continue
                frontier = scheduler.frontier
                fetch_no = refetch.job.fetch_numbers.last + 1
                ended = ForgottenUrl(uid, key, state.outcome, fetch_no)
                forget_urls.apply(frontier, ended)
                frontier.pending.of(frontier.pending.partition(key)).forgotten.append(ended)
                checks[uid].forgotten += 1
        scheduler.refetched()
        await scheduler.durable()
