"""`nephila schemes …`: keyword schemes of a running program or system, and their plan before they are applied."""

from __future__ import annotations

import contextlib
import time
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json, print_pairs
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import find_rows
from nephila_control import api, job_types, rule_types
from nephila_control.api import Control
from nephila_control.commands.client import POLL_S, call
from nephila_control.commands.jobs.command import START_S
from nephila_control.commands.jobs.table import print_table
from nephila_control.commands.target import ControlTarget, with_target

if TYPE_CHECKING:
    from nephila.kernel.documents.scheme_schema import Schemes

    from nephila_harvest.schemes.applying import AppliedScheme
    from nephila_harvest.schemes.evaluation import EvaluationReport
    from nephila_harvest.schemes.planner import NavigationSeed
    from nephila_harvest.schemes.progress import SchemeProgress

app = typer.Typer(add_completion=False, help="Keyword schemes: searches on platforms, their pages and records.")

BATCH = 500
"""Searches of one request, far below the longest body."""
Files = Annotated[
    list[str],
    typer.Option("--file", "-f", metavar="FILE|DIR", help="CrawlScheme and Platform documents, and one CrawlJob."),
]
JobName = Annotated[str, typer.Option("--job", metavar="NAME", help="The job; by default that of the files.")]
Rows = Annotated[str, typer.Option("--rows", metavar="DIR|URL", help="Where the rows are; by default --out.")]


@app.command()
@with_target()
def apply(
    files: Files,
    job: JobName = "",
    rows: Rows = "",
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="S", min=0, help="Longest wait for the evaluation of the stored pages, in seconds."
        ),
    ] = 60.0,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the new searches; change nothing.")] = False,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Make the schemes what the files say. Only searches that are new are queued; stored pages are evaluated again
    without a request."""
    from nephila_harvest.schemes import applying, documents

    scheme_documents = documents.load(documents.read_files(files))
    name = applying.job_name(scheme_documents, job)

    async def work(control: Control) -> applying.AppliedScheme | applying.StateChange:
        here = JobsOfControl(control)
        if dry_run:
            return applying.change_of(scheme_documents, await here.job(name), name)
        return await applying.apply(here, scheme_documents, name, BATCH)

    origin = rows or (str(target.out) if target.is_directory else "")
    earlier = _report(origin, name) if origin else None
    answer = call(target, work, START_S)
    if isinstance(answer, applying.StateChange):
        for seed in answer.seeds():
            _print_seed(seed, as_json=json)
        return
    stored = _evaluated(origin, answer, wait)
    if json:
        print_json(
            {
                "job": answer.job,
                "schemes": answer.schemes,
                "searches": answer.searches,
                "refused": answer.refused,
                "stored": stored,
            }
        )
    else:
        typer.echo(f"{answer.job}: {', '.join(answer.schemes) or 'platforms'}: {answer.searches:,} new searches")
        _print_stored(stored, unchanged=stored == earlier)
    for url, reason in answer.refused[:5]:
        note(f"search left out: {sanitize(url, 200)}: {sanitize(reason, 200)}")


@app.command("list")
@with_target()
def list_schemes(job: JobName = "", rows: Rows = "", *, target: ControlTarget, json: Json = False) -> None:
    """Show the state of all schemes, and the counts of each platform and group."""
    from nephila_harvest.schemes.applying import JOB

    detail, state = _state(target, job or JOB)
    origin = rows or str(target.out)
    progress = _progress(origin, detail, state)
    stored = _report(origin, detail.status.name)
    states = {scheme.name: str(progress.state(scheme.name)) for scheme in state.schemes}
    if json:
        print_json({"job": job or JOB, "schemes": states, "counts": progress.counts, "stored": stored})
        return
    head = ("scheme", "platform", "group", "state", "searches", "ended", "failed", "records")
    cells = [(row.scheme, row.platform, row.group, states[row.scheme], *_numbers(row)) for row in progress.counts]
    print_table([head, *cells], left=4)
    _print_stored(stored)


@app.command()
def plan(
    files: Files,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=0, help="Print the first searches too.")] = 0,
    *,
    json: Json = False,
) -> None:
    """Show the searches that files would make, without a program: counts, and the first ones in their order."""
    from nephila_harvest.schemes import documents, planner

    scheme_documents = documents.load(documents.read_files(files))
    documents.check(scheme_documents)
    state = planner.merged(None, scheme_documents.named_schemes, scheme_documents.named_platforms)
    counts = planner.count(state)
    if json:
        print_json({"searches": sum(counts.values()), "counts": [[*key, number] for key, number in counts.items()]})
    else:
        rows = [(*key, f"{number:,}") for key, number in counts.items()]
        print_table([("scheme", "platform", "group", "searches"), *rows], left=3)
    for seed in islice(planner.plan(state), seeds):
        _print_seed(seed, as_json=json)


@app.command()
@with_target()
def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    job: JobName = "",
    rows: Rows = "",
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Explain a page: its search, its keywords, and the schemes that it matches or why it does not."""
    from nephila.kernel.seeds import seed_url
    from nephila.native import parse_url
    from nephila.storage.ledgers.read_connection import open_for_reading

    from nephila_harvest.schemes import explanation
    from nephila_harvest.schemes.applying import JOB

    _, state = _state(target, job or JOB)
    with open_for_reading(find_rows(rows or str(target.out))[0]) as connection:
        page = explanation.explain(connection, job or JOB, state, parse_url(seed_url(url)).fingerprint)
    if page is None:
        raise UserError(f"the job {job or JOB} has no row of {sanitize(url, 200)}; see nephila explain")
    if json:
        print_json(page)
        return
    search = " / ".join(filter(None, (page.scheme, page.group, page.platform)))
    print_pairs(
        [
            ("url", page.url),
            ("outcome", page.outcome),
            ("stage", page.stage or None),
            ("found by", search or None),
            ("page", page.page or None),
            ("keywords", ", ".join(page.keywords) or None),
            *((owner.scheme, ", ".join(owner.groups) or owner.reason) for owner in page.owners),
        ]
    )


