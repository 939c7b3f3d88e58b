"""`nephila crawl --bootstrap`: a crawl by the services of a system; this program tells the job, watches and sums up."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from nephila import __version__
from nephila.cli.crawl.run import NOTHING_FETCHED
from nephila.cli.jobs.cluster import connected
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.messages import JobStatus, Seed
from nephila.kernel.runtime.errors import TemporaryError, UsageError
from nephila.kernel.topics import JOB_STATUS
from nephila.programs.crawl.plan import make_plan
from nephila.programs.crawl.run import Request, read_all_seeds, read_job, urls_of
from nephila.programs.options import IN_SERVICE
from nephila.programs.output_directory import Run

if TYPE_CHECKING:
    from nephila.kernel.bus.kafka.bus import KafkaBus
    from nephila.kernel.messages import CrawlJob, ParseRule
    from nephila.kernel.runtime.clock import Clock
    from nephila.programs.crawl.plan import Plan

SERVICE_OPTIONS = ("out", "resume", "refresh", "retry_failed", "fresh", *IN_SERVICE)
"""Options that are settings of the services, or of a directory here."""
SLOW_ANSWER_S = 5.0
"""A broker that takes longer for an answer was away."""
MIN_LINE_INTERVAL_S = 1.0
"""Least time between two lines of progress."""


def crawl(request: Request, bootstrap: str, *, as_json: bool, quiet: bool) -> int:
    """Submit the job, return the exit code when it is done. Raises `UserError` and `UsageError`."""
    from nephila.kernel.runtime.process_setup import run_loop

    for name in SERVICE_OPTIONS:
        if name in request.given:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} is for the services to say (nephila downloader --config …), not with --bootstrap"
            )
    document = read_job(request)
    if not request.urls and not request.seed_file and document is None:
        raise UsageError("nothing to crawl: give a URL, a job.yaml or --seeds FILE")
    run = Run(
        program=f"nephila {__version__}",
        seeds=request.urls or urls_of(document),
        seed_file=request.seed_file,
        document=document,
        options=request.options,
    )
    plan = make_plan(run, request.out, system=True)
    job = plan.job
    if document is None:
        job.uid = job.name = f"crawl-{uuid.uuid4().hex[:12]}"
    rules = rules_of(plan)
    refused: list[tuple[str, str]] = []
    seeds = read_all_seeds(run, plan, refused, already_read=False)
    status, refused_remotely = run_loop(_submit_and_watch(job, bootstrap, seeds, rules, quiet=quiet or as_json))
    for what, why in (*refused, *refused_remotely):
        print(f"nephila: seed {sanitize(what)}: {sanitize(why)}", file=sys.stderr)
    _print_summary(status, as_json=as_json, quiet=quiet)
    return 0 if status.stored else NOTHING_FETCHED


def rules_of(plan: Plan) -> list[ParseRule]:
    """The rules that travel with the job, which names them. The system's rules are known by name: another rule of a
    name takes the place of the one that is there."""
    if plan.rules is None:
        return []
    from nephila.rulekit.files import read_all
    from nephila.rulekit.watch import message_of

    messages = [message_of(document) for document in read_all([plan.rules])]
    if plan.all_rules:
        plan.job.rules = [message.name for message in messages]
    return [message for message in messages if message.name in plan.job.rules]


async def _submit_and_watch(
    job: CrawlJob, bootstrap: str, seeds: Iterable[Seed], rules: list[ParseRule], *, quiet: bool
) -> tuple[JobStatus, list[tuple[str, str]]]:
    from nephila.programs.cluster.job_submission import Submission

    async with connected(bootstrap) as bus:
        submission = Submission(bus, bus.clock, bus.config.partitions, job, rules)
        submission.broker_answers = partial(_broker_answers, bus)
        if not quiet:
            submission.on_status = _Progress(bus.clock).show
        await bus.start()
        if not quiet:
            note(f"job {job.uid}; stop watching with Ctrl-C: the crawl goes on")
        return await submission.run(seeds), submission.refused


async def _broker_answers(bus: KafkaBus) -> bool:
    """Whether the broker is there, and was all the time."""
    asked = bus.clock.monotonic()
    with contextlib.suppress(TemporaryError):
        await bus.bounds(JOB_STATUS, [0])
        if bus.clock.monotonic() < asked + SLOW_ANSWER_S:
            return True
    note(f"the broker at {bus.config.bootstrap} does not answer, or has not for a while: waiting for it")
    return False


class _Progress:
    """A line when something has changed, and not too many of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown = ""
        self._next = 0.0

    def show(self, status: JobStatus) -> None:
        """The job stands so."""
        line, now = f"{status.uid}: {_line(status)}", self._clock.monotonic()
        if line != self._shown and now >= self._next:
            self._shown, self._next = line, now + MIN_LINE_INTERVAL_S
            note(line)


def _line(status: JobStatus) -> str:
    ended = f"{status.stored:,} stored, {status.denied:,} denied, {status.failed:,} failed, {status.dropped:,} dropped"
    return f"{ended}; {status.queued:,} queued, {status.in_flight:,} on their way"


def _print_summary(status: JobStatus, *, as_json: bool, quiet: bool) -> None:
    reason = "max_pages" if status.spent else "done"
    if as_json:
        names = ("stored", "denied", "failed", "dropped")
        outcomes = {name: getattr(status, name) for name in names}
        print_json({"job": status.uid, "reason": reason, "outcomes": outcomes, "left": status.queued})
    elif not quiet:
        asked = "the page budget is spent" if status.spent else "done"
        print(f"{status.uid}: {asked}; {_line(status)}")
