"""`nephila robots check`: the decisions of a robots.txt about URLs, by the crawler's own reader. A URL alone is judged
by the robots.txt of its host, which is fetched.

A path is judged as it is written. A full URL is judged as it is written and as it would be fetched (dots resolved,
backslashes turned): it is allowed only where both are.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Unpack

import msgspec
import typer
from nephila.cli.options import Json, values, with_options
from nephila.cli.output import print_json, print_pairs
from nephila.kernel.net.robots import Robots, RobotsVerdict
from nephila.kernel.net.robots import parse as parse_robots
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.options import CommandOptions

from nephila_tools.single.batch import answer_batch, line_decoder, scalar_text

app = typer.Typer(add_completion=False, help="What a robots.txt allows.")

DEFAULT_AGENT = "nephila"
MAX_FILE_BYTES = 500 * 1024
"""What the crawler reads of a robots.txt (RFC 9309, 2.5)."""
_COMPATIBLE = re.compile(r"^Mozilla/\S+ \(compatible; ([A-Za-z_-]+)", re.IGNORECASE)
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")


class RobotsLine(msgspec.Struct):
    """One line of a batch: `robots` (text) or `file` (path), whichever is given."""

    agent: str = DEFAULT_AGENT
    urls: list[str] = []
    robots: str | None = None
    file: str | None = None


@app.callback()
def robots() -> None:
    """What a robots.txt allows."""


@app.command()
@with_options("robots")
def check(
    target: Annotated[
        str, typer.Argument(metavar="[URL]", help="URL to judge by the robots.txt of its host, which is fetched.")
    ] = "",
    file: Annotated[str, typer.Option(metavar="FILE", help="A robots.txt; - is standard input.")] = "",
    agent: Annotated[str, typer.Option(help="Product token or full User-Agent.")] = DEFAULT_AGENT,
    url: Annotated[str, typer.Option(help="URL or path to judge.")] = "",
    batch: Annotated[
        bool, typer.Option("--batch", help='Read JSON lines {"robots" or "file", "agent", "urls"} from standard input.')
    ] = False,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; exit 0 allowed, 1 denied.")] = False,
    **options: Unpack[CommandOptions],
) -> None:
    """Print whether a URL may be fetched and which line decides.

    The exit code is 0 for either verdict, as both are answers; with --quiet it is the verdict: 0 allowed, 1 denied.
    """
    if batch:
        if file or url or target:
            raise UsageError("give a URL, or --file and --url, or --batch, not both")
        decode = line_decoder(RobotsLine)
        answer_batch(lambda line: answer(decode(line)))
        return
    token = product_token(scalar_text(agent))
    address = ""
    if target and not file and not url:
        url = target
        rules, verdict, address = _of_host(target, token, values(options))
    elif file and url and not target:
        rules = parse_robots(_read(file))
        verdict = decide(rules, token, scalar_text(url))
    else:
        raise UsageError("give a URL, or --file FILE and --url URL, or --batch to read JSON lines")
    if quiet:
        raise typer.Exit(0 if verdict.allowed else 1)
    delay = rules.crawl_delay_s(token)
    if json:
        more = {"robots": address} if address else {}
        print_json({"url": scalar_text(url), **verdict._asdict(), "crawl_delay_s": delay, **more})
        return
    print_pairs(
        [
            ("verdict", "allowed" if verdict.allowed else "denied"),
            ("because", _because(verdict, token, address)),
            ("crawl delay", None if delay is None else f"{delay:g} s"),
            ("robots.txt", address or None),
        ]
    )


def _because(verdict: RobotsVerdict, token: str, address: str) -> str:
    if verdict.line:
        return f"line {verdict.line}: {verdict.rule}"
    return f"no rule for {token} matches" if not address or "(rules" in address else "there is no robots.txt to go by"


def _of_host(url: str, token: str, options: dict[str, Any]) -> tuple[Robots, RobotsVerdict, str]:
    """The robots.txt of a URL's host, its verdict, and its address with the status. Raises `UserError`."""
    from nephila.downloader.fetch_page import config_of, fetch_robots
    from nephila.kernel.seeds import seed_url
    from nephila.programs.option_values import settings_of

    url = seed_url(url)
    settings = settings_of(options, "robots")["downloader"]
    address, body, means = fetch_robots(url, config_of(settings))
    rules = parse_robots(body)
    verdict = decide(rules, token, url)
    if not means.startswith("rules"):
        verdict = verdict._replace(allowed=means.startswith("allow"))
    return rules, verdict, f"{address} ({means})"


def answer(question: RobotsLine) -> dict[str, Any]:
    """The verdicts on one line of a batch."""
    if question.robots is not None:
        rules = _parsed(question.robots.encode("utf-8", "replace"))
    elif question.file is not None:
        rules = _parsed(_bytes(Path(question.file)))
    else:
        raise ValueError('"robots" (text) or "file" (path) is missing')
    token = product_token(question.agent)
    allow: list[str] = []
    deny: list[str] = []
    for url in question.urls:
        (allow if all(rules.allowed(token, path) for path in paths_of(url)) else deny).append(url)
    return {"allow": allow, "deny": deny, "crawl_delay_s": rules.crawl_delay_s(token)}


@lru_cache(maxsize=8)
def _parsed(body: bytes) -> Robots:
    """Lines of a batch often ask the same file for one agent after the other."""
    return parse_robots(body)


def decide(rules: Robots, token: str, url: str) -> RobotsVerdict:
    """The verdict on a URL or path: that of the path as written and of the path as fetched; a denial wins."""
    verdicts = [rules.decide(token, path) for path in paths_of(url)]
    return next((verdict for verdict in verdicts if not verdict.allowed), verdicts[-1])


def paths_of(url: str) -> list[str]:
    """The paths to judge: that of the URL as written, and that which a request for it would have."""
    if not _SCHEME.match(url):
        return [url or "/"]
    from nephila.native import UrlError, parse_url

    written = _path_as_written(url)
    try:
        fetched = parse_url(url).path_query
    except UrlError:
        return [written]
    return [written] if fetched == written else [written, fetched]


def _path_as_written(url: str) -> str:
    """Path and query of a URL, untouched."""
    rest = url.split("://", 1)[1].partition("#")[0]
    cut = re.search(r"[/?;]", rest)
    return rest[cut.start() :] if cut else "/"


def product_token(agent: str) -> str:
    """The product token of a User-Agent: FooBot for "Mozilla/5.0 (compatible; FooBot/1.0)"."""
    match = _COMPATIBLE.match(agent)
    return match[1] if match else agent


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read(MAX_FILE_BYTES) if name == "-" else _bytes(Path(name))
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES)
