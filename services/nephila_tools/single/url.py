"""`nephila url parse|key`: the identity of a URL (href, host key, canonical form, fingerprint, partition), no request.

`parse` gives the WHATWG href of any URL, with its fragment; only an http(s) URL has the rest, since nothing else is
crawled, and no fragment in its canonical form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer
from nephila.cli.options import Json
from nephila.cli.output import print_json, print_pairs
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_tools.single.batch import answer_batch, line_decoder, scalar_text

app = typer.Typer(add_completion=False, help="The identity of a URL: how it is written, keyed and placed.")

Url = Annotated[str | None, typer.Argument(metavar="URL", help="Absolute, or relative with --base.")]
Base = Annotated[str | None, typer.Option(help="URL that a relative one is resolved against.")]
Batch = Annotated[bool, typer.Option("--batch", help='Read JSON lines {"url", "base"} from standard input.')]
Partitions = Annotated[int, typer.Option(help="Partitions of the system, a power of two.")]


class UrlLine(msgspec.Struct, gc=False):
    """One line of a batch."""

    url: str
    base: str | None = None


Describe = Callable[[str, str | None], dict[str, Any]]


def describer(partitions: int) -> Describe:
    """A function from (url, base) to its description; that raises ValueError when the URL does not parse."""
    from nephila.native import UrlError, parse_any, parse_url, partition_of

    if partitions < 1 or partitions & (partitions - 1) or partitions > 1 << 32:
        raise UsageError(f"--partitions must be a power of two, not {partitions}")

    def describe(url: str, base: str | None) -> dict[str, Any]:
        href = parse_any(url, base)
        if not href.startswith(("http:", "https:")):
            return {"href": href}
        try:
            parts = parse_url(href)
        except UrlError:
            return {"href": href}
        fingerprint = parts.fingerprint
        return {
            "href": href,
            "host_key": parts.host_key,
            "canonical": parts.canonical,
            "url_key": fingerprint.hex(),
            "partition": partition_of(fingerprint, partitions),
        }

    return describe


@app.command()
def parse(
    url: Url = None, base: Base = None, batch: Batch = False, json: Json = False, partitions: Partitions = 64
) -> None:
    """Print how a URL is understood: href, host key, canonical URL, url_key and partition."""
    describe = describer(partitions)
    if batch:
        _batch(url, base, describe)
        return
    facts = _describe_one(describe, url, base, json)
    if json:
        print_json(facts)
    else:
        print_pairs((key.replace("_", " "), value) for key, value in facts.items())


@app.command()
def key(url: Url = None, base: Base = None, batch: Batch = False, json: Json = False) -> None:
    """Print the url_key of an http(s) URL: 32 hex digits, the same for all spellings of it."""
    describe = describer(1)

    def only_key(url: str, base: str | None) -> dict[str, Any]:
        facts = describe(url, base)
        if "url_key" not in facts:
            raise ValueError("only http and https URLs have a url_key")
        return {"url_key": facts["url_key"]}

    if batch:
        _batch(url, base, only_key)
        return
    facts = _describe_one(only_key, url, base, json)
    if json:
        print_json(facts)
    else:
        typer.echo(facts["url_key"])


def _batch(url: str | None, base: str | None, describe: Describe) -> None:
    if url is not None:
        raise UsageError("give a URL or --batch, not both")
    decode = line_decoder(UrlLine)

    def answer(line: bytes) -> dict[str, Any]:
        question = decode(line)
        return describe(question.url, base if question.base is None else question.base)

    answer_batch(answer)


def _describe_one(describe: Describe, url: str | None, base: str | None, json: bool) -> dict[str, Any]:
    """The description of the URL on the command line; one that does not parse ends the command with exit code 1."""
    if url is None:
        raise UsageError("which URL? give one, or --batch to read JSON lines")
    try:
        return describe(scalar_text(url), base)
    except ValueError as error:
        if json:
            print_json({"error": str(error)})
            raise typer.Exit(1) from None
        raise UserError(f"{url}: {error}") from None