@app.command()
@with_target()
def delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a scheme.")],
    job: JobName = "",
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Delete a scheme, and the job with its last scheme. The rows and the other schemes stay."""
    from nephila_harvest.schemes import applying

    job = job or applying.JOB
    left = call(target, lambda control: applying.delete(JobsOfControl(control), name, job), START_S)
    if json:
        print_json({"job": job, "deleted": name, "schemes": left})
    elif left:
        typer.echo(f"{job}: {name} deleted; schemes that stay: {', '.join(left)}")
    else:
        typer.echo(f"{job}: {name} deleted, and the job, which has no other scheme")


class JobsOfControl:
    """The control API as applying needs it."""

    def __init__(self, control: Control) -> None:
        self._control = control

    async def job(self, name: str) -> dict[str, Any] | None:
        try:
            return (await self._control.get_job(job_types.JobName(name=name))).document
        except api.NotFound:
            return None

    async def apply_rules(self, rules: list[dict[str, Any]]) -> None:
        await self._control.apply_rules(rule_types.ApplyRules(rules=rules))

    async def apply_job(self, document: dict[str, Any]) -> None:
        await self._control.apply_job(job_types.ApplyJob(job=document))

    async def delete_job(self, name: str) -> None:
        await self._control.delete_job(job_types.JobName(name=name))

    async def add_seeds(self, name: str, seeds: list[NavigationSeed], *, last: bool) -> list[tuple[str, str]]:
        from nephila_harvest.schemes.applying import context_of

        contexts = [job_types.SeedContext(**context_of(seed)) for seed in seeds]
        request = job_types.AddSeeds(name=name, urls=[seed.url for seed in seeds], contexts=contexts, last=last)
        answer = await self._control.add_seeds(request)
        return [(refusal.url, refusal.reason) for refusal in answer.refused]


def _state(target: ControlTarget, job: str) -> tuple[job_types.JobDetail, Schemes]:
    """The job and its schemes. Raises `UserError`."""
    from nephila_harvest.schemes.applying import state_of

    detail = call(target, lambda control: control.get_job(job_types.JobName(name=job)))
    state = state_of(detail.document)
    if state is None:
        raise UserError(f"the job {job!r} has no schemes; see nephila schemes apply")
    return detail, state


def _report(origin: str, job: str) -> EvaluationReport | None:
    from nephila.storage.ledgers.read_connection import open_for_reading

    from nephila_harvest.schemes import stored_pages

    # A new crawl has no database before its first row.
    with contextlib.suppress(UserError), open_for_reading(find_rows(origin)[0]) as connection:
        return stored_pages.report(connection, job)
    return None


def _evaluated(origin: str, applied: AppliedScheme, wait_s: float) -> EvaluationReport | None:
    """The report of the evaluation that an apply caused, once it is complete, or as it stands after `wait_s`. None
    where the rows are not known or do not exist."""
    from nephila_harvest.schemes import stored_pages

    if not origin:
        note("storage evaluates the stored pages; nephila schemes list --rows DIR|URL shows what it added and removed")
        return None
    end = time.monotonic() + wait_s
    while True:
        report = _report(origin, applied.job)
        if report is not None and stored_pages.is_of(report, applied.state, applied.rules) and report.ended:
            return report
        if time.monotonic() >= end:
            note(f"the evaluation of the stored pages continues after {wait_s:g} s; nephila schemes list shows its end")
            return report
        time.sleep(POLL_S)


def _print_stored(stored: EvaluationReport | None, *, unchanged: bool = False) -> None:
    from nephila_harvest.schemes.stored_pages import REMEDIES

    if stored is None:
        return
    counts = f"{stored.added:,} records added, {stored.removed:,} removed, {stored.changed:,} changed"
    if unchanged:
        typer.echo(
            f"stored pages: {stored.pages:,}, none to evaluate again; the evaluation of {stored.since}: {counts}"
        )
    else:
        state = "" if stored.ended else "; the evaluation continues"
        typer.echo(f"stored pages: {stored.evaluated:,} of {stored.pages:,} evaluated: {counts}{state}")
    for doubt, number in stored.doubts.items():
        note(f"{number:,} stored pages: {REMEDIES[doubt]}")


def _progress(origin: str, detail: job_types.JobDetail, state: Schemes) -> SchemeProgress:
    from nephila.storage.ledgers.read_connection import open_for_reading

    from nephila_harvest.schemes import progress

    idle = detail.status.state == "idle" and not state.incomplete
    with open_for_reading(find_rows(origin)[0]) as rows:
        return progress.read(rows, detail.status.name, state, idle=idle)


def _numbers(counts: Any) -> list[str]:
    return [f"{number:,}" for number in (counts.searches, counts.ended, counts.failed, counts.records)]


def _print_seed(seed: NavigationSeed, *, as_json: bool) -> None:
    if as_json:
        print_json(seed._asdict())
    else:
        typer.echo(sanitize(f"{seed.platform}  {seed.scheme}/{seed.group}  {seed.url}", 2000))
