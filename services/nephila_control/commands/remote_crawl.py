"""`nephila crawl --bootstrap` and `--server`: a crawl elsewhere. This program submits the job, follows it and sums up.

Ctrl-C ends the following; the crawl continues.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephila.cli.crawl.run import NOTHING_FETCHED
from nephila.cli.crawl.summary import dead_letters_line
from nephila.cli.lost_output import drop_lost_output
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.documents.job_document import document_of, lists_of, spec_of, urls_of, with_spec
from nephila.kernel.documents.job_schema import Seed as SeedOfJob
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.programs.crawl.plan import job_of, run_formats, spec_of_run, without_recurring_keys
from nephila.programs.crawl.request import CrawlRequest
from nephila.programs.crawl.resolve import new_run
from nephila.programs.crawl.seeds import all_seeds, singly
from nephila.programs.crawl.stored import check_rules, read_job
from nephila.programs.option_table import IN_SERVICE
from nephila.programs.service_configs import make_configs

from nephila_control import api, job_types, requests, rule_types, system_types
from nephila_control.api import Control
from nephila_control.commands.client import call
from nephila_control.commands.jobs.command import send_seeds
from nephila_control.commands.target import ControlTarget

if TYPE_CHECKING:
    from nephila.kernel.messages import CrawlJob, Seed

DIRECTORY_OPTIONS = ("out", "resume", "refresh", "retry_failed", "fresh", "api", "api_token_file", "api_access")
"""Options of a crawl in this process, with a directory here."""
SILENT_S = 60.0
"""Without a report about the job for so long while the broker answers, no scheduler is there."""
POLL_S = 0.5
LOOK_S = 5.0
"""Time between two looks whether the broker answers, while no report comes."""
GONE_S = 180.0
"""A broker or server that has not answered for so long is given up."""
CLOCKS_S = 60.0
"""Largest difference expected between the clocks here and at the broker."""
MIN_LINE_INTERVAL_S = 1.0
"""Least time between two lines of progress."""
Refused = list[tuple[str, str]]


def crawl(request: CrawlRequest, bootstrap: str, server: str, token_file: str, *, as_json: bool, quiet: bool) -> int:
    """Submits the job and returns the exit code when the job is done. Raises `UserError` and `UsageError`."""
    target = ControlTarget(bootstrap=bootstrap, server=server, token_file=token_file)
    drop_lost_output("stdout")
    where = "--bootstrap" if target.bootstrap else "--server"
    for name in (*DIRECTORY_OPTIONS, *IN_SERVICE):
        option = name.replace("_", "-")
        if name in request.explicit and name in DIRECTORY_OPTIONS:
            raise UsageError(f"--{option} works with a directory here, not with {where}")
        if name in request.explicit:
            raise UsageError(
                f"--{option} belongs to the settings of the services (nephila service downloader --config …), not "
                f"to a crawl with {where}"
            )
    document = read_job(request.job_file)
    if not request.urls and not request.seed_file and document is None:
        raise UsageError("nothing to crawl: give a URL, a job.yaml or --seeds FILE")
    run = new_run(request, document, time.time())
    parsed, spec = spec_of_run(run)
    # The services would fetch the pages again when they are due, which a crawl that is followed to its end is not for.
    spec, _ = without_recurring_keys(spec, keep_recrawl=False)
    make_configs(run.options, request.out, run_formats(run))  # refuses what no service takes
    job = job_of(parsed.name if parsed else f"crawl-{uuid.uuid4().hex[:12]}", spec)
    job, rules = with_rules(job, run.options.get("rules", ""))
    refused: Refused = []
    seeds = singly(all_seeds(job, parsed.files if parsed else (), run.seed_file, refused))

    async def work(control: Control) -> tuple[job_types.Job, Counter[str] | None]:
        began = time.time()
        generation = await _submit(control, job, rules, seeds, refused)
        if not (quiet or as_json):
            note(f"job {job.uid}; stop watching with Ctrl-C: the crawl goes on")
        done = await follow(control, job.uid, generation, quiet=quiet or as_json)
        try:
            return done, await dead_letters(control, done.name, began - CLOCKS_S)
        except UserError as error:  # the crawl is done, and its summary is printed
            note(f"whether there are dead letters is not known: {error}; see nephila service dead list")
            return done, None

    done, letters = call(target, work)
    for what, why in refused:
        print(f"nephila: seed {sanitize(what)}: {sanitize(why)}", file=sys.stderr)
    if letters and not as_json:
        note(
            f"{dead_letters_line(letters)}; see nephila service dead list, and nephila service dead "
            "replay when the cause is repaired"
        )
    _print_summary(done, letters, as_json=as_json, quiet=quiet)
    if quiet and not as_json and not done.stored:
        note(f"no page was stored: {done.denied:,} denied, {done.failed:,} failed, {done.dropped:,} dropped")
    return 0 if done.stored else NOTHING_FETCHED


def with_rules(job: CrawlJob, directory: str) -> tuple[CrawlJob, list[dict[str, Any]]]:
    """The job with its rules of a directory, all of them if it names none, and their documents. A rule of the same name
    in the system is replaced. Raises `UsageError` for a rule that is not there."""
    if not directory:
        return job, []
    from nephila_rules.files import read_all

    names = list(check_rules(spec_of(job).rules, Path(directory), ""))
    documents = {document.name: document.content for document in read_all([Path(directory)])}
    return with_spec(job, rules=names), [documents[name] for name in names]


async def _submit(
    control: Control, job: CrawlJob, rules: list[dict[str, Any]], seeds: Iterator[Seed], refused: Refused
) -> int:
    """Sends rules, job and seeds in this order. Returns the generation of the job with all of them."""
    name = job.uid
    try:
        await control.get_job(job_types.JobName(name=name))
    except api.NotFound:
        pass
    else:
        raise UserError(f"there is a job {name!r} already; give yours another name, or delete that one")
    if rules:
        await control.apply_rules(rule_types.ApplyRules(rules=rules))
    spec = spec_of(job)
    lists = lists_of(spec)
    rest = (seed.url for seed in seeds if seed.source not in ("sitemap", "feed"))
    first = list(itertools.islice(rest, max(len(urls_of(spec)), 0 if lists else 1)))
    seeds_of_job = [*(SeedOfJob(url=url) for url in first), *(SeedOfJob(**{kind: url}) for kind, url in lists)]
    document = document_of(with_spec(job, seeds=seeds_of_job))
    more = next(rest, None)
    answer = await control.apply_job(job_types.ApplyJob(job=document, seeds_follow=more is not None))
    refused += [(refusal.url, refusal.reason) for refusal in answer.refused]
    if more is None:
        return answer.generation
    held = answer.generation if answer.held else 0
    last = await send_seeds(control, name, itertools.chain([more], rest), refused, held)
    return last.generation


async def follow(control: Control, name: str, generation: int, *, quiet: bool) -> job_types.Job:
    """Returns the job once it is done. Raises `UserError` if it is deleted, no scheduler reports, or the broker or
    server is gone."""
    progress, absence, began, look_at = _Progress(), _Absence(name), time.monotonic(), 0.0
    while True:
        problem = None
        try:
            job = (await control.get_job(job_types.JobName(name=name))).status
            finished = job.state == "idle" or (job.state in ("limit", "quota", "window") and not job.in_flight)
            if finished and job.observed_generation >= generation:
                return job
            if not quiet:
                progress.show(job)
            if job.reported_s < SILENT_S:
                problem = ""
            elif time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_S
                problem = "; ".join((await control.status(requests.Empty())).transport)
                if not problem and min(job.silent_s, time.monotonic() - began) > SILENT_S:
                    raise await _silence(control, job)
        except api.NotFound:
            raise UserError(f"job {name!r} was deleted") from None
        except NotReadyError as error:
            problem = str(error)
        if problem is not None:
            absence.note(problem)
        await asyncio.sleep(POLL_S)


class _Absence:
    """The time for which the broker or the server does not answer."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._since: float | None = None

    def note(self, problem: str) -> None:
        """Why there is no answer at present; empty: there was one. Raises `NotReadyError` after GONE_S."""
        now = time.monotonic()
        if not problem:
            self._since = None
            return
        if self._since is None:
            self._since = now
            note(f"{problem}: waiting")
        if now - self._since > GONE_S:
            raise NotReadyError(
                f"{problem}, for {GONE_S:g} s: the job {self._job} stays, and continues when the broker is back; see "
                "nephila jobs list"
            )


