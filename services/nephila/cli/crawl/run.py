"""Running `nephila crawl`: options to a plan, the loop, signals, `run.json`, the summary."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephila import __version__
from nephila.cli.crawl import refresh
from nephila.cli.crawl.command import STDIN, read_seeds
from nephila.cli.crawl.plan import JOB_OPTIONS, lifted_limits, make_plan, resolve_store
from nephila.cli.output import note
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.crawl import DUE, LINKS
from nephila.programs.output_directory import Directory, Run
from nephila.programs.process_setup import raise_open_files, run_loop
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.read import ended_urls
from nephila.storage.source import Source, display_name

if TYPE_CHECKING:
    from rich.console import Console

    from nephila.programs.control_servers import TcpAddress
    from nephila.programs.crawl import Plan, Result
    from nephila.storage.read.reader import Summary


REMOVE, MOVE = "remove", "move"
NOTHING_FETCHED = 3
"""Exit code of a crawl that has fetched nothing though it had something to fetch."""


@dataclass(slots=True)
class Request:
    """A command line, read."""

    urls: list[str]
    job_file: str
    seed_file: str
    out: Path
    resume: bool
    options: dict[str, Any]
    given: set[str]
    """Names of options that were written on the command line; on a resume only those override."""
    store: str = ""
    """URL of a database for the rows; not among the options, which are written down."""
    fresh: bool = False
    refresh: bool = False
    retry_failed: bool = False
    tcp: TcpAddress | None = None
    """Where the control API is served beside DIR/control.sock."""
    clear: str = ""
    """What becomes of an earlier result in the directory once this run has its lock: REMOVE, MOVE, or nothing."""


def crawl(request: Request, *, as_json: bool, quiet: bool, verbose: bool = False) -> int:
    """Run the crawl; returns the exit code. Raises `UserError` and `UsageError` before anything was fetched."""
    directory = Directory(request.out)
    run = resolve_run(request, directory)
    url = resolve_store(run, request.store)
    plan = make_plan(run, request.out, url)
    plan.tcp = request.tcp
    changes = refresh.Changes(plan) if request.refresh and run.runs else None
    plan_refetches(request, run, plan, quiet=quiet or as_json)
    result, counts = _run(request, plan, directory, run, quiet=quiet or as_json, verbose=verbose)
    from nephila.cli.crawl import summary

    if isinstance(result.error, UsageError):
        raise result.error
    if result.error is not None and not isinstance(result.error, UserError):
        raise result.error
    if result.error is not None:
        print(f"nephila: {result.error}", file=sys.stderr)
    if result.ended > run.rows and result.error is None:
        where = display_name(directory.rows(run)) if run.store else directory.path / "nephila.db"
        why = "deleted, or another database?" if run.store else "replaced, or its -wal cut off?"
        print(
            f"nephila: {result.ended - run.rows:,} rows are missing in {where} ({why}): "
            "these URLs had ended and are not fetched again; put them back, or start afresh with another --out",
            file=sys.stderr,
        )
    changed = changes.found() if changes is not None and result.error is None else None
    summary.show(directory, run, result, counts, changed, as_json=as_json, quiet=quiet)
    return exit_code(run, result, changed)


def exit_code(run: Run, result: Result, changed: refresh.Changed | None) -> int:
    """0: a page is stored, or nothing was due; 1 failed; 3 nothing could be fetched; 130 interrupted.

    Of a refresh only its own fetches count: a site that is down must not look well because of what it once was.
    """
    if result.reason in ("failed", "interrupted"):
        return {"failed": 1, "interrupted": 130}[result.reason]
    if changed is not None:
        return NOTHING_FETCHED if changed.ended and not changed.fetched else 0
    return 0 if run.outcomes.get("stored") else NOTHING_FETCHED


def plan_refetches(request: Request, run: Run, plan: Plan, *, quiet: bool) -> None:
    """Say in the plan and in run.json which ended URLs are fetched once more."""
    wanted = [*run.refetch, *(["failed"] if request.retry_failed else []), *([DUE] if request.refresh else [])]
    plan.refetch = tuple(dict.fromkeys(wanted)) if run.runs else ()
    if LINKS in plan.refetch and not ended_urls.keeps_links(plan.rows, plan.job.uid):
        plan.refetch = tuple(kind for kind in plan.refetch if kind != LINKS)
        # Where links were not kept, the pages have to be read once more for those that the scope refused.
        plan.conditional = not request.refresh
        if not request.refresh and not quiet:
            note("the links of stored pages were not kept (--links); add --refresh to follow what was out of scope")
    run.refetch = list(plan.refetch)


def resolve_run(request: Request, directory: Directory) -> Run:
    """The run as it will be: fresh, or what was stored with the given options over it."""
    document = read_job(request)
    if request.fresh and request.resume:
        raise UsageError("--fresh begins anew; leave --resume, --refresh and --retry-failed out")
    if not request.resume:
        if not request.urls and not request.seed_file and document is None:
            raise UsageError("nothing to crawl: give a URL, a job.yaml, --seeds FILE, or --resume with --out DIR")
        request.clear = _clear_mode(request, directory)
        return Run(
            program=f"nephila {__version__}",
            seeds=request.urls or urls_of(document),
            seed_file=request.seed_file,
            options=request.options,
            document=document,
            started_at=time.time(),
        )
    run = directory.read()
    if run is None:
        if directory.frontier.exists() or not (request.urls or request.seed_file or request.job_file):
            raise UsageError(f"{directory.path} holds no crawl that could be resumed (no run.json); check --out")
        request.resume = False
        return resolve_run(request, directory)
    if request.urls and request.urls != run.seeds[: len(request.urls)]:
        raise UsageError(
            f"{directory.path} holds a crawl of {run.seeds[0] if run.seeds else run.seed_file}, not of "
            f"{request.urls[0]}; leave the URL out to --resume it or choose another --out"
        )
    directory.check_command(run, "crawl")
    before = copy.deepcopy(run)
    if document is not None:
        _same_job(run, document, directory)
        run.document = document
    for name, value in request.options.items():
        if name in request.given or (name not in run.options and not (run.document and name in JOB_OPTIONS)):
            run.options[name] = value
    run.seed_file = request.seed_file or run.seed_file
    run.refetch = list(dict.fromkeys([*run.refetch, *lifted_limits(before, run)]))
    return run


def _clear_mode(request: Request, directory: Directory) -> str:
    """What becomes of a result that is in the directory. Raises `UsageError` where it has to stay."""
    if request.fresh:
        with contextlib.suppress(UserError):  # what cannot be read can be moved
            run = directory.read()
        if run is not None:
            directory.check_command(run, "crawl")
        return MOVE
    run = directory.read()
    if run is not None and run.command == "crawl" and not directory.holder() and not _has_copies(directory, run):
        return REMOVE
    directory.check_fresh()
    return ""


def _has_copies(directory: Directory, run: Run) -> bool:
    rows = directory.rows(run)
    if isinstance(rows, Path) and not (rows / "nephila.db").exists():
        return False
    try:
        return ended_urls.has_copies(rows, run.uid or None)
    except NoTables:
        return False


def read_job(request: Request) -> dict[str, Any] | None:
    """The one job of a file; options that it says and the command line does not are left to it."""
    if not request.job_file:
        return None
    from nephila.cli.jobs.files import read_jobs

    documents = read_jobs([request.job_file])
    if len(documents) > 1:
        raise UsageError(
            f"{request.job_file} holds {len(documents)} jobs and crawl takes one; see nephila up and nephila jobs apply"
        )
    for name in JOB_OPTIONS - request.given:
        request.options.pop(name, None)
    return documents[0].content


def urls_of(document: dict[str, Any] | None) -> list[str]:
    seeds = document["spec"]["seeds"] if document else []
    return [seed["url"] for seed in seeds if "url" in seed]


def _same_job(run: Run, document: dict[str, Any], directory: Directory) -> None:
    old = run.document["metadata"]["name"] if run.document else ""
    new = document["metadata"]["name"]
    if old != new:
        what = f"the job {old!r}" if old else "a crawl without a job file"
        raise UsageError(f"{directory.path} holds {what}, not {new!r}; choose another --out")


def read_all_seeds(run: Run, plan: Plan, refused: list[tuple[str, str]], *, already_read: bool) -> Iterator[Seed]:
    """All seeds of a run: those of the command line or the job first, then those of files.

    `already_read`: the crawl is resumed and its frontier holds the seeds of earlier runs. A seed file that is gone is
    then reported, not an error, and standard input is not read.
    """
    uid = plan.job.uid
    for url in plan.job.seeds:
        yield Seed(uid, url)
    for kind, place in plan.sources:
        if kind != "file":
            yield Seed(uid, place, kind)
    files = [place for kind, place in plan.sources if kind == "file"]
    for name in (*files, run.seed_file):
        for url in _urls_of(name, run, refused, already_read=already_read):
            yield Seed(uid, url, "file")


def _urls_of(name: str, run: Run, refused: list[tuple[str, str]], *, already_read: bool) -> Iterator[str]:
    if not name:
        return
    if not already_read:
        yield from _file_seeds(name, refused)
    elif name == STDIN:
        if not run.seeds_read:
            refused.append(
                ("standard input", "it may not have been read to its end; if so give it again: --resume --seeds -")
            )
    else:
        try:
            yield from _file_seeds(name, refused)
        except UsageError as error:
            refused.append((name, str(error)))


def _file_seeds(name: str, refused: list[tuple[str, str]]) -> Iterator[str]:
    return read_seeds(name, lambda place, reason: refused.append((place, reason)))


def _open_first_seed(seeds: Iterator[Seed], plan: Plan, run: Run) -> Iterator[Seed]:
    """The seeds with the first of each source read, so that a wrong file is told before anything is made."""
    named = [(place, "the seeds ") for kind, place in plan.sources if kind == "file"]
    for name, option in (*named, (run.seed_file, "--seeds ")):
        if name in ("", STDIN):
            continue
        try:
            Path(name).open("rb").close()
        except OSError as error:
            raise UsageError(f"cannot read {option}{name}: {error.strerror}") from None
    return itertools.chain([next(seeds)], seeds)


def _run(
    request: Request, plan: Plan, directory: Directory, run: Run, *, quiet: bool, verbose: bool
) -> tuple[Result, Summary]:
    from nephila.cli.progress import Progress
    from nephila.programs.crawl import CrawlProgram

    progress = Progress(None if quiet else _standard_error(), verbose=verbose)

    async def main() -> Result:
        crawl = CrawlProgram(plan)
        loop = asyncio.get_running_loop()

        def end() -> None:
            progress.ending(plan.grace_s)
            crawl.stop("interrupted")

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        progress.watch(crawl)
        try:
            return await crawl.run()
        finally:
            await progress.stop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    raise_open_files()
    return run_request(request, directory, plan, run, lambda: run_loop(main()), quiet=quiet)


def run_request(
    request: Request, directory: Directory, plan: Plan, run: Run, go: Callable[[], Result], *, quiet: bool
) -> tuple[Result, Summary]:
    """`run_in` for what a command line or a call asks."""
    already_read = _seeds_already_read(request, directory, run)

    def room() -> None:
        if plan.ignored and not request.refresh:
            keys = ", ".join(f"spec.{key}" for key in plan.ignored)
            note(f"ignored, since a crawl runs once: {keys}; see --refresh and nephila up")
        clear(request.clear, directory, quiet=quiet)

    return run_in(directory, plan, run, go, already_read=already_read, room=room)


def _seeds_already_read(request: Request, directory: Directory, run: Run) -> bool:
    """Whether the frontier has the seeds of earlier runs. Raises `UsageError` when it is gone, and nobody else has."""
    if not request.resume or "seeds" in request.given:
        return False
    if not directory.has_log and run.seed_file == STDIN:
        raise UsageError(
            f"{directory.frontier} is gone, and with it the seeds that came from standard input; give them again: "
            "--resume --seeds -"
        )
    return directory.has_log


def run_in(
    directory: Directory,
    plan: Plan,
    run: Run,
    go: Callable[[], Result],
    *,
    already_read: bool,
    room: Callable[[], None] = lambda: None,
) -> tuple[Result, Summary]:
    """One run of a crawl in its directory: the lock, the seeds of the plan, `run.json` before and after. `go` crawls
    by the plan. `room` clears away what is in its way, under the lock. Raises `UserError`, `UsageError` before anything
    was fetched."""
    from nephila.storage.read import reader

    rows, only = plan.rows, run.uid or None
    if only and not run.runs and reader.holds(rows, only):
        raise UsageError(
            f"{display_name(rows)} has rows of a job {only!r} already; --resume that crawl (its --out), or give the job"
            " another name"
        )
    refused: list[tuple[str, str]] = []
    seeds = read_all_seeds(run, plan, refused, already_read=already_read)
    plan.seeds = seeds if already_read else _open_first_seed(seeds, plan, run)

    def refetch_queued() -> None:
        run.refetch = []
        directory.write(run)

    plan.on_refetch_queued = refetch_queued
    with directory.locked():
        room()
        run.runs += 1
        run.state = "running"
        directory.write(run)
        result = go()
        result.refused_seeds[:0] = refused
        run.seeds_read = run.seeds_read or (result.seeded and not already_read)
        counts = _read_counts(rows, only, result)
        _write_result(directory, run, result, counts)
    return result, counts


def clear(how: str, directory: Directory, *, quiet: bool) -> None:
    """Make room for a new crawl, as `Request.clear` says, and tell."""
    if how == REMOVE:
        directory.remove_result()
        if not quiet:
            note(f"{directory.path} held a crawl that had stored nothing; it is begun anew")
    elif how == MOVE and (moved := directory.move_result()) is not None and not quiet:
        note(f"the earlier result is in {moved}; delete it when it is not needed any more")


def _standard_error() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _read_counts(rows: Source, job: str | None, result: Result) -> Summary:
    """The counts of the table; without any when the database is gone, which is then why the crawl has failed."""
    from nephila.storage.read import reader

    try:
        return reader.summary(rows, job)
    except StoreLost as error:
        if result.error is None:
            result.reason, result.error = "failed", error
        return reader.Summary({}, {}, [], 0, 0)


def _write_result(directory: Directory, run: Run, result: Result, counts: Summary) -> None:
    """Write the counts of the table into run.json; those of the run before stay where there are none."""
    if counts.outcomes or result.reason != "failed":
        run.outcomes = counts.outcomes
        run.reasons = {
            f"{outcome}({reason})" if reason else outcome: rows
            for outcome, reasons in counts.reasons.items()
            for reason, rows in reasons.items()
        }
        run.rows = sum(counts.outcomes.values())
    run.left = result.left
    run.degraded_rules = result.degraded
    run.reason = result.reason
    run.state = "finished" if result.reason in ("done", "max_pages", "waiting") else "stopped"
    run.ended_at = time.time()
    run.error = str(result.error) if result.error else ""
    try:
        directory.write(run)
    except UserError as error:
        print(f"nephila: {error}", file=sys.stderr)
