"""One run of a crawl in its directory: the plan, what came of it, and `run.json` with both.

`nephila crawl` and the Python API are built on it. The caller runs the event loop and prints.
"""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nephila.kernel.runtime.errors import UserError
from nephila.programs.crawl.plan import COPIES, MOVE, REMOVE, Plan
from nephila.programs.crawl.seeds import Refused, seeds_of
from nephila.programs.output_directory import JobRun, OutputDirectory, RunFile, cpu_seconds
from nephila.storage.faults import StoreLost
from nephila.storage.source import Source

if TYPE_CHECKING:
    from nephila.programs.crawl.program import CrawlProgram, Result
    from nephila.storage.read.reader import Summary

Print = Callable[[str], None]


class Run(msgspec.Struct, frozen=True):
    """A run that has ended: its plan, and what came of it."""

    plan: Plan
    result: "Result"
    counts: "Summary"
    """Counts of the table of pages."""
    file: RunFile
    """Content of run.json after the run."""


def execute(plan: Plan, go: "Callable[[Callable[..., CrawlProgram]], Result]", *, warn: Print, info: Print) -> Run:
    """Execute a plan in its directory: the lock, an old result out of the way, `run.json` before and after. `go` builds
    the program and runs it. Raises `UserError` and `UsageError` before anything was fetched."""
    from nephila.programs.crawl.program import CrawlProgram

    directory = OutputDirectory(plan.configs.storage.directory)
    refused: Refused = []
    seeds = seeds_of(plan, refused)
    run = plan.run

    def refetch_queued() -> None:
        nonlocal run
        run = replace(run, refetch=[], incomplete=[] if COPIES in run.refetch else run.incomplete)
        directory.write(run)

    with directory.locked():
        if plan.ignored:
            keys = ", ".join(f"spec.{key}" for key in plan.ignored)
            warn(f"ignored, since a crawl runs once: {keys}; see --refresh and nephila up")
        _clear(plan.clear, directory, info)
        directory.write(run)
        notice = partial(info, plan.notice) if plan.notice else None
        result = go(partial(CrawlProgram, plan, seeds, on_refetch_queued=refetch_queued, on_first_end=notice))
        result = replace(result, refused_seeds=[*refused, *result.refused_seeds])
        result, counts = _read_counts(plan.rows, run.uid or None, result)
        run = ended(plan, run, result, counts, time.time(), cpu_seconds())
        try:
            directory.write(run)
        except UserError as error:
            warn(str(error))
    return Run(plan, result, counts, run)


def ended(plan: Plan, run: RunFile, result: "Result", counts: "Summary", now: float, cpu_s: float) -> RunFile:
    """The content of run.json after a run: the counts of the table, or of the run before where there are none, and what
    this run has used in addition to those before. `run`: its content while the run went on. Pure."""
    job = plan.job
    browser_s = run.jobs.get(job.uid, JobRun()).browser_s + result.browser.get("seconds", 0.0)
    if counts.outcomes or result.reason != "failed":
        reasons = {
            f"{outcome}({reason})" if reason else outcome: rows
            for outcome, by_reason in counts.reasons.items()
            for reason, rows in by_reason.items()
        }
        rows = sum(counts.outcomes.values())
        run = replace(run, outcomes=counts.outcomes, reasons=reasons, rows=rows, shells=counts.shells)
    return replace(
        run,
        seeds_read=run.seeds_read or (result.seeded and not plan.has_seeds),
        cpu_s=run.cpu_s + cpu_s,
        jobs={job.uid: JobRun(tenant=job.tenant, site=job.site, browser_s=browser_s)},
        left=result.left,
        degraded_rules=result.degraded,
        dead_letters=dict(Counter(run.dead_letters) + result.dead_letters),
        reason=result.reason,
        state="finished" if result.reason in ("done", "max_pages", "waiting") else "stopped",
        ended_at=now,
        error=str(result.error) if result.error else "",
    )


def _clear(how: str, directory: OutputDirectory, info: Print) -> None:
    """Clear an old result for a new crawl, see `Plan.clear`."""
    if how == REMOVE:
        directory.remove_result()
        info(f"{directory.path} held a crawl that had stored nothing; it is replaced")
    elif how == MOVE and (moved := directory.move_result()) is not None:
        info(f"the earlier result is in {moved}; delete it when it is not needed any more")


def _read_counts(rows: Source, job: str | None, result: "Result") -> "tuple[Result, Summary]":
    """The counts of the table; without any when the database is gone, which is then why the crawl has failed."""
    from nephila.storage.read import reader

    try:
        return result, reader.summary(rows, job)
    except StoreLost as error:
        failed = result if result.error is not None else replace(result, reason="failed", error=error)
        return failed, reader.Summary({}, {}, [], 0, 0)
