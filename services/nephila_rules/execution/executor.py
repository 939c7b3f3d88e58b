"""Rules on the pages of the service: in this process if their cost is bounded (`rules/bounds.py`), else in a child.

A rule that takes longer than SLOW_S on two of three pages runs in the child from then on. After STOP_S a page is
abandoned here and read in the child. Invariants: the loop never waits for an unbounded rule; every page is finished
exactly once, with the rule's items or with the reason why it has none. In the latter case its own title, text and links
are kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import keeps_routes
from nephila.kernel.runtime.clock import Clock
from nephila.parser.in_progress import PageInProgress, Work
from nephila.parser.sandbox import ChildError
from nephila.parser.sandbox.child_queue import ChildProcessQueue, SpooledBody

from nephila_rules.execution.registry import KnownRule, RuleRegistry
from nephila_rules.execution.to_messages import facts_of, links_of, note, put_items
from nephila_rules.fit.collector import RuleStatsCollector
from nephila_rules.fit.counts import MATCH
from nephila_rules.fit.marking import mark, trusted_part
from nephila_rules.runtime.bounds import fits
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import Extraction, TimeLimitError, extract
from nephila_rules.runtime.function_directory import FunctionDirectory
from nephila_rules.runtime.match import holds

log = logging.getLogger(__name__)

SLOW_S: Final = 0.1
"""CPU seconds of one page."""
STOP_S: Final = 0.3
"""Seconds of one page. A rule can be stopped between two values, not within a selection."""
_PAGES_TO_RECOVER: Final = 20
"""Successful pages after which a rule that made a child fail shares the child with the other rules again."""


class RuleExecutor:
    """Applies rules to pages, here or in a child process."""

    def __init__(
        self,
        clock: Clock,
        child_queue: ChildProcessQueue,
        *,
        health: RuleStatsCollector,
        scripts: bool = False,
        functions_dir: str = "",
    ) -> None:
        """`functions_dir`: of Python functions; empty: none are called. Raises `UsageError` if there is no such
        directory."""
        self._functions = FunctionDirectory(functions_dir, clock.monotonic) if functions_dir else None
        self.registry = RuleRegistry(scripts=scripts, functions=self._functions is not None)
        self.child_queue = child_queue
        """Pages in child processes. Rules have a child of their own, so that a PDF of ten seconds does not delay
        them."""
        self.items = 0
        self.pages_in_child = 0
        """Pages whose rule ran in the child."""
        self.pages_failed = 0
        """Pages whose rule failed."""
        self.cpu_s: Callable[[], float] = time.thread_time
        """Clock for slow rules: by wall time every rule would be slow on a machine that stalls."""
        self._clock = clock
        self.health = health
        self._scripts = scripts
        self._slow: set[tuple[str, int]] = set()
        """Rules that were slow on two of three pages: they run in the child process."""
        self._recent_runs: dict[tuple[str, int], int] = {}
        """Rules with a slow page among the last three → these pages as bits, 1: slow. A single slow page may be a pause
        of the garbage collector."""
        self._isolated: dict[tuple[str, int], int] = {}
        """Rules that made a child fail → successful pages since."""

    @property
    def degraded_pages(self) -> int:
        """Pages read by a degraded rule."""
        return self.health.degraded_pages

    def start(self) -> None:
        self.health.start()

    def flush(self) -> None:
        self.health.flush()

    def close(self) -> None:
        self.health.close()

    def update_rule(self, rule: m.ParseRule) -> None:
        self.registry.update_rule(rule)

    def update_job(self, job: m.CrawlJob) -> None:
        self.registry.update_job(job)

    def applies_to(self, page: m.Page) -> bool:
        return any(self.registry.for_page(page))

    def read(self, p: PageInProgress) -> Work | None:
        """Apply the rule that matches a page, if there is one; the answer is a call that lets the child do so."""
        page = p.page
        entries = list(self.registry.for_page(page))
        if not entries:
            return None
        facts = facts_of(p.record)
        document = Document(p.body, page.url, p.encoding, page.content_type, facts, routes=keeps_routes(p.job))
        if self._inline(entries, document, p.depth) and self._read_now(p, entries, document):
            return None
        self.pages_in_child += 1
        from nephila_rules.runtime.task import request_of

        request = request_of({entry.rule.name: entry.text for entry in entries}, document, scripts=self._scripts)
        spooled = self.child_queue.spool(request)
        p.take_body()
        return partial(self._read_later, p, entries, spooled)

    def _inline(self, entries: list[KnownRule], document: Document, depth: int) -> bool:
        # The tree of XML and selectors on it are libxml2's, which has no bound.
        return not document.is_xml and all(
            fits(entry.rule, document.body, depth) and _key(entry) not in self._slow for entry in entries
        )

    def _read_now(self, p: PageInProgress, entries: list[KnownRule], document: Document) -> bool:
        """False if the rule took too long: then the page is unchanged."""
        monotonic = self._clock.monotonic
        began, began_cpu_s = monotonic(), self.cpu_s()

        def check_time() -> None:
            if monotonic() - began > STOP_S:
                raise TimeLimitError

        passed = next((n for n, entry in enumerate(entries) if holds(entry.rule, document)), len(entries))
        entry = entries[passed] if passed < len(entries) else None
        try:
            extraction = extract(entry.rule, document, check_time=check_time) if entry is not None else None
        except TimeLimitError:
            extraction = None
        if entry is not None:
            self._count_run(_key(entry), slow=self.cpu_s() - began_cpu_s > SLOW_S)
        if entry is not None and extraction is None:
            return False
        self._finish(p, entries, passed, extraction)
        return True

    def _count_run(self, key: tuple[str, int], *, slow: bool) -> None:
        """Remember the last three pages of a rule; two slow ones send it to the child process. O(1)."""
        if not slow and key not in self._recent_runs:
            return
        runs = (self._recent_runs.get(key, 0) << 1 | slow) & 0b111
        if runs.bit_count() >= 2:
            self._slow.add(key)
        if runs and key not in self._slow:
            self._recent_runs[key] = runs
        else:
            self._recent_runs.pop(key, None)

    async def _read_later(self, p: PageInProgress, entries: list[KnownRule], spooled: SpooledBody) -> None:
        from nephila_rules.runtime.task import ISOLATED_RULES, RULES

        task = ISOLATED_RULES if any(_key(entry) in self._isolated for entry in entries) else RULES
        if self._functions is not None and any(entry.rule.functions for entry in entries):
            task = self._functions.task(task)
        try:
            answer = await self.child_queue.run(task, spooled, lambda payload: payload)
            self._count_success(entries)
            self._finish(p, entries, answer.number if answer.number >= 0 else len(entries), answer.found)
        except Exception as error:
            # The page must be finished here. It is stored without the rule's items; the row has the error.
            self.pages_failed += 1
            if isinstance(error, ChildError) and error.retryable:
                self._isolated.update(dict.fromkeys(map(_key, entries), 0))
            rule = entries[0].rule
            unforeseen = not isinstance(error, ChildError | OSError)
            log.warning("rule %s: %s: %s", rule.name, ascii(p.page.url)[:500], error, exc_info=unforeseen)
            p.record.rule, p.record.rule_version = rule.name, rule.version
            note(p.record, str(error) or type(error).__name__)
            self._judged(p, entries[0], Extraction())

    def _count_success(self, entries: list[KnownRule]) -> None:
        for key in filter(self._isolated.__contains__, map(_key, entries)):
            self._isolated[key] += 1
            if self._isolated[key] >= _PAGES_TO_RECOVER:
                del self._isolated[key]

    def _finish(self, p: PageInProgress, entries: list[KnownRule], passed: int, extraction: Extraction | None) -> None:
        """Put into the messages what the rule `entries[passed]` found; the rules before it did not match."""
        for entry in entries[:passed]:
            self._mismatched(p, entry)
        if extraction is None or passed >= len(entries):
            return
        entry = entries[passed]
        extraction = self._judged(p, entry, extraction)
        put_items(p.record, entry.rule, extraction)
        self.items += len(extraction.items)
        if p.follow:
            p.links = links_of(p.page, p.links, extraction, entry.rule.stop)

    def _judged(self, p: PageInProgress, entry: KnownRule, extraction: Extraction) -> Extraction:
        """Count an extraction; returns the part that can be stored if the rule is degraded."""
        if p.page.status < 300:
            self.health.add_page(entry.rule, extraction)
        findings = self.health.findings(entry.rule)
        if not findings:
            return extraction
        trusted = trusted_part(extraction, findings)
        self.health.degraded_pages += 1
        mark(p.record, findings, len(extraction.items) - len(trusted.items))
        return trusted

    def _mismatched(self, p: PageInProgress, entry: KnownRule) -> None:
        """Count a page that matches a rule's URLs but not its conditions on content: the content may have changed."""
        if p.page.status < 300:
            self.health.add_mismatch(entry.rule)
        findings = self.health.findings(entry.rule)
        if any(finding.field == MATCH for finding in findings):
            self.health.degraded_pages += 1
            mark(p.record, findings)


def _key(entry: KnownRule) -> tuple[str, int]:
    return entry.rule.name, entry.rule.version
