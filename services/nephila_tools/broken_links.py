"""`nephila export --broken-links`: the broken links of a crawl, on request with those that lead out of it, with
pictures, styles and scripts of its pages, and with places within pages.

Results of external links are kept in DIR/external-links.jsonl, a line per URL: an interrupted check continues, and a
later export requests only URLs that are not in the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec
from nephila.cli.output import note
from nephila.cli.terminal import escape_controls
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.option_table import defaults
from nephila.programs.option_values import settings_of
from nephila.programs.output_directory import OutputDirectory
from nephila.storage.read.export import write_rows
from nephila.storage.read.tabular import write_csv, write_jsonl
from nephila.storage.source import Source

from nephila_tools.broken_link_rows import (
    COLUMNS,
    FRAGMENT,
    LINK,
    REQUISITE,
    BrokenLink,
    CheckedLink,
    broken_links,
    ends_of,
    stored_ends,
    unfetched_links,
)
from nephila_tools.page_references import PlaceLink, References, missing_places, references_of

FORMATS: Final = ("csv", "jsonl")
ROBOTS: Final = Reason.ROBOTS
"""Reason of a URL that robots.txt forbids: it may work."""
NO_PLACE: Final = "fragment"
"""Reason of a link to a place that its page has not."""
NAME: Final = "external-links.jsonl"
_encode, _decode = msgspec.json.encode, msgspec.json.Decoder(dict).decode


class Checks(NamedTuple):
    """What is checked beside the links of the crawl."""

    external: bool = False
    """Links that the crawl did not fetch are requested."""
    requisites: bool = False
    """Pictures, styles and scripts of pages; those that the crawl did not fetch are requested."""
    fragments: bool = False
    """Places within pages that links name."""


def export_broken_links(
    origin: str,
    source: Source,
    format: str,
    out: Path | None,
    job: str | None,
    *,
    raw_csv: bool,
    checks: tuple[bool, bool, bool] = (False, False, False),
) -> None:
    """Write the broken links. `checks`: as in `Checks`. Raises `UserError`."""
    checks = Checks(*checks)
    if format not in FORMATS:
        raise UsageError(f"--broken-links has --format {' or '.join(FORMATS)}")
    directory = Path(origin)
    if any(checks) and not directory.is_dir():
        raise UsageError(
            "checks need the directory of a crawl, not a database: it keeps their results and has the bodies"
        )
    references = _references(directory, checks)
    external = list(unfetched_links(source, job)) if checks.external else []
    ends = ends_of(source, job, (url for urls in references.requisites.values() for url in urls))
    to_request = [url for _, url, _ in external]
    to_request += [url for urls in references.requisites.values() for url in urls if url not in ends]
    checked = _checked(directory, to_request) if to_request else {}
    lost = _lost_places(directory, source, job, references)

    def rows() -> Iterator[BrokenLink]:
        yield from broken_links(source, job, needs_links=not (checks.requisites or checks.fragments))
        for page, url, anchor in external:
            yield from _if_broken(page, url, checked.get(url), anchor, LINK)
        for page, urls in references.requisites.items():
            for url in urls:
                yield from _if_broken(page, url, ends.get(url) or checked.get(url), "", REQUISITE, url not in ends)
        for link in lost:
            yield BrokenLink(link.page, link.url, 200, NO_PLACE, link.anchor, False, FRAGMENT)

    write = partial(write_csv, raw=raw_csv) if format == "csv" else write_jsonl

    def write_all(stream: IO[bytes]) -> int:
        return write(stream, COLUMNS, rows())

    if refused := sum(checked[url].reason == ROBOTS for url in set(to_request) if url in checked):
        note(f"{refused:,} URLs are not checked: robots.txt of their hosts forbids it")
    written = write_rows(out, write_all, escape_controls)
    note(f"{written:,} broken links{f' written to {out}' if out is not None else ''}")


def _if_broken(
    page: str, url: str, end: CheckedLink | None, anchor: str, kind: str, requested: bool = True
) -> Iterator[BrokenLink]:
    if end is not None and end.reason not in ("", ROBOTS):
        yield BrokenLink(page, url, end.status, end.reason, anchor, requested, kind)


def _references(directory: Path, checks: Checks) -> References:
    if not (checks.requisites or checks.fragments):
        return References()
    references = references_of(directory, requisites=checks.requisites, places=checks.fragments)
    if references.unread:
        note(f"{references.unread:,} pages are not checked: they are nested too deep")
    note(f"checking what {references.pages:,} kept pages refer to")
    return references


def _lost_places(directory: Path, source: Source, job: str | None, references: References) -> list[PlaceLink]:
    """Links to places that are not in the kept body of their page, or of the end of its redirects."""
    links = [link for of_page in references.places.values() for link in of_page]
    if not links:
        return []
    ends = stored_ends(source, job, {link.target for link in links})
    fragments: dict[str, set[str]] = {}
    for link in links:
        if end := ends.get(link.target):
            fragments.setdefault(end, set()).add(link.fragment)
    missing, read = missing_places(directory, fragments)
    if unread := sum(ends.get(link.target) not in read for link in links):
        note(f"{unread:,} links to places are not checked: the crawl has no body of their page")
    return [link for link in links if link.fragment in missing.get(ends.get(link.target, ""), ())]


def _checked(path: Path, urls: Iterable[str]) -> dict[str, CheckedLink]:
    """The result of each URL that the crawl did not fetch."""
    from nephila.downloader.fetch_page import config_of

    from nephila_tools.check_links import check_links

    directory = OutputDirectory(path)
    file = directory.path / NAME
    results = {result.url: result for result in _read(file)}
    urls = [url for url in dict.fromkeys(urls) if url not in results]
    if not urls:
        return results
    run = directory.read()
    options = {**defaults(), **(run.options if run is not None else {})}
    config = config_of(settings_of(options, "extract")["downloader"])
    note(f"requesting {len(urls):,} URLs that the crawl did not fetch, once each; results are kept in {file}")
    with file.open("ab") as stream:

        def keep(url: str, status: int, reason: str) -> None:
            results[url] = CheckedLink(url, status, reason)
            stream.write(_encode(results[url]._asdict()) + b"\n")
            stream.flush()

        check_links(urls, config, options["delay"], keep, obey_robots=not options["ignore_robots"])
    return results


def _read(file: Path) -> Iterator[CheckedLink]:
    """The lines of an earlier check; a line that was cut by a kill is requested again."""
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        for line in stream:
            with contextlib.suppress(msgspec.DecodeError, TypeError):
                yield CheckedLink(**_decode(line))
