"""One run of a crawl in its directory: the request, the run it continues, its seeds, `run.json` before and after.

`nephila crawl` and the Python API are built on it. The caller runs the event loop and prints.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nephila import __version__
from nephila.kernel.documents.field_types import parse_rate
from nephila.kernel.documents.job_document import lists_of, spec_of, urls_of
from nephila.kernel.messages import CrawlJob, Seed
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.seeds import STDIN, is_job_file, read_seeds, seed_url
from nephila.kernel.url_credentials import is_redacted, redacted
from nephila.programs.control_port import ControlAddress
from nephila.programs.crawl.additions import RULES, SCOPE, additions
from nephila.programs.crawl.plan import COPIES, DUE, LINKS, CrawlPlan, lifted_limits
from nephila.programs.job_files import read_jobs
from nephila.programs.options import IN_JOB
from nephila.programs.output_directory import JobRun, OutputDirectory, RunFile, cpu_seconds
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.read import ended_urls
from nephila.storage.source import Source, display_name

if TYPE_CHECKING:
    from nephila.programs.crawl.program import Result
    from nephila.storage.read.reader import Summary

Print = Callable[[str], None]
REMOVE, MOVE = "remove", "move"


class CrawlRequest(msgspec.Struct):
    """A command line or a call, after parsing."""

    urls: list[str]
    job_file: str
    seed_file: str
    out: Path
    resume: bool
    options: dict[str, Any]
    given: set[str]
    """Names of options that were written on the command line; on a resume only those override."""
    store: str = ""
    """URL of a database for the rows; not among the options, since those are written to run.json."""
    fresh: bool = False
    refresh: bool = False
    retry_failed: bool = False
    tcp: ControlAddress | None = None
    """Where the control API is served in addition to DIR/control.sock."""
    clear: str = ""
    """How an earlier result in the directory is cleared once this run has the lock: REMOVE, MOVE, or not at all."""


def request_of(
    urls: Sequence[str],
    out: Path,
    options: dict[str, Any],
    given: set[str],
    *,
    seed_file: str = "",
    resume: bool = False,
    fresh: bool = False,
    refresh: bool = False,
    retry_failed: bool = False,
) -> CrawlRequest:
    """The request of a command line or a call. `options`: by the names of the table, with a value for each. Raises
    `UsageError`."""
    job_file = next((url for url in urls if is_job_file(url)), "")
    if job_file and len(urls) > 1:
        raise UsageError(f"{job_file} is a job; its URLs stand in it (spec.seeds), or come with --seeds FILE")
    store = options.pop("store", "")
    if rate := options.pop("rate", ""):
        if "delay" in given:
            raise UsageError("--rate and --delay are the same setting in other words; leave one of them out")
        options["delay"], given = _delay_of(rate), given - {"rate"} | {"delay"}
    return CrawlRequest(
        urls=[seed_url(url) for url in urls if url != job_file],
        job_file=job_file,
        seed_file=seed_file,
        out=out,
        resume=resume or refresh or retry_failed,
        options=options,
        given=given,
        store=store,
        fresh=fresh,
        refresh=refresh,
        retry_failed=retry_failed,
    )


def _delay_of(rate: str) -> float:
    try:
        return 1 / parse_rate(rate)
    except ValueError as error:
        raise UsageError(f"--rate: {error}") from None


def plan_refetches(request: CrawlRequest, run: RunFile, plan: CrawlPlan, *, info: Print) -> None:
    """Set in the plan and in run.json which ended URLs are fetched once more. `info`: gets one line, see
    `CrawlPlan.on_first_end`."""
    wanted = [*run.refetch, *(["failed"] if request.retry_failed else []), *([DUE] if request.refresh else [])]
    if LINKS in wanted and not ended_urls.keeps_links(plan.rows, plan.job.uid):
        # Links were not kept. The scheduler holds those just beyond the scope; the summary counts what it could not
        # hold, which a refresh finds when it fetches the pages once more.
        wanted.remove(LINKS)
        if request.refresh:
            run.incomplete.append(SCOPE)
    if any(run.rules.get(name) != version for name, version in plan.rule_versions.items()):
        run.incomplete.append(RULES)
    run.rules = plan.rule_versions
    line = ""
    if not run.runs:
        run.incomplete = []
    elif run.incomplete:
        run.incomplete = list(dict.fromkeys(run.incomplete))
        if request.refresh:
            wanted.insert(0, COPIES)
        elif COPIES not in wanted:
            line = _what_is_incomplete(run, plan)
    if line:
        plan.on_first_end = partial(info, line)
    plan.refetch = tuple(dict.fromkeys(wanted)) if run.runs else ()
    run.refetch = list(plan.refetch)


def _what_is_incomplete(run: RunFile, plan: CrawlPlan) -> str:
    """One line about stored pages that lack an output; empty, and run.json lists none, where no page is stored."""
    pages = 0
    with contextlib.suppress(NoTables):
        pages = ended_urls.count(plan.rows, plan.job.uid, COPIES)
    if not pages:
        run.incomplete = []
        return ""
    return (
        f"{pages:,} pages were stored before these were added, and lack them: {', '.join(run.incomplete)};"
        " add --refresh to fetch the pages again"
    )


def resolve_run(request: CrawlRequest, directory: OutputDirectory) -> RunFile:
    """The run to execute: a new one, or the stored one with the given options applied."""
    document = read_job(request)
    if request.fresh and request.resume:
        raise UsageError("--fresh starts a new crawl; leave --resume, --refresh and --retry-failed out")
    if not request.resume:
        if not request.urls and not request.seed_file and document is None:
            raise UsageError("nothing to crawl: give a URL, a job.yaml, --seeds FILE, or --resume with --out DIR")
        request.clear = _clear_mode(request, directory)
        return RunFile(
            program=f"nephila {__version__}",
            seeds=request.urls or seed_urls(document),
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
    if request.urls and [redacted(url) for url in request.urls] != [
        redacted(url) for url in run.seeds[: len(request.urls)]
    ]:
        raise UsageError(
            f"{directory.path} holds a crawl of {run.seeds[0] if run.seeds else run.seed_file}, not of "
            f"{request.urls[0]}; leave the URL out to --resume it or choose another --out"
        )
    run.seeds[: len(request.urls)] = request.urls  # with the credentials that run.json does not keep
    directory.check_command(run, "crawl")
    before = copy.deepcopy(run)
    if document is not None:
        _same_job(run, document, directory)
        run.document = document
    for name, value in request.options.items():
        if name in request.given or (name not in run.options and not (run.document and name in IN_JOB)):
            run.options[name] = value
    run.seed_file = request.seed_file or run.seed_file
    run.refetch = list(dict.fromkeys([*run.refetch, *lifted_limits(before, run)]))
    run.incomplete += additions(before, run)
    return run


def _clear_mode(request: CrawlRequest, directory: OutputDirectory) -> str:
    """How a result in the directory is cleared. Raises `UsageError` when it must stay."""
    if request.fresh:
        with contextlib.suppress(UserError):  # a damaged run.json can still be moved
            run = directory.read()
        if run is not None:
            directory.check_command(run, "crawl")
        return MOVE
    run = directory.read()
    if run is not None and run.command == "crawl" and not directory.holder() and not _has_copies(directory, run):
        return REMOVE
    directory.check_fresh()
    return ""


def _has_copies(directory: OutputDirectory, run: RunFile) -> bool:
    rows = directory.rows(run)
    if isinstance(rows, Path) and not (rows / "nephila.db").exists():
        return False
    try:
        return ended_urls.has_copies(rows, run.uid or None)
    except NoTables:
        return False


def read_job(request: CrawlRequest) -> dict[str, Any] | None:
    """The one job of a file. Options that were not given on the command line are left to the file."""
    if not request.job_file:
        return None
    documents = read_jobs([request.job_file])
    if len(documents) > 1:
        raise UsageError(
            f"{request.job_file} holds {len(documents)} jobs and crawl takes one; see nephila up and nephila jobs apply"
        )
    for name in IN_JOB - request.given:
        request.options.pop(name, None)
    return documents[0].content


def seed_urls(document: dict[str, Any] | None) -> list[str]:
    seeds = document["spec"].get("seeds", []) if document else []
    return [seed["url"] for seed in seeds if "url" in seed]


def _same_job(run: RunFile, document: dict[str, Any], directory: OutputDirectory) -> None:
    old = run.document["metadata"]["name"] if run.document else ""
    new = document["metadata"]["name"]
    if old != new:
        what = f"the job {old!r}" if old else "a crawl without a job file"
        raise UsageError(f"{directory.path} holds {what}, not {new!r}; choose another --out")


def read_all_seeds(
    run: RunFile, plan: CrawlPlan, refused: list[tuple[str, str]], *, already_read: bool
) -> Iterator[Seed]:
    """All seeds of a run: those of the command line or the job first, then those of files.

    `already_read`: the crawl is resumed and its frontier holds the seeds of earlier runs. A seed file that is gone is
    then reported, not an error, and standard input is not read.
    """
    uid = plan.job.uid
    spec = spec_of(plan.job)
    for url in urls_of(spec):
        if not is_redacted(url):
            yield Seed(uid, url)
        elif not already_read:
            raise UsageError(f"{url}: give this URL again with its user and password; run.json keeps no secrets")
    for kind, place in lists_of(spec):
        yield Seed(uid, place, kind)
    for name in (*plan.files, run.seed_file):
        for url in _urls_of(name, run, refused, already_read=already_read):
            yield Seed(uid, url, "file")


def _urls_of(name: str, run: RunFile, refused: list[tuple[str, str]], *, already_read: bool) -> Iterator[str]:
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


def _open_first_seed(seeds: Iterator[Seed], plan: CrawlPlan, run: RunFile) -> Iterator[Seed]:
    """The seeds with the first one read, so that a wrong file is an error before anything is created."""
    named = [(place, "the seeds ") for place in plan.files]
    for name, option in (*named, (run.seed_file, "--seeds ")):
        if name in ("", STDIN):
            continue
        try:
            Path(name).open("rb").close()
        except OSError as error:
            raise UsageError(f"cannot read {option}{name}: {error.strerror}") from None
    return itertools.chain([next(seeds)], seeds)


def run_request(
    request: CrawlRequest,
    directory: OutputDirectory,
    plan: CrawlPlan,
    run: RunFile,
    go: Callable[[], Result],
    *,
    warn: Print,
    info: Print,
) -> tuple[Result, Summary]:
    """One run in its directory: the lock, an old result out of the way, the seeds of the plan, `run.json` before and
    after. `go` crawls by the plan. Raises `UserError` and `UsageError` before anything was fetched."""
    from nephila.storage.read import reader

    already_read = _seeds_already_read(request, directory, run)
    rows, only = plan.rows, run.uid or None
    if only and not run.runs and reader.holds(rows, only):
        raise UsageError(
            f"{display_name(rows)} has rows of a job {only!r} already; --resume the crawl they are of (its --out),"
            " or give the job another name"
        )
    refused: list[tuple[str, str]] = []
    seeds = read_all_seeds(run, plan, refused, already_read=already_read)
    plan.seeds = seeds if already_read else _open_first_seed(seeds, plan, run)

    def refetch_queued() -> None:
        if COPIES in run.refetch:
            run.incomplete = []
        run.refetch = []
        directory.write(run)

    plan.on_refetch_queued = refetch_queued
    with directory.locked():
        if plan.ignored and not request.refresh:
            keys = ", ".join(f"spec.{key}" for key in plan.ignored)
            warn(f"ignored, since a crawl runs once: {keys}; see --refresh and nephila up")
        _clear(request.clear, directory, info)
        run.runs += 1
        run.state = "running"
        directory.write(run)
        result = go()
        result.refused_seeds[:0] = refused
        run.seeds_read = run.seeds_read or (result.seeded and not already_read)
        counts = _read_counts(rows, only, result)
        _write_costs(run, plan.job, result)
        _write_result(directory, run, result, counts, warn)
    return result, counts


def _seeds_already_read(request: CrawlRequest, directory: OutputDirectory, run: RunFile) -> bool:
    """Whether the frontier has the seeds of earlier runs. Raises `UsageError` when it is gone and the seeds cannot be
    read again."""
    if not request.resume or "seeds" in request.given:
        return False
    if not directory.has_log and run.seed_file == STDIN:
        raise UsageError(
            f"{directory.frontier} is gone, and with it the seeds that came from standard input; give them again: "
            "--resume --seeds -"
        )
    return directory.has_log


def _clear(how: str, directory: OutputDirectory, info: Print) -> None:
    """Clear an old result for a new crawl, see `CrawlRequest.clear`."""
    if how == REMOVE:
        directory.remove_result()
        info(f"{directory.path} held a crawl that had stored nothing; it is replaced")
    elif how == MOVE and (moved := directory.move_result()) is not None:
        info(f"the earlier result is in {moved}; delete it when it is not needed any more")


def _read_counts(rows: Source, job: str | None, result: Result) -> Summary:
    """The counts of the table; without any when the database is gone, which is then why the crawl has failed."""
    from nephila.storage.read import reader

    try:
        return reader.summary(rows, job)
    except StoreLost as error:
        if result.error is None:
            result.reason, result.error = "failed", error
        return reader.Summary({}, {}, [], 0, 0)


def _write_costs(run: RunFile, job: CrawlJob, result: Result) -> None:
    """Add what this run has used to what run.json says of the runs before."""
    run.cpu_s += cpu_seconds()
    before = run.jobs.get(job.uid, JobRun())
    browser_s = before.browser_s + result.browser.get("seconds", 0.0)
    run.jobs = {job.uid: JobRun(tenant=job.tenant, site=job.site, browser_s=browser_s)}


def _write_result(directory: OutputDirectory, run: RunFile, result: Result, counts: Summary, warn: Print) -> None:
    """Write the counts of the table into run.json; those of the run before stay where there are none."""
    if counts.outcomes or result.reason != "failed":
        run.outcomes = counts.outcomes
        run.reasons = {
            f"{outcome}({reason})" if reason else outcome: rows
            for outcome, reasons in counts.reasons.items()
            for reason, rows in reasons.items()
        }
        run.rows = sum(counts.outcomes.values())
        run.shells = counts.shells
    run.left = result.left
    run.degraded_rules = result.degraded
    run.dead_letters = dict(Counter(run.dead_letters) + result.dead_letters)
    run.reason = result.reason
    run.state = "finished" if result.reason in ("done", "max_pages", "waiting") else "stopped"
    run.ended_at = time.time()
    run.error = str(result.error) if result.error else ""
    try:
        directory.write(run)
    except UserError as error:
        warn(str(error))
