"""`nephila crawl`: one crawl into one directory, or by the services of a system."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from nephila.cli.options import DEFAULT_OUT, Api, ApiAccess, ApiTokenFile, Out, values, with_options
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension
from nephila.programs.options import ELSEWHERE, OUTPUT, CommandOptions


@with_options("crawl")
def crawl(
    ctx: typer.Context,
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL... | job.yaml]", help="Where to start, or a job as a file.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="FILE", help="More URLs, one a line; - is standard input.")] = "",
    out: Out = DEFAULT_OUT,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the crawl in DIR; other options override.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Resume, and fetch failed URLs once more.")
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Fetch pages that are due once more, and list new, changed and gone pages."),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start a new crawl; an old result is moved to DIR/old.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=OUTPUT)] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print only errors and, with --refresh, changes.", rich_help_panel=OUTPUT),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Print each URL when it ends.", rich_help_panel=OUTPUT)
    ] = False,
    bootstrap: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT|FILE",
            help="Let the services over this Kafka broker, or with this settings file, do the crawl.",
            rich_help_panel=ELSEWHERE,
        ),
    ] = "",
    server: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Let the program or system behind this API do the crawl.", rich_help_panel=ELSEWHERE
        ),
    ] = "",
    token_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            envvar="NEPHILA_TOKEN_FILE",
            help="File with the token of --server.",
            rich_help_panel=ELSEWHERE,
        ),
    ] = "",
    api: Api = "",
    api_token_file: ApiTokenFile = "",
    api_access: ApiAccess = "",
    **options: Unpack[CommandOptions],
) -> None:
    """Crawl from URLs into DIR/nephila.db, politely. Ctrl-C stops the crawl, --resume continues it."""
    from nephila.cli.crawl import run
    from nephila.programs.crawl.run import request_of

    given = {
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    }
    request = request_of(
        urls or [],
        out,
        values(options),
        given,
        seed_file=seeds,
        resume=resume,
        fresh=fresh,
        refresh=refresh,
        retry_failed=retry_failed,
    )
    if quiet and verbose:
        raise UsageError("--quiet prints nothing and -v prints each URL; leave one of them out")
    if bootstrap or server:
        crawl_there = extension("remote-crawl")
        raise typer.Exit(crawl_there(request, bootstrap, server, token_file, as_json=json, quiet=quiet))
    if api or api_token_file or api_access:
        request.tcp = extension("control-address")(api, api_token_file, api_access)
    raise typer.Exit(run.crawl(request, as_json=json, quiet=quiet, verbose=verbose))
