"""`nephila crawl`: one crawl into one directory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nephila.cli.options import (
    DURATION,
    LIMITS,
    MANNERS,
    RESULT,
    WHERE,
    AllowPrivate,
    Api,
    ApiTokenFile,
    Concurrency,
    Contact,
    Cookies,
    Format,
    Header,
    HostMap,
    KeepRaw,
    Out,
    Rules,
    RuleScripts,
    Store,
    Target,
    TokenFile,
    UserAgent,
    Workers,
    tcp_address,
)
from nephila.kernel.runtime.errors import UsageError

DEFAULT_OUT = Path("crawl-out")
STDIN = "-"
MAX_URL = 8192
"""Characters of a seed, as of a page's link."""
MAX_LINE = 1 << 24
"""Bytes of a line of a seed file: what has no line ends is no list."""
MAX_NUMBER = 10**12
"""More pages than there are; a number with a digit too many is a slip."""


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
        bool, typer.Option("--retry-failed", help="Resume, and try again what has failed.")
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Fetch again what is due, and say what is new, changed and gone."),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew; an old result is moved to DIR/old.")] = False,
    scope: Annotated[
        str, typer.Option(metavar="host|domain|prefix|any", help="How far links are followed.", rich_help_panel=WHERE)
    ] = "host",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="RE", help="Follow only URLs that match (RE2, repeatable).", rich_help_panel=WHERE),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="RE", help="Never follow URLs that match (RE2, repeatable).", rich_help_panel=WHERE),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(metavar="bfs|dfs|best-first", help="Order of the URLs of a host.", rich_help_panel=WHERE),
    ] = "bfs",
    keywords: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="What best-first looks for (repeatable).", rich_help_panel=WHERE),
    ] = None,
    sitemap: Annotated[
        bool, typer.Option("--sitemap", help="Sitemaps of the seeds' hosts are seeds as well.", rich_help_panel=WHERE)
    ] = False,
    max_pages: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_NUMBER, metavar="N", help="Stored pages at most; 0 = no limit.", rich_help_panel=LIMITS
        ),
    ] = 0,
    max_depth: Annotated[
        int,
        typer.Option(
            min=-1,
            max=MAX_NUMBER,
            metavar="N",
            help="Links from a seed at most; -1 = no limit.",
            rich_help_panel=LIMITS,
        ),
    ] = -1,
    max_time: Annotated[
        float, typer.Option(**DURATION, help="Time this run may take; 0 = no limit.", rich_help_panel=LIMITS)
    ] = 0.0,
    max_wait: Annotated[
        float,
        typer.Option(**DURATION, help="End when all that is left waits longer.", rich_help_panel=LIMITS),
    ] = 600.0,
    host_pages: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_NUMBER, metavar="N", help="Fetches of a host at most; 0 = no limit.", rich_help_panel=LIMITS
        ),
    ] = 0,
    host_bytes: Annotated[
        int,
        typer.Option(
            min=0, max=10**18, metavar="N", help="Bytes from a host at most; 0 = no limit.", rich_help_panel=LIMITS
        ),
    ] = 0,
    host_time: Annotated[
        float,
        typer.Option(**DURATION, help="Time of fetching a host; 0 = no limit.", rich_help_panel=LIMITS),
    ] = 0.0,
    delay: Annotated[
        float, typer.Option(**DURATION, help="Time between fetches of a host.", rich_help_panel=MANNERS)
    ] = 1.0,
    concurrency: Concurrency = 100,
    workers: Workers = None,
    rules: Rules = None,
    rule_scripts: RuleScripts = False,
    user_agent: UserAgent = "",
    contact: Contact = "",
    header: Header = None,
    cookies: Cookies = "",
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Do not ask robots.txt.", rich_help_panel=MANNERS)
    ] = False,
    allow_private: AllowPrivate = False,
    host_map: HostMap = None,
    format: Format = "sqlite",
    store: Store = "",
    bootstrap: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Crawl by the services of a system.", rich_help_panel=RESULT),
    ] = "",
    server: Annotated[
        str,
        typer.Option(metavar="URL", help="Crawl by the program or system behind this API.", rich_help_panel=RESULT),
    ] = "",
    token_file: TokenFile = "",
    api: Api = "",
    api_token_file: ApiTokenFile = "",
    follow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Links beside anchors and frames: canonical, alternate, feed, next, form, script, route, json.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    main_text: Annotated[
        str,
        typer.Option(metavar="density|trafilatura|all|none", help="The text of a page.", rich_help_panel=RESULT),
    ] = "density",
    links: Annotated[bool, typer.Option("--links", help="Keep the links in a table.", rich_help_panel=RESULT)] = False,
    keep_raw: KeepRaw = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=RESULT)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=RESULT)] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Print each URL as it ends.", rich_help_panel=RESULT)
    ] = False,
) -> None:
    """Crawl from URLs into DIR/nephila.db, politely; Ctrl-C stops it, --resume goes on."""
    from nephila.cli.crawl import run

    given = {
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    }
    options: dict[str, Any] = {
        "scope": scope,
        "include": include or [],
        "exclude": exclude or [],
        "strategy": strategy,
        "keywords": keywords or [],
        "sitemap": sitemap,
        "host_pages": host_pages,
        "host_bytes": host_bytes,
        "host_time": host_time,
        "max_pages": max_pages,
        "max_depth": max_depth,
        "max_time": max_time,
        "max_wait": max_wait,
        "delay": delay,
        "concurrency": concurrency,
        "workers": workers,
        "user_agent": user_agent,
        "contact": contact,
        "header": header or [],
        "cookies": cookies,
        "ignore_robots": ignore_robots,
        "allow_private": allow_private,
        "host_map": host_map or [],
        "format": format,
        "links": links,
        "follow": follow or [],
        "main_text": main_text,
        "keep_raw": keep_raw,
        "rules": str(rules.absolute()) if rules else "",
        "rule_scripts": rule_scripts,
    }
    urls = urls or []
    job_file = next((url for url in urls if is_job_file(url)), "")
    if job_file and len(urls) > 1:
        raise UsageError(f"{job_file} is a job; its URLs stand in it (spec.seeds), or come with --seeds FILE")
    request = run.Request(
        urls=[seed_url(url) for url in urls if url != job_file],
        job_file=job_file,
        seed_file=seeds,
        out=out,
        resume=resume or refresh or retry_failed,
        fresh=fresh,
        refresh=refresh,
        retry_failed=retry_failed,
        options=options,
        given=given,
        store=store,
    )
    if quiet and verbose:
        raise UsageError("--quiet prints nothing and -v prints each URL; leave one of them out")
    if bootstrap or server:
        from nephila.cli.crawl import remote

        target = Target(bootstrap=bootstrap, server=server, token_file=token_file).check()
        raise typer.Exit(remote.crawl(request, target, as_json=json, quiet=quiet))
    request.tcp = tcp_address(api, api_token_file)
    raise typer.Exit(run.crawl(request, as_json=json, quiet=quiet, verbose=verbose))


