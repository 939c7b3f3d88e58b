"""A rule on one page, shown field by field: what each gives and, where one is empty, what nearly matched."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from nephila.cli.output import note
from nephila.cli.rules.command import items_of
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError, UserError, suggest
from nephila.parser.rules.extract import Extraction
from nephila.parser.rules.load import RuleDocument
from nephila.parser.rules.match import RuleSet
from nephila.rulekit.files import read_all
from nephila.rulekit.run_rule import RuleRunner
from nephila.rulekit.stored_pages import StoredPage, pages_of

MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """One attempt."""

    rule: RuleDocument
    page: StoredPage
    found: Extraction
    hints: dict[str, list[str]]
    """Path of an empty field → what nearly matched."""

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        links = self.found.links
        return {
            "url": self.page.url,
            "rule": self.rule.name,
            "version": self.rule.rule.version,
            "items": items_of(self.found),
            "problems": self.found.problems,
            "empty": {path: self.hints.get(path, []) for path in self.found.missing},
            "links": None if links is None else [link.href for link in links],
            "pagination": [link.href for link in self.found.next_pages],
            "second_pages": [link.href for link in self.found.second_pages],
        }


def page_of(target: str, url: str, *, allow_private: bool, host_map: list[str]) -> StoredPage:
    """The page of a file, or fetched. Raises `UserError`."""
    if "://" not in target:
        pages = pages_of(Path(target), url)
        page = next(pages, None)
        if page is None:
            raise UserError(f"{target} holds no page")
        return page
    from nephila.downloader.fetch_page import config_of, fetch_page

    fetched = fetch_page(target, config_of(allow_private=allow_private, host_map=host_map))
    body = bytes(fetched.body)
    return StoredPage(fetched.url, fetched.content_type, fetched.charset, body, fetched.url, fetched.fetched_at)


def attempt(page: StoredPage, places: Iterable[Path], name: str, *, scripts: bool) -> RuleTrial:
    """The rule for a page, or the one that is named, on it. Raises `UsageError`."""
    rules = read_all(places)
    candidates = _candidates(page, rules, name)
    with RuleRunner(scripts=scripts) as runner:
        if name or not page.url:
            rule, found = candidates[0], runner.run(candidates[0], page)
        else:
            chosen, found = runner.run_first(candidates, page)
            if chosen is None:
                raise UsageError(f"none of {len(rules)} rules is for {page.url}; --rule NAME tries one all the same")
            rule = chosen
        return RuleTrial(rule, page, found, runner.hints(rule, page, found.missing))


def _candidates(page: StoredPage, rules: list[RuleDocument], name: str) -> list[RuleDocument]:
    """The rule that is named, or those for the URL of the page in the order in which they count."""
    documents = {reader.name: reader for document in rules for reader in document.page_rules}
    if name:
        if name not in documents:
            raise UsageError(f"there is no rule {name!r}; {suggest(name, documents)}")
        return [documents[name]]
    if len(rules) == 1 and not page.url:
        return rules[:1]
    if not page.url:
        raise UsageError(f"the URL of {page.place} is not known; say --url, or which --rule")
    return [documents[rule.name] for rule in RuleSet(one.rule for one in rules).for_url(page.url)]


def show(trial: RuleTrial) -> None:
    """For a person."""
    rule = trial.rule.rule
    items = items_of(trial.found)
    note(f"{trial.page.url or trial.page.place}: rule {rule.name}, version {rule.version}, {len(items)} items")
    for number, item in enumerate(items[:MAX_SHOWN]):
        if number:
            typer.echo("")
        for key, value in item.items():
            typer.echo(sanitize(f"{key}: {_shown(value)}", 2000))
    if len(items) > MAX_SHOWN:
        note(f"… and {len(items) - MAX_SHOWN:,} more items (--json shows all)")
    for path in trial.found.missing:
        note(f"{path} is empty" + ("" if trial.hints.get(path) else ": nothing like it on the page"))
        for hint in trial.hints.get(path, []):
            sys.stderr.write(f"             {sanitize(hint, 300)}\n")
    for problem in trial.found.problems:
        note(sanitize(problem, 500))
    for what, links in (
        ("link", trial.found.links),
        ("next page", trial.found.next_pages),
        ("second page", trial.found.second_pages),
    ):
        for link in (links or [])[:MAX_SHOWN]:
            note(f"{what}: {sanitize(link.href, 300)}")
        if links is not None and len(links) > MAX_SHOWN:
            note(f"… and {len(links) - MAX_SHOWN:,} more")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
