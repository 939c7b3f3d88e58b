"""`nephila forget`: URLs that have ended are crawled again when they are found again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.output_directory import OutputDirectory

from nephila_control import job_types
from nephila_control.api import Control
from nephila_control.commands.client import call
from nephila_control.commands.target import ControlTarget, with_target
from nephila_control.http.client import at_directory


@with_target()
def forget(
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="URLs, in any spelling.")] = None,
    match: Annotated[
        str, typer.Option(metavar="RE", help="Also all URLs with a row that match (RE2, searched in the full URL).")
    ] = "",
    job: Annotated[str, typer.Option(metavar="NAME", help="Of this job; needed where there are several.")] = "",
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Forget URLs of a job: they are crawled again when a page, a seed or a sitemap names them again. Rows stay."""
    from nephila.kernel.seeds import seed_url

    hrefs = [seed_url(url) for url in urls or []]

    def work(control: Control) -> Awaitable[job_types.UrlsForgotten]:
        return _forget(control, hrefs, match, job)

    answer = _where_nothing_runs(target, work) if _is_stopped(target) else call(target, work)
    if json:
        print_json(answer)
        return
    typer.echo(f"{answer.name}: {answer.forgotten:,} forgotten")
    if answer.open:
        note(f"{answer.open:,} are queued or in flight and stay")
    if answer.unknown:
        note(f"{answer.unknown:,} are not known to the job; see nephila explain URL")


def _is_stopped(target: ControlTarget) -> bool:
    return target.is_directory and at_directory(target.out) is None and not OutputDirectory(target.out).holder()


def _where_nothing_runs(
    target: ControlTarget, work: Callable[[Control], Awaitable[job_types.UrlsForgotten]]
) -> job_types.UrlsForgotten:
    from nephila_control.stopped_frontier import stopped_frontier

    async def main() -> job_types.UrlsForgotten:
        async with stopped_frontier(OutputDirectory(target.out)) as control:
            return await work(control)

    return asyncio.run(main())


async def _forget(control: Control, urls: list[str], match: str, job: str) -> job_types.UrlsForgotten:
    if not job:
        names = [entry.name for entry in (await control.list_jobs(job_types.ListJobs())).jobs]
        if len(names) != 1:
            raise UsageError(f"name one of the jobs by --job: {', '.join(names[:10])}" if names else "there is no job")
        job = names[0]
    total = job_types.UrlsForgotten(name=job, forgotten=0)
    for start in range(0, max(len(urls), 1), job_types.SEED_BATCH):
        part = await control.forget(
            job_types.ForgetUrls(
                name=job, urls=urls[start : start + job_types.SEED_BATCH], match="" if start else match
            )
        )
        total.forgotten += part.forgotten
        total.open += part.open
        total.unknown += part.unknown
    return total
