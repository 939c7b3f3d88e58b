"""`nephila crawl`: one crawl into one directory, or by the services of a system."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer
from msgspec.structs import replace

from nephila.cli.options import DEFAULT_OUT, Api, ApiAccess, ApiTokenFile, Out, values, with_options
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension
from nephila.programs.options import ELSEWHERE, OUTPUT, CommandOptions

Urls = Annotated[
    list[str] | None, typer.Argument(metavar="[URL... | job.yaml]", help="Where to start, or a job as a file.")
]
Seeds = Annotated[str, typer.Option(metavar="FILE", help="More URLs, one a line; - is standard input.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the crawl in DIR; other options override.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Resume, and fetch failed URLs once more.")]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Fetch pages that are due once more, and list new, changed and gone pages.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start a new crawl; an old result is moved to DIR/old.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=OUTPUT)]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print only errors and, with --refresh, changes.", rich_help_panel=OUTPUT)
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print each URL when it ends.", rich_help_panel=OUTPUT)]
Bootstrap = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT|FILE",
        help="Let the services over this Kafka broker, or with this settings file, do the crawl.",
        rich_help_panel=ELSEWHERE,
    ),
]
Server = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Let the program or system behind this API do the crawl.", rich_help_panel=ELSEWHERE
    ),
]
TokenFile = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        envvar="NEPHILA_TOKEN_FILE",
        help="File with the token of --server.",
        rich_help_panel=ELSEWHERE,
    ),
]


@with_options("crawl")
def crawl(
    ctx: typer.Context,
    urls: Urls = None,
    seeds: Seeds = "",
    out: Out = DEFAULT_OUT,
    resume: Resume = False,
    retry_failed: RetryFailed = False,
    refresh: Refresh = False,
    fresh: Fresh = False,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    bootstrap: Bootstrap = "",
    server: Server = "",
    token_file: TokenFile = "",
    api: Api = "",
    api_token_file: ApiTokenFile = "",
    api_access: ApiAccess = "",
    **options: Unpack[CommandOptions],
) -> None:
    """Crawl from URLs into DIR/nephila.db, politely. Ctrl-C stops the crawl, --resume continues it."""
    from nephila.cli.crawl import run
    from nephila.programs.crawl.request import request_of

    modes = {"resume": resume, "fresh": fresh, "refresh": refresh, "retry_failed": retry_failed}
    request = request_of(urls or [], out, values(options), _explicit(ctx), seed_file=seeds, **modes)
    if quiet and verbose:
        raise UsageError("--quiet prints nothing and -v prints each URL; leave one of them out")
    if bootstrap or server:
        crawl_there = extension("remote-crawl")
        raise typer.Exit(crawl_there(request, bootstrap, server, token_file, as_json=json, quiet=quiet))
    if api or api_token_file or api_access:
        request = replace(request, tcp=extension("control-address")(api, api_token_file, api_access))
    raise typer.Exit(run.crawl(request, as_json=json, quiet=quiet, verbose=verbose))


def _explicit(ctx: typer.Context) -> set[str]:
    """Names of the options that the command line or a variable of the environment has."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