def is_job_file(text: str) -> bool:
    """Whether an argument names a job's file rather than a URL."""
    return text.endswith((".yaml", ".yml")) and "://" not in text


def seed_url(text: str) -> str:
    """A seed as a person types it, as an absolute URL: a bare host name gets http://, which servers redirect anyway.

    Raises `UsageError` that says what is wrong with it.
    """
    from nephila.kernel.fragment_routes import parse_routed
    from nephila.native import UrlError

    url = text.strip()
    if len(url) > MAX_URL:
        raise UsageError(f"{url[:60]!r}… is not a URL that can be crawled: longer than {MAX_URL:,} characters")
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url):
        if os.path.isfile(url):  # unlike Path.is_file, at its ease with text that can be no file name
            raise UsageError(
                f"{url} is a file: read it with `nephila extract {url}`, or take its URLs with --seeds {url}"
            )
        if not re.match(r"(localhost|\[.*\]|[^/]*[.:][^/]*)(/|$)", url):
            name = url if re.fullmatch(r"[\w-]+", url) else "example"
            raise UsageError(f"{text!r} is not a URL; did you mean http://{name}/ or http://{name}.com/?")
        url = "http://" + url
    try:
        return parse_routed(url).href
    except UrlError as error:
        raise UsageError(f"{text!r} is not a URL that can be crawled: {error}") from None


def read_seeds(name: str, skipped: Callable[[str, str], None], option: str = "--seeds ") -> Iterator[str]:
    """URLs of a seed file, one a line, read lazily; empty lines and lines that begin with # mean nothing.

    A line that is no URL is passed to `skipped` with its place and reason: one bad line among a million must not cost
    the others. Raises `UsageError` when the file cannot be read or holds no URL at all; `option` says who named it.
    """
    source = "standard input" if name == STDIN else name
    good = bad = 0
    try:
        # Not sys.stdin: a thread that still waits for a line must not hold what the interpreter closes at its end.
        with open(0, "rb", closefd=False) if name == STDIN else Path(name).open("rb") as lines:
            for number, raw in enumerate(iter(partial(lines.readline, MAX_LINE), b""), 1):
                if len(raw) == MAX_LINE:
                    raise UsageError(f"{option}{name}: line {number} is longer than 16 MB; give one URL a line")
                line = raw.strip().removeprefix(b"\xef\xbb\xbf")
                if not line or line.startswith(b"#"):
                    continue
                try:
                    yield seed_url(line.decode())
                    good += 1
                except (UsageError, UnicodeDecodeError) as error:
                    bad += 1
                    reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
                    skipped(f"{source}, line {number}", reason)
    except OSError as error:
        raise UsageError(f"cannot read {option}{name}: {error.strerror}") from None
    if not good:
        what = f"none of its {bad} lines is a URL" if bad else "it is empty"
        raise UsageError(f"{option}{name}: {what}; give one URL a line")
