"""`nephila explain` works where no program runs: it restores the frontier from its log, reads the database, and changes
nothing."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila.programs.output_directory import OutputDirectory, RunFile

from nephila_control.recorded_frontier import recorded_frontier

if TYPE_CHECKING:
    from nephila_control.explain.explain import Explanation


def explain_directory(directory: OutputDirectory, href: str, name: str) -> Explanation:
    """Explains a URL in the named job, else in the job with the most facts about it. Raises `UserError`."""
    from nephila_control import job_view
    from nephila_control.explain.explain import explain as explain_url
    from nephila_control.explain.facts import Home

    run = directory.read()
    now, utc_now = time.monotonic(), time.time()
    (partition,) = recorded_frontier(directory, run, now, utc_now, parse_url(href).fingerprint)
    dispatcher = partition.dispatcher
    jobs = {uid: job for uid, job in dispatcher.frontier.jobs.items() if not job.spec.deleted}
    uids = job_view.named(directory.rows(run), {uid: job.spec for uid, job in jobs.items()}, name, href)
    if not uids:
        raise UserError(f"the crawl in {directory.path} has no job yet; ask again once it has started")
    running = _is_running(directory, run)
    rows = directory.rows(run)
    home = Home(str(directory.path), many=run is not None and run.command == "up", running=running)

    def explanation_of(uid: str, **tables: object) -> Explanation:
        return explain_url(
            dispatcher,
            jobs[uid],
            href,
            now,
            attempts=partition.restored.attempts,
            running=running,
            home=home,
            **tables,  # type: ignore[arg-type]
        )

    candidates = job_view.candidates(jobs, uids, href)
    best = job_view.best([explanation_of(uid, row=job_view.row(rows, uid, href)) for uid in candidates])
    return job_view.left_out(
        rows, explanation_of(best.job, row=best.row, fetches=job_view.fetches(rows, best.job, href))
    )


def _is_running(directory: OutputDirectory, run: RunFile | None) -> bool:
    """Whether the program that holds the directory is alive; asking for its lock could get in the way of one."""
    if run is None or run.state != "running":
        return False
    try:
        os.kill(int((directory.path / ".lock").read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
