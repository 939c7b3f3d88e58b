"""`nephila jobs …`: the jobs of a program in a directory, of a system over Kafka, or of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from nephila.cli.options import AlwaysJson, Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError

from nephila_control import job_types
from nephila_control.api import Control
from nephila_control.commands.client import call
from nephila_control.commands.jobs.table import print_table
from nephila_control.commands.target import ControlTarget, with_target

app = typer.Typer(add_completion=False, help="The jobs of a running program or system.")

BATCH_CHARS = 1 << 20
"""Characters of the seeds of one request, far below the longest body."""
COLUMNS = ("name", "state", "generation", "queued", "in_flight", "stored", "denied", "failed", "dropped", "rate")
START_S = 5.0
"""`nephila up &` on the line before: it may not have made its directory yet."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="A job's name.")]


@app.command()
@with_target()
def apply(
    files: Annotated[
        list[str],
        typer.Option("--file", "-f", metavar="FILE|DIR", help="Job files, or folders of them; - is standard input."),
    ],
    *,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the jobs that are not in these files.")] = False,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Make the jobs what the files say: new ones are created, others changed while they run."""
    from nephila.programs.job_files import read_jobs

    documents = read_jobs(files)
    _check_sources(documents)

    async def work(control: Control) -> None:
        for document in documents:
            refused: list[tuple[str, str]] = []
            answer = await _apply(control, document, refused)
            if json:
                print_json(answer)
            else:
                typer.echo(f"{answer.name}: {answer.verdict} (generation {answer.generation})")
            if answer.links_lost:
                note(
                    f"{answer.name}: {answer.links_lost:,} links that the earlier scope refused were not held; they "
                    "are found again only when their pages are fetched again (spec.recrawl, or another job name)"
                )
            _note_refused(refused, answer.refused_count - len(answer.refused))
        if prune:
            names = {document.name for document in documents}
            for name in [
                job.name for job in (await control.list_jobs(job_types.ListJobs())).jobs if job.name not in names
            ]:
                _print_change(await control.delete_job(job_types.JobName(name=name)), as_json=json)

    call(target, work, START_S)


@app.command("list")
@with_target()
def list_jobs(
    owner: Annotated[str, typer.Option(metavar="NAME", help="Only jobs of this owner (spec.owner).")] = "",
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Show how all jobs stand."""
    jobs = call(target, lambda control: control.list_jobs(job_types.ListJobs(owner=owner))).jobs
    if json:
        print_json(jobs)
    elif not jobs:
        note("there is no job; see nephila jobs apply")
    else:
        print_table([COLUMNS, *([_cell(getattr(job, name)) for name in COLUMNS] for job in jobs)])
        for job in jobs:
            if job.held_by:
                note(f"{job.name}: {job.held_by}")
            for fault in job.degraded:
                note(f"{job.name}: Degraded since {_instant(fault.since)}: {fault.cause}; {fault.remedy}")
            if (failure := job.failure) is not None:
                note(f"{job.name}: Failed since {_instant(failure.since)}: {failure.cause}; {failure.remedy}")


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


@app.command()
@with_target()
def get(name: Name, target: ControlTarget, json: AlwaysJson = True) -> None:
    """Show one job and its document, in JSON."""
    print_json(call(target, lambda control: control.get_job(job_types.JobName(name=name))))


@app.command()
@with_target()
def pause(name: Name, target: ControlTarget, json: Json = False) -> None:
    """Dispatch nothing more of a job; what is in flight still ends."""
    _change(target, lambda control: control.pause_job(job_types.JobName(name=name)), as_json=json)


@app.command()
@with_target()
def resume(name: Name, target: ControlTarget, json: Json = False) -> None:
    """Continue a paused job."""
    _change(target, lambda control: control.resume_job(job_types.JobName(name=name)), as_json=json)


@app.command()
@with_target()
def delete(name: Name, target: ControlTarget, json: Json = False) -> None:
    """Forget a job and its URLs; the rows of the table pages stay."""
    _change(target, lambda control: control.delete_job(job_types.JobName(name=name)), as_json=json)


@app.command()
@with_target()
def seeds(
    name: Name,
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="Seeds to add.")] = None,
    file: Annotated[
        str, typer.Option("--file", "-f", metavar="FILE", help="More, one a line; - is standard input.")
    ] = "",
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Add seeds to a job; a URL that is known already is not queued again."""
    from nephila.kernel.seeds import read_seeds, seed_url

    if not urls and not file:
        raise UsageError("name seeds, or a file of them with --file")
    refused: list[tuple[str, str]] = []

    def urls_and_file() -> Iterator[str]:
        yield from (seed_url(url) for url in urls or ())
        if file:
            yield from read_seeds(file, lambda origin, reason: refused.append((origin, reason)), "--file ")

    async def work(control: Control) -> job_types.SeedsAdded:
        return await send_seeds(control, name, urls_and_file(), refused)

    answer = call(target, work)
    if json:
        print_json(answer)
    else:
        typer.echo(f"{answer.name}: seeds added (generation {answer.generation})")
    _note_refused(refused, 0)


@app.command()
@with_target()
def quarantines(name: Name, target: ControlTarget, json: Json = False) -> None:
    """Show the parts of hosts that a job no longer fetches from, and why."""
    rows = call(target, lambda control: control.list_quarantines(job_types.JobName(name=name))).quarantines
    if json:
        print_json(rows)
        return
    if not rows:
        note(f"no part of a host is in quarantine for {name}")
    for row in rows:
        state = "released" if row.released else "closed"
        typer.echo(sanitize(f"{row.host} {row.pattern}  {state}, {row.fetches:,} fetches: {row.reason}", 2000))


@app.command()
@with_target()
def exclude(
    name: Name,
    expressions: Annotated[list[str], typer.Argument(metavar="RE...", help="RE2, searched in the full URL.")],
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Add them to the job; without it they are only tried.")
    ] = False,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Try exclusions on the queue of a job: how many URLs they remove, and some of them."""
    request = job_types.ExcludeUrls(name=name, exclude=expressions)
    if apply:
        _print_change(call(target, lambda control: control.exclude(request)), as_json=json)
        return
    answer = call(target, lambda control: control.try_exclusion(request))
    if json:
        print_json(answer)
        return
    least = "" if answer.complete else "at least "
    typer.echo(f"{answer.name}: removes {least}{answer.removed:,} of {answer.queued:,} queued URLs")
    if not answer.complete:
        note(f"{answer.looked_at:,} queued URLs were looked at")
    for url in answer.examples:
        typer.echo(f"  {sanitize(url, 300)}")
    note("nothing is changed; add the exclusion with --apply")


@app.command()
@with_target()
def release(
    name: Name,
    host: Annotated[str, typer.Argument(metavar="HOST", help="A host key, as quarantines lists it.")],
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A part of it, as quarantines lists it.")],
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Fetch from a quarantined part of a host again."""
    request = job_types.ReleaseQuarantine(name=name, host=host, pattern=pattern)
    answer = call(target, lambda control: control.release_quarantine(request))
    print_json(answer) if json else typer.echo(f"{name}: {sanitize(host)}{sanitize(pattern)} released")


def _change(
    target: ControlTarget, work: Callable[[Control], Awaitable[job_types.JobChanged]], *, as_json: bool
) -> None:
    _print_change(call(target, work), as_json=as_json)


def _print_change(answer: job_types.JobChanged | job_types.JobApplied, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"{answer.name}: {answer.verdict} (generation {answer.generation})")


def _check_sources(documents: Iterable[Any]) -> None:
    """A file of seeds that cannot be read is an error before any job is changed."""
    for document in documents:
        for name in document.files:
            try:
                Path(name).open("rb").close()
            except OSError as error:
                raise UsageError(f"{document.location}: cannot read the seeds {name}: {error.strerror}") from None


async def _apply(control: Control, document: Any, refused: list[tuple[str, str]]) -> job_types.JobApplied:
    """Applies the job, then sends the seeds of its files in batches; each batch is taken before the next is read."""
    from nephila.programs.job_files import read_sources

    files = bool(document.files)
    answer = await control.apply_job(job_types.ApplyJob(job=document.content, seeds_follow=files))
    refused += [(refusal.url, refusal.reason) for refusal in answer.refused]
    if files:
        held = answer.generation if answer.held else 0
        last = await send_seeds(control, document.name, read_sources(document, refused), refused, held)
        answer.generation = last.generation
        answer.held = last.held
        answer.refused_count += last.refused_count
    return answer


async def send_seeds(
    control: Control, name: str, urls: Iterator[str], refused: list[tuple[str, str]], held: int = 0
) -> job_types.SeedsAdded:
    """Adds seeds in batches of bounded number and size. `held` is the generation of a job that waits for them. Returns
    the last answer; its `refused_count` counts refusals that are not in `refused`."""
    more = 0
    for batch in batches(urls):
        answer = await control.add_seeds(job_types.AddSeeds(name=name, urls=batch))
        refused += [(refusal.url, refusal.reason) for refusal in answer.refused]
        more += answer.refused_count - len(answer.refused)
    answer = await control.add_seeds(job_types.AddSeeds(name=name, last=True, held_generation=held))
    answer.refused_count = more
    return answer


def batches(urls: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for url in urls:
        batch.append(url)
        size += len(url)
        if len(batch) >= job_types.SEED_BATCH or size >= BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _note_refused(refused: list[tuple[str, str]], more: int) -> None:
    for origin, reason in refused[:5]:
        note(f"seed left out: {sanitize(origin, 100)}: {sanitize(reason, 150)}")
    if len(refused) + more > 5:
        note(f"… and {len(refused) + more - 5:,} more seeds left out")


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
