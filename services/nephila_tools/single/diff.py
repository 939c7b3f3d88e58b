"""`nephila diff`: the last two versions of a page's main text, line by line."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer
from nephila.cli.options import DEFAULT_OUT
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize, sanitize_lines
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.seeds import seed_url
from nephila.programs.output_directory import find_rows
from nephila.storage.source import display_name

MAX_LINES = 4000
"""Lines that differ, of one version, up to which they are aligned: the time grows with their product."""
CONTEXT = 2
_COLOURS = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}


def diff(
    url: Annotated[str, typer.Argument(help="The page.")],
    out: Annotated[str, typer.Option(metavar="DIR|URL", help="Directory of the crawl, or a database's URL.")] = str(
        DEFAULT_OUT
    ),
    job: Annotated[str, typer.Option(metavar="NAME", help="Only of this job.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print both versions as JSON.")] = False,
) -> None:
    """Show the changes in the text of a page between its last two versions."""
    from nephila.kernel.fragment_routes import parse_routed
    from nephila.native import parse_url
    from nephila.storage.ledgers.versions import versions

    source, only = find_rows(out)
    href = seed_url(url)
    keys = dict.fromkeys((parse_routed(href).fingerprint, parse_url(href).fingerprint))
    page = next(filter(None, (versions(source, job or only, key) for key in keys)), None)
    if page is None:
        raise UserError(f"{display_name(source)} holds no page of {sanitize(href)}; see nephila explain")
    now, before = page.now, page.before
    if json:
        print_json({"url": page.url, "job": page.job, "before": before and before._asdict(), "now": now._asdict()})
        return
    if before is None:
        note(f"{sanitize(page.url)} has one version, last fetched {now.fetched_at}; it has not changed since")
        return
    heads = (f"--- {page.url}  {_times(before)}", f"+++ {page.url}  {_times(now)}")
    old, new = [_text(version.title, version.text) for version in (before, now)]
    for line in (*heads, *difference(old, new)):
        text = sanitize(line, max(len(line), 1))
        colour = _COLOURS.get(text[:1])
        typer.echo(typer.style(text, fg=colour) if colour else text)


def _times(version: object) -> str:
    changed, fetched = getattr(version, "changed_at", ""), getattr(version, "fetched_at", "")
    return f"from {changed or '?'} to {fetched}"


def _text(title: str, text: str) -> list[str]:
    return ([f"title: {sanitize(title, 1000)}"] if title else []) + list(sanitize_lines(text))


def difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """A unified diff without its heads. Long texts are not aligned: lines that only one of them has, in order. At most
    O(lines + MAX_LINES²)."""
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    ends = zip(reversed(old[first:]), reversed(new[first:]), strict=False)
    last = next((i for i, (a, b) in enumerate(ends) if a != b), min(len(old), len(new)) - first)
    if max(len(old), len(new)) - first - last <= MAX_LINES:
        start, end = max(first - CONTEXT, 0), max(last - CONTEXT, 0)
        hunks = difflib.unified_diff(old[start : len(old) - end], new[start : len(new) - end], n=CONTEXT, lineterm="")
        yield from list(hunks)[2:]
        return
    yield f"@@ {len(old):,} and {len(new):,} lines: those that only one version has @@"
    yield from (f"-{line}" for line in _only(old, new))
    yield from (f"+{line}" for line in _only(new, old))


def _only(lines: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    rest = Counter(others)
    for line in lines:
        if rest[line] > 0:
            rest[line] -= 1
        else:
            yield line
