"""One rule on one page: its items, and near matches for its empty fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephila.kernel.runtime.errors import UsageError, UserError, suggest

from nephila_rules.files import read_all
from nephila_rules.run_rule import RuleRunner, items_of
from nephila_rules.runtime.extract import Extraction
from nephila_rules.runtime.load import RuleDocument
from nephila_rules.runtime.match import RuleSet
from nephila_rules.stored_pages import StoredPage, pages_of
from nephila_rules.time_limit import TimeLimit

if TYPE_CHECKING:
    from nephila.downloader.config import DownloaderConfig
    from nephila.kernel.documents.browser_schema import Browser
    from nephila.kernel.messages import Page


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """Result of one rule on one page."""

    rule: RuleDocument
    page: StoredPage
    found: Extraction
    hints: dict[str, list[str]]
    """Path of an empty field → near matches."""

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON values."""
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


def page_of(
    target: str, url: str, *, allow_private: bool, host_map: list[str], limit: TimeLimit | None = None
) -> StoredPage:
    """The page of a file, or the page fetched from a URL. Raises `UserError`. `limit`: None: that of a fetch."""
    if "://" not in target:
        pages = pages_of(Path(target), url)
        page = next(pages, None)
        if page is None:
            raise UserError(f"{target} holds no page")
        return page
    from nephila.downloader.fetch_page import config_of, fetch_page

    config, step = (
        config_of({"dns.allow_private": allow_private, "dns.host_map": host_map or ()}),
        f"the fetch of {target}",
    )
    if limit is None:
        fetched = fetch_page(target, config)
    else:
        try:
            fetched = fetch_page(target, config, limit_s=limit.left_s(step))
        except TimeoutError:
            raise limit.exceeded(step) from None
    return _as_stored(fetched)


async def stored_page(url: str, config: DownloaderConfig, *, browser: Browser | None = None) -> StoredPage:
    """The page fetched from a URL that robots.txt allows, as a browser has it if there is one. Raises `UserError`."""
    from nephila.downloader.fetch_page import fetch_allowed

    return _as_stored(await fetch_allowed(url, config, browser=browser))


def _as_stored(fetched: Page) -> StoredPage:
    body = bytes(fetched.body)
    return StoredPage(fetched.url, fetched.content_type, fetched.charset, body, fetched.url, fetched.fetched_at)


def try_rule(
    page: StoredPage, paths: Iterable[Path], name: str, limit: TimeLimit, *, scripts: bool, functions: str = ""
) -> RuleTrial:
    """Run the named rule on a page, or the rule that matches the page. Raises `UsageError`, and `UserError` at the
    limit."""
    rules = read_all(paths)
    candidates = _candidates(page, rules, name)
    with RuleRunner(scripts=scripts, functions=functions, limit=limit) as runner:
        if name or not page.url:
            rule, extraction = candidates[0], runner.run(candidates[0], page)
        else:
            chosen, extraction = runner.run_first(candidates, page)
            if chosen is None:
                raise UsageError(f"none of {len(rules)} rules is for {page.url}; --rule NAME tries one all the same")
            rule = chosen
        return RuleTrial(rule, page, extraction, runner.hints(rule, page, extraction.missing))


def _candidates(page: StoredPage, rules: list[RuleDocument], name: str) -> list[RuleDocument]:
    """The named rule, or the rules that match the page's URL in order of priority."""
    documents = {page_rule.name: page_rule for document in rules for page_rule in document.page_rules}
    if name:
        if name not in documents:
            raise UsageError(f"there is no rule {name!r}; {suggest(name, documents)}")
        return [documents[name]]
    if len(rules) == 1 and not page.url:
        return rules[:1]
    if not page.url:
        raise UsageError(f"the URL of {page.origin} is not known; give --url, or --rule")
    return [documents[rule.name] for rule in RuleSet(document.rule for document in rules).for_url(page.url)]
