"""Tests of rules on stored pages in their directory: `rule.yaml`, `page.html` (or .json, .warc.gz) and `items.json`.

A rule with several pages has `page*.html`, each with its `items*.json`. Second pages (`followUps`) are recognised by
their URL and have no items file. Invariants: every difference is reported with its path in the items; a rule without a
page or without expected items fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nephila.kernel.runtime.errors import UserError

from nephila_rules.files import FILE, find, read
from nephila_rules.run_rule import RuleRunner, items_of
from nephila_rules.runtime.load import RuleDocument, distinct
from nephila_rules.second_pages import SecondPageItems
from nephila_rules.stored_pages import StoredPage, pages_of

SUFFIXES: Final = (".html", ".htm", ".json", ".warc.gz", ".warc")
MAX_DIFFERENCES: Final = 10


@dataclass(slots=True)
class FixtureResult:
    """Result of a rule on one file of pages."""

    rule: str
    path: str
    items: int = 0
    differences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether all items are as expected."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "rule": self.rule,
            "place": self.path,
            "ok": self.good,
            "items": self.items,
            "differences": self.differences,
            "problems": self.problems,
        }


def run(paths: Iterable[Path], *, scripts: bool, write: bool, functions: str = "") -> list[FixtureResult]:
    """Run every rule on every page in its directory. Raises `UsageError` for a rule that cannot be read."""
    files = {path: read(path) for path in find(paths)}
    distinct(document for documents in files.values() for document in documents)
    results = []
    with RuleRunner(scripts=scripts, functions=functions) as runner:
        for path, documents in files.items():
            pages = list(_pages_beside(path))
            for document in documents:
                parts = _second_pages(runner, document, pages)
                own = [page for page in pages if len(documents) == 1 or _matches(page, document)]
                own = [page for page in own if not _has_only_second_pages(page, document)]
                if not own:
                    missing = f"no {path.parent / 'page.html'}: the rule is not tested"
                    results.append(FixtureResult(document.name, str(path), differences=[missing]))
                results += [_test(runner, document, page, parts, write) for page in own]
    return results


def _pages_beside(path: Path) -> Iterator[Path]:
    for file in sorted(path.parent.iterdir()):
        if file.name.startswith("page") and file.name.endswith(SUFFIXES) and file.is_file():
            yield file


def _matches(page: Path, document: RuleDocument) -> bool:
    return any(document.rule.matches(stored.url) for stored in pages_of(page))


def items_file(page: Path) -> Path:
    """The file of the expected items of a page: page-2.html → items-2.json."""
    stem = page.name
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    return page.with_name(f"items{stem.removeprefix('page')}.json")


def files_of(rule: str, document: RuleDocument, pages: Sequence[StoredPage]) -> Iterator[tuple[str, str]]:
    """(name, text) of the files of a rule: itself, and pages with their present items, which `run` compares."""
    yield FILE, rule
    with RuleRunner() as runner:
        for number, page in enumerate(pages, 1):
            name = f"page{f'-{number}' if number > 1 else ''}.html"
            yield name, _with_url(page)
            items = items_of(runner.run(document, page))
            yield items_file(Path(name)).name, json.dumps(items, indent=2, ensure_ascii=False) + "\n"


def _with_url(page: StoredPage) -> str:
    """The page with its URL at the start."""
    text = page.document.source
    return text if text.lstrip().startswith("<!-- url:") else f"<!-- url: {page.url} -->\n{text}"


def _second_pages(runner: RuleRunner, document: RuleDocument, pages: Iterable[Path]) -> SecondPageItems:
    """Items of the second pages of a rule that are stored in its directory."""
    parts = SecondPageItems()
    follow_ups = document.page_rules[:-1]
    for stored in (stored for page in pages if follow_ups for stored in pages_of(page)):
        for follow_up in follow_ups:
            if follow_up.rule.matches(stored.url):
                parts.add(follow_up.name, stored.url, runner.run(follow_up, stored))
    return parts


def _has_only_second_pages(page: Path, document: RuleDocument) -> bool:
    return all(
        any(follow_up.rule.matches(stored.url) for follow_up in document.rule.follow_ups) for stored in pages_of(page)
    )


def _test(runner: RuleRunner, document: RuleDocument, page: Path, parts: SecondPageItems, write: bool) -> FixtureResult:
    result = FixtureResult(document.name, str(page))
    items: list[Any] = []
    for stored in pages_of(page):
        if not stored.url:
            result.differences.append(
                "its URL is not known; begin the file with <!-- url: https://… -->, or write it to page.url"
            )
            continue
        if not document.rule.matches(stored.url):
            if page.name.endswith((".warc", ".warc.gz")):
                continue
            result.differences.append(f"the rule does not match its URL {stored.url}")
        extraction = runner.run(document, stored)
        if runner.failure:
            result.differences.append(f"the rule failed: {runner.failure}")
        items += parts.complete(document.name, extraction.items)
        result.problems += extraction.problems
    result.items = len(items)
    target = items_file(page)
    if write and not result.differences:
        target.write_text(json.dumps(items, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    elif not target.is_file():
        result.differences.append(f"no {target}; --write creates it from the present items")
    else:
        result.differences += list(differences(_expected(target), items))[:MAX_DIFFERENCES]
    return result


def _expected(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not JSON ({error})") from None


def differences(expected: Any, actual: Any, path: str = "items") -> Iterator[str]:
    """Differences of two values, each with its path."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            where = f"{path}.{key}"
            if key not in actual:
                yield f"{where}: expected {_short(expected[key])}, got nothing"
            elif key not in expected:
                yield f"{where}: unexpected {_short(actual[key])}"
            else:
                yield from differences(expected[key], actual[key], where)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path}: expected {len(expected)} values, got {len(actual)}"
        for index, (left, other) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(left, other, f"{path}[{index}]")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"{path}: expected {_short(expected)}, got {_short(actual)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"