async def _silence(control: Control, job: job_types.Job) -> UserError:
    """The error of a job without reports. A job that no scheduler has read is withdrawn: otherwise it would begin when
    the next scheduler starts, after its user has gone."""
    line = f"no scheduler has reported on job {job.name!r} for {SILENT_S:g} s"
    if job.observed_generation:
        return UserError(f"{line}; the job stays, and continues when a scheduler runs")
    await control.delete_job(job_types.JobName(name=job.name))
    return UserError(f"{line}: the job is withdrawn; start the services and repeat the command")


class _Progress:
    """Prints a line when something has changed, at most one in MIN_LINE_INTERVAL_S."""

    def __init__(self) -> None:
        self._shown = ""
        self._next = 0.0

    def show(self, job: job_types.Job) -> None:
        line, now = f"{job.name}: {_line(job)}", time.monotonic()
        if line != self._shown and now >= self._next:
            self._shown, self._next = line, now + MIN_LINE_INTERVAL_S
            note(line)


def _line(job: job_types.Job) -> str:
    ended = f"{job.stored:,} stored, {job.denied:,} denied, {job.failed:,} failed, {job.dropped:,} dropped"
    return f"{ended}; {job.queued:,} queued, {job.in_flight:,} in flight"


async def dead_letters(control: Control, job: str, since: float) -> Counter[str]:
    """Topic → dead letters of a job since an instant (UTC), with those that name no job: they may be of this one."""
    counts: Counter[str] = Counter()
    after = ""
    while True:
        page = await control.list_dead_letters(
            system_types.ListDeadLetters(after=after, limit=system_types.MAX_DEAD_LETTERS)
        )
        counts.update(letter.topic for letter in page.dead_letters if letter.job in (job, "") and letter.at >= since)
        if not (after := page.next):
            return counts


def _print_summary(job: job_types.Job, letters: Counter[str] | None, *, as_json: bool, quiet: bool) -> None:
    spent = {"limit": "max_pages", "quota": "quota", "window": "waiting"}.get(job.state, "done")
    words = {"max_pages": "the page budget is spent", "quota": job.quota, "waiting": job.window, "done": "done"}
    if as_json:
        outcomes = {name: getattr(job, name) for name in ("stored", "denied", "failed", "dropped")}
        print_json(
            {
                "job": job.name,
                "reason": spent,
                "outcomes": outcomes,
                "left": job.queued,
                "dead_letters": letters,
                "failure": job.failure,
            }
        )
    elif not quiet:
        ended = f"failed: {sanitize(job.failure.cause)}" if job.failure is not None else words[spent]
        print(f"{job.name}: {ended}; {_line(job)}")
