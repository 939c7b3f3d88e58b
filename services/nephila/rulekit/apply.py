"""Rules on pages that were stored earlier: `nephila rules apply` and `nephila rules diff`. Nothing is fetched.

Pages come from the WARC files of a crawl, from the bodies it kept (--keep-raw), or from any files of pages. A URL that
was fetched more than once counts by its newest page, which stands last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import typer

from nephila.cli.output import note
from nephila.cli.rules.command import items_of
from nephila.cli.terminal import sanitize
from nephila.kernel.item_parts import MISSING, NOT_YET
from nephila.kernel.rawfile import PREFIX, SUFFIX, is_raw
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.parser.rules.extract import Extraction
from nephila.parser.rules.load import RuleDocument
from nephila.parser.rules.match import RuleSet
from nephila.programs.output_directory import Directory
from nephila.rulekit.compare import Comparison
from nephila.rulekit.files import read_all
from nephila.rulekit.run_rule import RuleRunner
from nephila.rulekit.second_pages import SecondPageItems
from nephila.rulekit.stored_pages import StoredPage, pages_of
from nephila.storage.ledgers.item_parts import key_of
from nephila.storage.ledgers.item_replacement import ItemReplacement
from nephila.storage.ledgers.schema import DATABASE

SUFFIXES: Final = (".warc.gz", ".warc", ".html", ".htm", ".json")


def pages(place: Path) -> Iterator[StoredPage]:
    """The stored pages of a file or directory, in order. Raises `UsageError` when there are none."""
    files = [place]
    if place.is_dir():
        found = sorted(path for path in place.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file())
        warcs = [path for path in found if path.name.endswith(SUFFIXES[:2])]
        bodies = sorted(path for path in place.rglob(f"{PREFIX}*{SUFFIX}") if is_raw(path))
        of_a_crawl = (place / "run.json").is_file()  # its JSON files are no pages
        files = warcs or bodies
        if not files and of_a_crawl:
            raise UsageError(f"the crawl in {place} kept no pages; crawl with --keep-raw or --format sqlite,warc")
        files = files or [path for path in found if not path.name.startswith("items")]
        if not files:
            raise UsageError(
                f"{place} holds no stored pages: bodies (crawl --keep-raw), WARC files (--format warc), HTML or JSON"
            )
    for path in files:
        yield from pages_of(path)


def holds_bodies(place: Path) -> bool:
    """Whether the directory of a crawl has bodies of pages."""
    raw = any(is_raw(path) for path in place.glob(f"{PREFIX}*{SUFFIX}"))
    return raw or any(path.name.endswith(SUFFIXES[:2]) for path in place.iterdir())


def apply(place: Path, rules: Iterable[Path], *, write: bool, job: str, scripts: bool) -> tuple[Comparison, list[Any]]:
    """Run rules on the pages of a crawl and hold what comes out against its table of items; `write` puts it there.

    Returns the comparison, and one row per item for those who want them. Raises `UserError`.
    """
    rule_set = _Rules(read_all(rules))
    directory = place if place.is_dir() else place.parent
    stored = (directory / DATABASE).is_file()
    if write and not stored:
        raise UsageError(f"{directory} has no {DATABASE} to write to; without --write the items go to standard output")
    with RuleRunner(scripts=scripts) as runner:
        if not stored:
            return _without(rule_set, runner, place)
        if not write:
            return _with(rule_set, runner, place, directory, job, write=False)
        with Directory(directory).locked():
            return _with(rule_set, runner, place, directory, job, write=True)


class _Rules:
    def __init__(self, documents: list[RuleDocument]) -> None:
        self.documents = {reader.name: reader for document in documents for reader in document.page_rules}
        self._set = RuleSet(document.rule for document in documents)

    def run(self, runner: RuleRunner, page: StoredPage) -> tuple[RuleDocument, Extraction] | None:
        """The rule for a page and what it gives; None when there is none."""
        candidates = [self.documents[rule.name] for rule in self._set.for_url(page.url)]
        rule, found = runner.run_first(candidates, page)
        return None if rule is None else (rule, found)


def _without(rules: _Rules, runner: RuleRunner, place: Path) -> tuple[Comparison, list[Any]]:
    """Files that no crawl has made: there is nothing to compare with."""
    comparison, rows = Comparison(), []
    for page in pages(place):
        done = rules.run(runner, page)
        if done is not None:
            comparison.add(page.url, [], items_of(done[1]))
            rows += _rows(page, *done)
    return comparison, rows


def _with(
    rules: _Rules, runner: RuleRunner, place: Path, directory: Path, job: str, *, write: bool
) -> tuple[Comparison, list[Any]]:
    newest: dict[tuple[str, str], tuple[str, list[Any], str, list[bytes]]] = {}
    rows: dict[str, list[Any]] = {}
    parts = SecondPageItems()
    with ItemReplacement(directory, write=write) as table:
        for page in pages(place):
            done = rules.run(runner, page)
            key = key_of(page.url)
            if done is None or not key:
                continue
            document, found = done
            second = parts.add(document.name, page.url, found)
            for name in [job] if job else table.jobs(key):
                if not second:
                    before = newest[name, key][1] if (name, key) in newest else table.of_page(name, key)
                    newest[name, key] = (page.url, before, document.name, found.items)
                if write:
                    data = [item.decode("utf-8", "replace") for item in found.items]
                    table.put(name, key, document.name, document.rule.version, data)
            rows[key] = _rows(page, document, found)
        comparison = Comparison()
        for (name, _), (url, before, rule, after) in newest.items():
            complete = parts.complete(rule, after, partial(table.target, name))
            comparison.add(url, before, _with_reasons(before, complete))
    return comparison, [row for of_page in rows.values() for row in of_page]


def _with_reasons(before: list[Any], after: list[Any]) -> list[Any]:
    """Items that wait for what they waited for before say why it did not come, as they will in the table."""
    for old, new in zip(before, after, strict=False):
        said, waits = old.get(MISSING) or {}, new.get(MISSING) or {}
        for name, wait in waits.items():
            known = said.get(name)
            if wait["why"] == NOT_YET and isinstance(known, dict) and known.get("url") == wait["url"]:
                waits[name] = known
    return after


def _rows(page: StoredPage, document: RuleDocument, found: Extraction) -> list[Any]:
    head = {"url": page.url, "rule": document.name, "rule_version": document.rule.version}
    return [{**head, "ordinal": ordinal, "data": data} for ordinal, data in enumerate(items_of(found))]


def diff(old: Path, new: Path, places: Iterable[Path], *, scripts: bool) -> Comparison:
    """What two versions of rules make of the same pages: those that are named, or those beside the new rules."""
    before, after = _Rules(read_all([old])), _Rules(read_all([new]))
    files = list(places) or [new if new.is_dir() else new.parent]
    comparison = Comparison()
    with RuleRunner(scripts=scripts) as runner:
        for place in files:
            for page in pages(place):
                done = [rules.run(runner, page) for rules in (before, after)]
                if any(done):
                    comparison.add(page.url, *(items_of(one[1]) if one else [] for one in done))
    if not comparison.pages:
        raise UserError("none of the pages is for one of these rules")
    return comparison


def show(comparison: Comparison) -> None:
    """A line per field, and examples of what has changed."""
    note(
        f"{comparison.pages:,} pages, {comparison.equal:,} with the same items;"
        f" {comparison.items_before:,} items before, {comparison.items_after:,} after"
    )
    for name, change in comparison.fields.items():
        moved = ", ".join(
            f"{count:,} {what}"
            for what, count in (("gained", change.gained), ("lost", change.lost), ("changed", change.changed))
            if count
        )
        typer.echo(
            sanitize(f"{name}: {change.before:,} before, {change.after:,} after{': ' + moved if moved else ''}", 300)
        )
        for url, old, new in change.examples:
            typer.echo("    " + sanitize(f"{url}: {_told(old)} -> {_told(new)}", 400))


def _told(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:99] + "…"
