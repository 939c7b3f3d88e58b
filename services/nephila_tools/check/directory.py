"""`nephila check` of an output directory: all pages of nephila.db are checked, lost rows are found by keys and, by
option, queued again.

The directory is locked meanwhile: frontier and rows are of one time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import chain
from pathlib import Path

from nephila.kernel.messages import ForgottenUrl, UrlState
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory
from nephila.scheduler.engine import forget_urls
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.jobs.job import Job
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.ledgers.schema import DATABASE, check_whole, recount
from nephila_control.recorded_frontier import RecordedPartition, recorded_frontier
from nephila_control.stopped_frontier import held_partitions

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
        partitions = recorded_frontier(directory, run, time.monotonic(), time.time())
        lost: dict[str, dict[bytes, UrlState]] = {}
        checks: dict[str, JobCheck] = {}
        source = directory.rows(run)
        if isinstance(source, Path):
            check_whole(source)
        with open_for_reading(source) as rows:
            for uid, parts in _jobs(partitions).items():
                counted = lost_urls.Counted(
                    merge(*(lost_urls.ended_keys(dispatcher, job) for dispatcher, job in parts))
                )
                keys = list(lost_urls.missing(iter(counted), lost_urls.row_keys(rows, uid)))
                jobs = [job for _, job in parts]
                logs = chain.from_iterable(partition.log.recover() for partition in partitions) if keys else ()
                lost[uid] = states = lost_urls.states(jobs, keys, logs, rows)
                lost_urls.complete_outcomes(jobs, rows, states)
                urls = [state.url for state in states.values() if state.url]
                checks[uid] = JobCheck(job=uid, ended=counted.number, lost=len(keys), urls=urls)
        if repair and any(lost.values()):
            if isinstance(source, Path):
                recount(source / DATABASE)
            asyncio.run(_repair(directory, lost, checks))
    return list(checks.values())


def _jobs(partitions: Sequence[RecordedPartition]) -> dict[str, list[tuple[Dispatcher, Job]]]:
    """Uid → each job in all partitions that have it."""
    jobs: dict[str, list[tuple[Dispatcher, Job]]] = {}
    for partition in partitions:
        for uid, job in partition.dispatcher.frontier.jobs.items():
            jobs.setdefault(uid, []).append((partition.dispatcher, job))
    return jobs


async def _repair(directory: OutputDirectory, lost: Lost, checks: Mapping[str, JobCheck]) -> None:
    """Queue lost URLs again; forget those without a text and those that the scope refuses now. In one commit of each
    partition."""
    async with held_partitions(directory) as partitions:
        for uid, states in lost.items():
            for key, state in states.items():
                refetch = partitions.refetch(uid, key)
                if refetch is None:
                    continue
                if state.url and refetch.ended(state, conditional=False):
                    checks[uid].repaired += 1
                    continue
                frontier = refetch.frontier
                fetch_no = refetch.job.fetch_numbers.last + 1
                ended = ForgottenUrl(uid, key, state.outcome, fetch_no)
                forget_urls.apply(frontier, ended)
                frontier.pending.of(frontier.pending.partition(key)).forgotten.append(ended)
                checks[uid].forgotten += 1
        await partitions.commit()
