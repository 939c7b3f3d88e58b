"""`nephila crawl` in this process: the event loop, signals, progress, the summary, the exit code."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from nephila.cli.lost_output import drop_lost_output
from nephila.cli.output import note
from nephila.kernel.process.process_setup import raise_open_files, run_loop
from nephila.kernel.process.stop_signals import stopped_by
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.crawl.changes import Changed, ChangeTracker
from nephila.programs.crawl.run import Run, execute
from nephila.programs.crawl.stored import read_plan
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.programs.service_configs import GRACE_S
from nephila.storage.source import display_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from nephila.programs.crawl.plan import Plan
    from nephila.programs.crawl.program import CrawlProgram, Result
    from nephila.programs.crawl.request import CrawlRequest

NOTHING_FETCHED = 3
"""Exit code of a crawl that had URLs to fetch and fetched none."""


def crawl(request: CrawlRequest, *, as_json: bool, quiet: bool, verbose: bool = False) -> int:
    """Run the crawl; returns the exit code. Raises `UserError` and `UsageError` before anything was fetched."""
    drop_lost_output("stdout")
    plan = read_plan(request)
    changes = ChangeTracker(plan) if plan.refreshes else None
    ended = _run(plan, quiet=quiet or as_json, verbose=verbose)
    from nephila.cli.crawl import summary

    result, run, directory = ended.result, ended.file, OutputDirectory(request.out)
    if result.error is not None and (isinstance(result.error, UsageError) or not isinstance(result.error, UserError)):
        raise result.error
    if result.error is not None:
        note(str(result.error))
    elif result.ended > run.rows:
        note(_lost_rows(directory, run, result.ended - run.rows))
    changed = changes.changed() if changes is not None and result.error is None else None
    summary.show(directory, run, result, ended.counts, changed, as_json=as_json, quiet=quiet)
    code = exit_code(run, result, changed)
    if code == NOTHING_FETCHED and quiet and not as_json:
        note(summary.nothing_fetched(directory, run, result))
    return code


def _lost_rows(directory: OutputDirectory, run: RunFile, rows: int) -> str:
    where = display_name(directory.rows(run)) if run.store else directory.path / "nephila.db"
    why = "deleted, or another database?" if run.store else "replaced, or its -wal cut off?"
    return (
        f"{rows:,} rows are missing in {where} ({why}): these URLs had ended and are not fetched again; restore the"
        " rows, or start a new crawl with another --out"
    )


def exit_code(run: RunFile, result: Result, changed: Changed | None) -> int:
    """0: a page is stored, or nothing was due; 1 failed; 3 nothing could be fetched; 130 interrupted.

    After --refresh only the fetches of this run count: pages stored earlier do not hide that a site is down now.
    """
    if result.reason in ("failed", "interrupted"):
        return {"failed": 1, "interrupted": 130}[result.reason]
    if changed is not None:
        return NOTHING_FETCHED if changed.ended and not changed.fetched else 0
    return 0 if run.outcomes.get("stored") else NOTHING_FETCHED


def _run(plan: Plan, *, quiet: bool, verbose: bool) -> Run:
    from nephila.cli.progress import ProgressPrinter

    progress = ProgressPrinter(None if quiet else _standard_error(), verbose=verbose)

    async def main(build: Callable[..., CrawlProgram]) -> Result:
        crawl = build()
        loop = asyncio.get_running_loop()

        def end(_: signal.Signals) -> None:
            progress.ending(GRACE_S)
            crawl.stop("interrupted")

        progress.watch(crawl)
        try:
            with stopped_by(loop, end):
                return await crawl.run()
        finally:
            await progress.stop()

    raise_open_files()
    return execute(plan, lambda build: run_loop(main(build)), warn=note, info=_ignore if quiet else note)


def _ignore(line: str) -> None:
    """For --quiet and --json."""


def _standard_error() -> Console:
    from rich.console import Console

    return Console(stderr=True)
