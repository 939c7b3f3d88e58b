"""`nephila crawl`: one crawl into one directory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from nephila.kernel.errors import UsageError

DEFAULT_OUT = Path("crawl-out")
STDIN = "-"
MAX_URL = 8192
"""Characters of a seed, as of a page's link."""
MAX_NUMBER = 10**12
"""More pages than there are; a number with a digit too many is a slip."""
LIMITS = "Limits"
WHERE = "What belongs to the crawl"
MANNERS = "Manners"
RESULT = "Result"


def crawl(
    ctx: typer.Context,
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL]...", help="Where to start.")] = None,
    seeds: Annotated[str, typer.Option(metavar="FILE", help="More URLs, one a line; - is standard input.")] = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory of the result.")] = DEFAULT_OUT,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the crawl in DIR; other options override.")
    ] = False,
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
        float, typer.Option(min=0, metavar="S", help="Seconds this run may take; 0 = no limit.", rich_help_panel=LIMITS)
    ] = 0.0,
    max_wait: Annotated[
        float,
        typer.Option(min=0, metavar="S", help="End when all that is left waits longer.", rich_help_panel=LIMITS),
    ] = 600.0,
    delay: Annotated[
        float, typer.Option(min=0, metavar="S", help="Seconds between fetches of a host.", rich_help_panel=MANNERS)
    ] = 1.0,
    concurrency: Annotated[
        int,
        typer.Option(min=1, max=10_000, metavar="N", help="Fetches at once, over all hosts.", rich_help_panel=MANNERS),
    ] = 100,
    user_agent: Annotated[str, typer.Option(metavar="S", help="User-Agent to send.", rich_help_panel=MANNERS)] = "",
    contact: Annotated[
        str, typer.Option(metavar="S", help="URL or mail address named in User-Agent.", rich_help_panel=MANNERS)
    ] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K:V",
            help="Extra request header, sent to every host and kept in run.json.",
            rich_help_panel=MANNERS,
        ),
    ] = None,
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Do not ask robots.txt.", rich_help_panel=MANNERS)
    ] = False,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Reach loopback and private addresses.", rich_help_panel=MANNERS)
    ] = False,
    host_map: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=ADDRESS", help="Resolve hosts like '*.x.test=127.0.0.1'.", rich_help_panel=MANNERS
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Of sqlite, jsonl, warc, parquet; sqlite is always on.", rich_help_panel=RESULT
        ),
    ] = "sqlite",
    links: Annotated[bool, typer.Option("--links", help="Keep the links in a table.", rich_help_panel=RESULT)] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=RESULT)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=RESULT)] = False,
) -> None:
    """Crawl from URLs into DIR/nephila.db, politely; Ctrl-C stops it, --resume goes on."""
    from nephila.cli import crawling

    given = {
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    }
    options: dict[str, Any] = {
        "scope": scope,
        "include": include or [],
        "exclude": exclude or [],
        "max_pages": max_pages,
        "max_depth": max_depth,
        "max_time": max_time,
        "max_wait": max_wait,
        "delay": delay,
        "concurrency": concurrency,
        "user_agent": user_agent,
        "contact": contact,
        "header": header or [],
        "ignore_robots": ignore_robots,
        "allow_private": allow_private,
        "host_map": host_map or [],
        "format": format,
        "links": links,
    }
    request = crawling.Request(
        urls=[seed_url(url) for url in urls or ()],
        seed_file=seeds,
        out=out,
        resume=resume,
        options=options,
        given=given,
    )
    raise typer.Exit(crawling.crawl(request, as_json=json, quiet=quiet))


def seed_url(text: str) -> str:
    """A seed as a person types it, as an absolute URL: a bare host name gets http://, which servers redirect anyway.

    Raises `UsageError` that says what is wrong with it.
    """
    from nephila.native import UrlError, parse_url

    url = text.strip()
    if len(url) > MAX_URL:
        raise UsageError(f"{url[:60]!r}… is not a URL that can be crawled: longer than {MAX_URL:,} characters")
    if url.endswith((".yaml", ".yml")) and "://" not in url:
        raise UsageError(f"{url}: job files are not supported by this version; pass URLs")
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
        return parse_url(url).href
    except UrlError as error:
        raise UsageError(f"{text!r} is not a URL that can be crawled: {error}") from None


def read_seeds(name: str, skipped: Callable[[str, str], None]) -> Iterator[str]:
    """URLs of a seed file, one a line, read lazily; empty lines and lines that begin with # mean nothing.

    A line that is no URL is passed to `skipped` with its place and reason: one bad line among a million must not cost
    the others. Raises `UsageError` when the file cannot be read or holds no URL at all.
    """
    source = "standard input" if name == STDIN else name
    good = bad = 0
    try:
        # Not sys.stdin: a thread that still waits for a line must not hold what the interpreter closes at its end.
        with open(0, "rb", closefd=False) if name == STDIN else Path(name).open("rb") as lines:
            for number, raw in enumerate(lines, 1):
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
        raise UsageError(f"cannot read --seeds {name}: {error.strerror}") from None
    if not good:
        what = f"none of its {bad} lines is a URL" if bad else "it is empty"
        raise UsageError(f"--seeds {name}: {what}; give one URL a line")
