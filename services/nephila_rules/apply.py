"""Rules on pages that were stored earlier: `nephila rules apply` and `nephila rules diff`. Nothing is fetched.

If a URL was fetched more than once, its newest page counts. In the files of a crawl that is the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nephila.kernel.pages.item_parts import MISSING, NOT_YET
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.ledgers.item_parts import key_of
from nephila.storage.ledgers.schema import DATABASE

from nephila_rules.compare import RuleComparison
from nephila_rules.files import read_all
from nephila_rules.item_replacement import ItemReplacement
from nephila_rules.run_rule import RuleRunner, items_of
from nephila_rules.runtime.extract import Extraction
from nephila_rules.runtime.load import RuleDocument
from nephila_rules.runtime.match import RuleSet
from nephila_rules.second_pages import SecondPageItems
from nephila_rules.stored_pages import StoredPage, stored_pages


def directory_of(path: Path) -> Path:
    """The output directory that a path of pages belongs to."""
    return path if path.is_dir() else path.parent


def apply(
    path: Path,
    rules: Iterable[Path],
    *,
    job: str,
    scripts: bool,
    functions: str = "",
    lock: AbstractContextManager[None] | None = None,
) -> tuple[RuleComparison, list[Any]]:
    """Run rules on the pages of a crawl and compare the items with those in its database.

    `lock`: the lock of the output directory; with it the items are also written to the database. Returns the comparison
    and one row per item. Raises `UserError`.
    """
    rule_set = _Rules(read_all(rules))
    directory = directory_of(path)
    has_database = (directory / DATABASE).is_file()
    if lock is not None and not has_database:
        raise UsageError(f"{directory} has no {DATABASE} to write to; without --write the items go to standard output")
    with RuleRunner(scripts=scripts, functions=functions) as runner:
        if not has_database:
            return _apply_to_files(rule_set, runner, path)
        if lock is None:
            return _apply_to_crawl(rule_set, runner, path, directory, job, write=False)
        with lock:
            return _apply_to_crawl(rule_set, runner, path, directory, job, write=True)


def extract_stored(
    directory: Path, document: RuleDocument, *, scripts: bool = False, functions: str = ""
) -> RuleComparison:
    """Run one rule on the stored pages of a directory and write the items to its database.

    A program may run there: pages are read first, then the items are written in one short transaction, and a page that
    was fetched again in between keeps its newer items. Raises `UserError`.
    """
    with RuleRunner(scripts=scripts, functions=functions) as runner:
        return _apply_to_crawl(_Rules([document]), runner, directory, directory, "", write=True)[0]


class _Replacement(NamedTuple):
    """New items of a page, and the copy that they were read from."""

    sha256: str
    rule: str
    version: int
    items: list[str]


class _Rules:
    """A set of rules and their documents."""

    def __init__(self, documents: list[RuleDocument]) -> None:
        self._documents = {page_rule.name: page_rule for document in documents for page_rule in document.page_rules}
        self._set = RuleSet(document.rule for document in documents)

    def run(self, runner: RuleRunner, page: StoredPage) -> tuple[RuleDocument, Extraction] | None:
        """The rule that matches a page and its extraction; None if no rule matches."""
        candidates = [self._documents[rule.name] for rule in self._set.for_url(page.url)]
        rule, extraction = runner.run_first(candidates, page)
        return None if rule is None else (rule, extraction)


def _apply_to_files(rules: _Rules, runner: RuleRunner, path: Path) -> tuple[RuleComparison, list[Any]]:
    """Files outside of a crawl: there are no earlier items to compare with."""
    comparison, rows = RuleComparison(), []
    for page in stored_pages(path):
        result = rules.run(runner, page)
        if result is not None:
            comparison.add(page.url, [], items_of(result[1]))
            rows += _rows(page, *result)
    return comparison, rows


def _apply_to_crawl(
    rules: _Rules, runner: RuleRunner, path: Path, directory: Path, job: str, *, write: bool
) -> tuple[RuleComparison, list[Any]]:
    newest: dict[tuple[str, str], tuple[str, list[Any], str, list[bytes]]] = {}
    rows: dict[str, list[Any]] = {}
    replacements: dict[tuple[str, str], _Replacement] = {}
    parts = SecondPageItems()
    with ItemReplacement(directory, write=False) as table:
        for page in stored_pages(path):
            result = rules.run(runner, page)
            key = key_of(page.url)
            if result is None or not key:
                continue
            document, extraction = result
            is_second_page = parts.add(document.name, page.url, extraction)
            copies = table.copies(key)
            for name in [job] if job else copies:
                if not is_second_page:
                    before = newest[name, key][1] if (name, key) in newest else table.of_page(name, key)
                    newest[name, key] = (page.url, before, document.name, extraction.items)
                data = [item.decode("utf-8", "replace") for item in extraction.items]
                replacements.pop((name, key), None)  # the last copy of a page is written last
                replacements[name, key] = _Replacement(copies.get(name, ""), document.name, document.rule.version, data)
            rows[key] = _rows(page, document, extraction)
        comparison = RuleComparison()
        for (name, _), (url, before, rule, after) in newest.items():
            complete = parts.complete(rule, after, partial(table.target, name))
            comparison.add(url, before, _with_known_reasons(before, complete))
    if write:
        with ItemReplacement(directory, write=True) as table:
            for (name, key), new in replacements.items():
                if table.copy(name, key) == new.sha256:
                    table.put(name, key, new.rule, new.version, new.items)
    return comparison, [row for of_page in rows.values() for row in of_page]


def _with_known_reasons(before: list[Any], after: list[Any]) -> list[Any]:
    """New items whose missing parts carry the reason of the old items, as the database will have it: if an item waits
    for the same second page as before, the reason why that page did not come is known."""
    for old, new in zip(before, after, strict=False):
        old_missing, new_missing = old.get(MISSING) or {}, new.get(MISSING) or {}
        for name, part in new_missing.items():
            reason = old_missing.get(name)
            if part["why"] == NOT_YET and isinstance(reason, dict) and reason.get("url") == part["url"]:
                new_missing[name] = reason
    return after


def _rows(page: StoredPage, document: RuleDocument, extraction: Extraction) -> list[Any]:
    head = {"url": page.url, "rule": document.name, "rule_version": document.rule.version}
    return [{**head, "ordinal": ordinal, "data": data} for ordinal, data in enumerate(items_of(extraction))]


def diff(old: Path, new: Path, paths: Iterable[Path], *, scripts: bool, functions: str = "") -> RuleComparison:
    """Items of two versions of rules on the same pages. Without `paths`: the pages in the directory of the new rules.
    Raises `UserError`."""
    before, after = _Rules(read_all([old])), _Rules(read_all([new]))
    comparison = RuleComparison()
    with RuleRunner(scripts=scripts, functions=functions) as runner:
        for path in list(paths) or [directory_of(new)]:
            for page in stored_pages(path):
                results = [rules.run(runner, page) for rules in (before, after)]
                if any(results):
                    comparison.add(page.url, *(items_of(result[1]) if result else [] for result in results))
    if not comparison.pages:
        raise UserError("none of the pages is for one of these rules")
    return comparison
