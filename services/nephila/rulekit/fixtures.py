"""Rules tested on the page beside them: `rule.yaml`, `page.html` (or .json, .warc.gz) and `items.json`.

A rule with several pages has `page*.html`, each with its `items*.json`; a second page, which completes items of the
others, is one of them by its URL and has no items of its own. Invariant: every difference is told with its
place in the items; a rule without a page or without items has failed, since nothing says that it works.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import typer

from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError
from nephila.parser.rules.load import RuleDocument, distinct
from nephila.rulekit.files import find, read
from nephila.rulekit.run_rule import RuleRunner
from nephila.rulekit.second_pages import SecondPageItems
from nephila.rulekit.stored_pages import pages_of

SUFFIXES: Final = (".html", ".htm", ".json", ".warc.gz", ".warc")
MAX_SHOWN: Final = 10


@dataclass(slots=True)
class FixtureResult:
    """How a rule did on one file of pages."""

    rule: str
    place: str
    items: int = 0
    differences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Everything was as expected."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "rule": self.rule,
            "place": self.place,
            "ok": self.good,
            "items": self.items,
            "differences": self.differences,
            "problems": self.problems,
        }


def run(places: Iterable[Path], *, scripts: bool, write: bool) -> list[FixtureResult]:
    """Every rule on every page beside it. Raises `UsageError` for a rule that cannot be read."""
    files = {path: read(path) for path in find(places)}
    distinct(document for documents in files.values() for document in documents)
    results = []
    with RuleRunner(scripts=scripts) as runner:
        for path, documents in files.items():
            pages = list(_pages_beside(path))
            for document in documents:
                parts = _second_pages(runner, document, pages)
                mine = [page for page in pages if len(documents) == 1 or _is_for(page, document)]
                mine = [page for page in mine if not _only_second(page, document)]
                if not mine:
                    told = f"no {path.parent / 'page.html'} beside it: nothing says that the rule works"
                    results.append(FixtureResult(document.name, str(path), differences=[told]))
                results += [_test(runner, document, page, parts, write) for page in mine]
    return results


def _pages_beside(path: Path) -> Iterator[Path]:
    for found in sorted(path.parent.iterdir()):
        if found.name.startswith("page") and found.name.endswith(SUFFIXES) and found.is_file():
            yield found


def _is_for(page: Path, document: RuleDocument) -> bool:
    return any(document.rule.matches(stored.url) for stored in pages_of(page))


def items_file(page: Path) -> Path:
    """Where the expected items of a page stand: page-2.html → items-2.json."""
    stem = page.name
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    return page.with_name(f"items{stem.removeprefix('page')}.json")


def _second_pages(runner: RuleRunner, document: RuleDocument, pages: Iterable[Path]) -> SecondPageItems:
    """What the second pages of a rule give that are beside it."""
    parts = SecondPageItems()
    readers = document.page_rules[:-1]
    for stored in (stored for page in pages if readers for stored in pages_of(page)):
        for reader in readers:
            if reader.rule.matches(stored.url):
                parts.add(reader.name, stored.url, runner.run(reader, stored))
    return parts


def _only_second(page: Path, document: RuleDocument) -> bool:
    return all(any(one.rule.matches(stored.url) for one in document.rule.follow_ups) for stored in pages_of(page))


def _test(runner: RuleRunner, document: RuleDocument, page: Path, parts: SecondPageItems, write: bool) -> FixtureResult:
    result = FixtureResult(document.name, str(page))
    items: list[Any] = []
    for stored in pages_of(page):
        if not stored.url:
            result.differences.append(
                "its URL is not known; begin it with <!-- url: https://… -->, or say it in page.url"
            )
            continue
        if not document.rule.matches(stored.url):
            if page.name.endswith((".warc", ".warc.gz")):
                continue
            result.differences.append(f"the rule does not match its URL {stored.url}")
        found = runner.run(document, stored)
        if runner.broken:
            result.differences.append(f"the rule was given up on it: {runner.broken}")
        items += parts.complete(document.name, found.items)
        result.problems += found.problems
    result.items = len(items)
    target = items_file(page)
    if write and not result.differences:
        target.write_text(json.dumps(items, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    elif not target.is_file():
        result.differences.append(f"no {target}; --write makes it of what comes out now")
    else:
        result.differences += list(differences(_expected(target), items))[:MAX_SHOWN]
    return result


def _expected(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not JSON ({error})") from None


def differences(expected: Any, found: Any, path: str = "items") -> Iterator[str]:
    """Where two values differ, with the place."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            where = f"{path}.{key}"
            if key not in found:
                yield f"{where}: expected {_told(expected[key])}, is not there"
            elif key not in expected:
                yield f"{where}: is {_told(found[key])}, nothing was expected"
            else:
                yield from differences(expected[key], found[key], where)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path}: expected {len(expected)} values, are {len(found)}"
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        yield f"{path}: expected {_told(expected)}, is {_told(found)}"


def _told(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"


def show(result: FixtureResult) -> None:
    """A line per rule, and one per difference."""
    typer.echo(
        sanitize(f"{'ok  ' if result.good else 'FAIL'} {result.rule} ({result.place}): {result.items} items", 500)
    )
    for text in result.differences:
        typer.echo(f"     {sanitize(text, 500)}")
    for text in [] if result.good else result.problems[:MAX_SHOWN]:
        typer.echo(f"     note: {sanitize(text, 500)}")
