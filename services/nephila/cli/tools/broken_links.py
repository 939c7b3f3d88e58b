"""`nephila export --broken-links`: the broken links of a crawl, on request with those that lead out of it.

Results of external links are kept in DIR/external-links.jsonl, a line per URL: an interrupted check continues, and a
later export requests only URLs that are not in the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Final

import msgspec

from nephila.cli.output import note
from nephila.cli.terminal import escape_controls
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.options import defaults
from nephila.programs.output_directory import OutputDirectory
from nephila.storage.read.broken_links import COLUMNS, BrokenLink, CheckedLink, broken_links, unfetched_links
from nephila.storage.read.export import write_rows
from nephila.storage.read.tabular import write_csv, write_jsonl
from nephila.storage.source import Source

FORMATS: Final = ("csv", "jsonl")
ROBOTS: Final = Reason.ROBOTS
"""Reason of a URL that robots.txt forbids: it may work."""
NAME: Final = "external-links.jsonl"
_encode, _decode = msgspec.json.encode, msgspec.json.Decoder(dict).decode


def export_broken_links(
    place: str, source: Source, format: str, out: Path | None, job: str | None, *, raw_csv: bool, external: bool
) -> None:
    """Write the broken links; `external`: request links that the crawl did not fetch as well. Raises `UserError`."""
    if format not in FORMATS:
        raise UsageError(f"--broken-links has --format {' or '.join(FORMATS)}")
    checked = _checked(place, source, job) if external else {}

    def rows() -> Iterator[BrokenLink]:
        yield from broken_links(source, job)
        if external:
            for page, url, anchor in unfetched_links(source, job):
                one = checked.get(url)
                if one is not None and one.reason not in ("", ROBOTS):
                    yield BrokenLink(page, url, one.status, one.reason, anchor, True)

    write = partial(write_csv, raw=raw_csv) if format == "csv" else write_jsonl

    def write_all(stream: IO[bytes]) -> int:
        return write(stream, COLUMNS, rows())

    if refused := sum(one.reason == ROBOTS for one in checked.values()):
        note(f"{refused:,} external URLs are not checked: robots.txt of their hosts forbids it")
    found = write_rows(out, write_all, escape_controls)
    note(f"{found:,} broken links{f' written to {out}' if out is not None else ''}")


def _checked(place: str, source: Source, job: str | None) -> dict[str, CheckedLink]:
    """The result of each URL that the crawl did not fetch."""
    from nephila.downloader.check_links import check_links
    from nephila.downloader.fetch_page import config_of

    directory = OutputDirectory(Path(place))
    if not directory.path.is_dir():
        raise UsageError("--check-external keeps its results in the directory of a crawl: name it, not a database")
    file = directory.path / NAME
    found = {one.url: one for one in _read(file)}
    urls = list(dict.fromkeys(url for _, url, _ in unfetched_links(source, job) if url not in found))
    if not urls:
        return found
    run = directory.read()
    options = {**defaults(), **(run.options if run is not None else {})}
    config = config_of(
        user_agent=options["user_agent"],
        contact=options["contact"],
        allow_private=options["allow_private"],
        host_map=list(options["host_map"]),
    )
    note(f"requesting {len(urls):,} URLs that the crawl did not fetch, once each; results are kept in {file}")
    with file.open("ab") as stream:

        def keep(url: str, status: int, reason: str) -> None:
            found[url] = CheckedLink(url, status, reason)
            stream.write(_encode(found[url]._asdict()) + b"\n")
            stream.flush()

        check_links(urls, config, options["delay"], keep, obey_robots=not options["ignore_robots"])
    return found


def _read(file: Path) -> Iterator[CheckedLink]:
    """The lines of an earlier check; a line that was cut by a kill is requested again."""
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        for line in stream:
            with contextlib.suppress(msgspec.DecodeError, TypeError):
                yield CheckedLink(**_decode(line))
