"""`nephila search`: pages of a crawl by words of title, URL and text, also where no program runs."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.output_directory import find_rows
from nephila_harvest.commands.changes import changes_target
from nephila_stores.search.contract import RANKED

from nephila_control import screen_types
from nephila_control.commands.client import call
from nephila_control.commands.target import ControlTarget, with_target

STEP = 50_000
"""Fetches between two lines about the index."""


@with_target(changes_target)
def search(
    target: ControlTarget,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORDS",
            help='Words that have to be in a page, "phrases", -without, prefix*, title:, url:, host:, since:, until:.',
        ),
    ] = None,
    job: Annotated[str, typer.Option(metavar="NAME", help="Only pages of this job.")] = "",
    skip: Annotated[int, typer.Option(metavar="N", min=0, max=200, help="Leave the first N out.")] = 0,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most so many.")] = 20,
    index: Annotated[
        bool, typer.Option("--index", help="Make the index of DIR again; without words that alone.")
    ] = False,
    json: Json = False,
) -> None:
    """Search the pages of a crawl; the first search makes the index, later ones read on."""
    text = " ".join(words or [])
    if index and not target.is_directory:
        raise UsageError("--index makes the index of a directory or of a database: leave --server and --bootstrap out")
    if index:
        _make(target, fresh=True)
    if not text.strip():
        if index:
            return
        raise UsageError("there is no word to look for: nephila search WORDS")
    try:
        request = msgspec.convert({"query": text, "job": job, "skip": skip, "limit": limit}, screen_types.SearchPages)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
    results = _search(target, request)
    if json:
        print_json(results)
        return
    _print(results, skip)


def _search(target: ControlTarget, request: screen_types.SearchPages) -> screen_types.SearchResults:
    if not target.is_directory:
        return call(target, lambda control: control.search_pages(request))
    from nephila_stores.search.query import parse

    from nephila_control.stored_rows import search_results

    parse(request.query)
    source, only = find_rows(target.rows or str(target.out))
    _make(target, fresh=False)
    request.job = request.job or only or ""
    return search_results(source, request, [request.job] if request.job else None)


def _make(target: ControlTarget, *, fresh: bool) -> None:
    from nephila_stores.search.search import make_index

    source, _ = find_rows(target.rows or str(target.out))
    noted = 0
    for left in make_index(source, fresh=fresh):
        if left and (not noted or noted - left >= STEP):
            noted = left
            note(f"making the index: {left:,} fetches left")


def _print(results: screen_types.SearchResults, skip: int) -> None:
    for hit in results.hits:
        typer.echo(f"{_line(hit.title) or '(no title)'}\n  {sanitize(hit.url, 2000)}  {hit.fetched_at[:10]}")
        typer.echo(f"  {_line(hit.passage)}\n")
    count = f"{results.total:,} page{'s' if results.total != 1 else ''}"
    if results.total >= 1000 or results.looked_at:
        count += " or more"
    note(
        f"{count}"
        + (f"; further ones: --skip {skip + len(results.hits)}" if results.total > skip + len(results.hits) else "")
    )
    if results.looked_at:
        note(f"only the newest {results.looked_at:,} pages were searched; rarer words reach further")
    if results.total > RANKED:
        note(f"the newest {RANKED} and those with the words in the title are put in order")
    if results.behind:
        note(f"{results.behind:,} fetches are not in the index yet; it is read on")


def _line(fragments: list[screen_types.Fragment]) -> str:
    """Hits are bold if the terminal can show it."""
    parts = []
    for fragment in fragments:
        text = sanitize(f"|{fragment.text}|", 2000)[1:-1]  # its blanks at both ends stay
        parts.append(typer.style(text, bold=True) if fragment.hit else text)
    return "".join(parts)
