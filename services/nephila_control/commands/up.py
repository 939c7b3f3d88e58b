"""`nephila up`: every service in one program, with DIR/control.sock for jobs; runs until it is stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from msgspec.structs import replace
from nephila import __version__
from nephila.cli.lost_output import drop_lost_output
from nephila.cli.options import DEFAULT_OUT, Api, ApiAccess, ApiTokenFile, Out, values, with_options
from nephila.kernel.runtime.errors import UserError, without_resume
from nephila.programs.options import ELSEWHERE, CommandOptions
from nephila.programs.output_directory import JobRun, OutputDirectory, RunFile, cpu_seconds

from nephila_control.commands.target import tcp_address

LOG_S = 60.0
"""Seconds between two lines about the jobs."""

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from nephila.kernel.runtime.clock import Clock
    from nephila.programs.service_configs import ServiceConfigs
    from nephila_harvest.webhooks.sender import WebhookSender
    from prometheus_client.registry import Collector

    from nephila_control.api import Control
    from nephila_control.control_servers import TcpAddress
    from nephila_control.job_types import Job
    from nephila_control.serve import UpProgram

    Companion = Callable[[Control, asyncio.Event], Awaitable[None]]


@with_options("up")
def up(
    out: Out = DEFAULT_OUT,
    api: Api = "",
    api_token_file: ApiTokenFile = "",
    api_access: ApiAccess = "",
    firecrawl: Annotated[
        bool, typer.Option("--firecrawl", help="Serve Firecrawl's API at --api too.", rich_help_panel=ELSEWHERE)
    ] = False,
    webhooks: Annotated[
        str, typer.Option(metavar="FILE", help="Deliver changes of pages to the webhooks of this file.")
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors.")] = False,
    **options: Unpack[CommandOptions],
) -> None:
    """Run many jobs in DIR until it is stopped; see nephila jobs. Started again, it continues all of them."""
    tcp = tcp_address(api, api_token_file, api_access, firecrawl=firecrawl)
    raise typer.Exit(run_up(out, values(options), tcp, quiet=quiet, webhooks=webhooks))


def run_up(
    out: Path,
    options: Mapping[str, Any],
    tcp: TcpAddress | None,
    *,
    quiet: bool,
    companion: Companion | None = None,
    webhooks: str = "",
    beside: Callable[[], list[Collector]] = list,
    sites: Path | None = None,
) -> int:
    """Serves the jobs of a directory until a signal; returns the exit code. `webhooks` is the file of the destinations
    of changes, `beside` gives metrics of the companion, `sites` is the file of the sites (default: that of the
    directory)."""
    from nephila.kernel.runtime.config import secret_variable
    from nephila.programs.headers import redacted
    from nephila.programs.service_configs import archive_name, formats_of, make_configs, new_writer, with_store
    from nephila.storage.source import ENVIRONMENT
    from nephila_harvest.send_webhooks import build_sender
    from nephila_harvest.webhooks.config import read_webhooks
    from nephila_proxies import option as proxies
    from nephila_rules.files import read_all
    from nephila_rules.function_check import check_functions

    drop_lost_output("stdout")
    directory = OutputDirectory(out)
    earlier = directory.read()
    # Jobs that were taken with a browser need it again.
    browser = options["browser"] or bool(earlier is not None and earlier.options.get("browser"))
    run, url = with_store(resolve_run(directory, earlier), options["store"], secret_variable(ENVIRONMENT), new_writer())
    configs = make_configs(
        options,
        out,
        formats_of(options["format"], options["keep_raw"]),
        store=url,
        writer=run.writer,
        renders=browser,
        archive=archive_name("up", run),
        divided=directory.has_parts,
    )
    if rules := options.get("rules", ""):
        check_functions(read_all([Path(rules)]), configs.parser.rule_functions_dir)
    changed = {"browser": browser, "header": redacted(options["header"]), "proxy": proxies.redacted(options["proxy"])}
    run = replace(
        run,
        options={name: value for name, value in options.items() if name != "store"} | changed,
        window=configs.scheduler.window,
        agent=configs.scheduler.agent,
    )
    try:
        sender = partial(build_sender, Path(webhooks), directory.rows(run)) if webhooks else None
        if webhooks:
            read_webhooks(Path(webhooks))
        return serve(
            directory, run, configs, tcp, quiet=quiet, companion=companion, webhooks=sender, beside=beside, sites=sites
        )
    except UserError as error:
        # `--resume` is an option of crawl; `nephila up` always continues.
        raise type(error)(without_resume(str(error))) from None


def resolve_run(directory: OutputDirectory, earlier: RunFile | None) -> RunFile:
    """The run as it will be. Raises `UsageError` when the directory holds something else."""
    if earlier is None:
        directory.check_fresh(None, 0, directory.leftovers())
        earlier = RunFile(command="up", started_at=time.time())
    directory.check_command(earlier, "up")
    return replace(earlier, program=f"nephila {__version__}", error="")


def serve(
    directory: OutputDirectory,
    run: RunFile,
    configs: ServiceConfigs,
    tcp: TcpAddress | None,
    *,
    quiet: bool,
    companion: Companion | None = None,
    webhooks: Callable[[Clock], WebhookSender] | None = None,
    beside: Callable[[], list[Collector]] = list,
    sites: Path | None = None,
) -> int:
    """Run until a signal; returns the exit code. Raises the error that ended the program or its companion. `companion`
    runs beside the services, with their control API, until its event is set."""
    from nephila.kernel.process.process_setup import raise_open_files, run_loop

    from nephila_control.serve import UpProgram

    ended_by: list[signal.Signals] = []
    rules = run.options.get("rules", "")

    async def main() -> UpProgram:
        def write() -> None:
            degraded = program.assembly.judge.degraded()
            _write(directory, with_jobs(replace(run, degraded_rules=degraded), program.control.jobs()))

        program = UpProgram(
            configs,
            rules=Path(rules) if rules else None,
            tcp=tcp,
            on_change=write,
            webhooks=webhooks,
            beside=beside,
            sites=sites,
        )
        await _run(program, _CompanionTask(companion, program), ended_by, directory.path, quiet=quiet)
        return program

    raise_open_files()
    with directory.locked():
        run = replace(run, runs=run.runs + 1, state="running")
        directory.write(run)
        program = run_loop(main())
        run = replace(run, degraded_rules=program.degraded)
        _write(directory, with_jobs(_ended(run, program.error), program.jobs))
    if program.error is not None:
        raise program.error
    # A service manager ends its services with SIGTERM: that is no failure. Ctrl-C is, as for every command.
    return 130 if ended_by[:1] == [signal.SIGINT] else 0


class _CompanionTask:
    """The companion of a program. The program ends when the companion ends before `stop` is set."""

    def __init__(self, companion: Companion | None, program: UpProgram) -> None:
        self.stop = asyncio.Event()
        self.error: BaseException | None = None
        self._companion = companion
        self._program = program
        self._task: asyncio.Future[None] | None = None

    def begin(self) -> None:
        if self._companion is not None:
            self._task = asyncio.ensure_future(self._companion(self._program.control, self.stop))
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        if not (task.cancelled() or self.stop.is_set()):
            self.error = task.exception()
            self._program.stop()

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def _run(
    program: UpProgram, companion: _CompanionTask, ended_by: list[signal.Signals], path: Path, *, quiet: bool
) -> None:
    """Run a program and its companion until they end. Signals that end them are appended to `ended_by`."""
    from nephila.kernel.process.stop_signals import stopped_by

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        companion.stop.set()
        program.stop()

    def ready(jobs: list[Job]) -> None:
        companion.begin()
        if not quiet:
            count = f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'}"
            print(f"{count} in {path}; jobs are taken at {', '.join(program.servers.places)}", flush=True)

    lines = None if quiet else asyncio.ensure_future(_log(program.control.jobs))
    try:
        with stopped_by(asyncio.get_running_loop(), end):
            await program.run(ready)
        if companion.error is not None:
            raise companion.error
    finally:
        companion.cancel()
        if lines is not None:
            lines.cancel()


async def _log(facts: Callable[[], list[Job]]) -> None:
    """Prints a line a minute on standard error while jobs change."""
    before: list[Job] = []
    while True:
        await asyncio.sleep(LOG_S)
        jobs = facts()
        if jobs != before:
            print(state_line(jobs), file=sys.stderr, flush=True)
        before = jobs


def state_line(jobs: list[Job]) -> str:
    """Sums the jobs of a program in one line, with the number of jobs in each state."""
    states = Counter(job.state for job in jobs)
    parts = [f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'}"]
    if jobs:
        parts[0] += f" ({', '.join(f'{count:,} {state}' for state, count in sorted(states.items()))})"
    parts += [
        f"{sum(job.stored for job in jobs):,} stored",
        f"{sum(job.denied + job.failed + job.dropped for job in jobs):,} other ends",
        f"{sum(job.rate for job in jobs):.1f}/s",
        f"{sum(job.queued for job in jobs):,} queued",
        f"{sum(job.in_flight for job in jobs):,} in flight",
    ]
    return " · ".join(parts)


def _ended(run: RunFile, error: BaseException | None) -> RunFile:
    return replace(
        run,
        state="stopped",
        reason="failed" if error else "interrupted",
        ended_at=time.time(),
        cpu_s=run.cpu_s + cpu_seconds(),
        error=str(error) if error else "",
    )


def with_jobs(run: RunFile, jobs: list[Job]) -> RunFile:
    """The content of run.json with the counts per job, and their sums."""
    job_runs = {
        job.name: JobRun(
            generation=job.generation,
            state=job.state,
            left=job.queued + job.in_flight,
            tenant=job.tenant,
            site=job.site,
            browser_s=job.browser_s,
            outcomes={
                name: count for name in ("stored", "denied", "failed", "dropped") if (count := int(getattr(job, name)))
            },
        )
        for job in jobs
    }
    outcomes: Counter[str] = Counter()
    for job_run in job_runs.values():
        outcomes.update(job_run.outcomes)
    left = sum(job_run.left for job_run in job_runs.values())
    return replace(run, jobs=job_runs, left=left, outcomes=dict(outcomes), rows=outcomes.total())


def _write(directory: OutputDirectory, run: RunFile) -> None:
    """Write run.json. A write error is printed and does not end the program."""
    try:
        directory.write(run)
    except UserError as refused:
        print(f"nephila: {refused}", file=sys.stderr)
