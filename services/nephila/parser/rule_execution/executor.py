"""Rules on the pages of the service: in this process if their cost is bounded (`rules/bounds.py`), else in a child.

A rule that takes longer than SLOW_S on two of three pages runs in the child from then on. After STOP_S a page is
abandoned here and read in the child. Invariants: the loop never waits for an unbounded rule; every page is finished
exactly once, with the rule's items or with the reason why it has none. In the latter case its own title, text and links
are kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import Clock
from nephila.parser.page.page_pass import PageFacts
from nephila.parser.rule_execution.registry import KnownRule, RuleRegistry
from nephila.parser.rule_execution.to_messages import links_of, note, put_items
from nephila.parser.rule_health.collector import RuleStatsCollector
from nephila.parser.rule_health.counts import MATCH
from nephila.parser.rule_health.marking import mark, trusted_part
from nephila.parser.rules.bounds import fits
from nephila.parser.rules.document import Document
from nephila.parser.rules.extract import Extraction, TimeLimitError, extract
from nephila.parser.rules.match import holds
from nephila.parser.sandbox import ChildError
from nephila.parser.sandbox.child_queue import ChildProcessQueue, SpooledBody

log = logging.getLogger(__name__)

SLOW_S: Final = 0.1
"""CPU seconds of one page."""
STOP_S: Final = 0.3
"""Seconds of one page. A rule can be stopped between two values, not within a selection."""
_PAGES_TO_RECOVER: Final = 20
"""Successful pages after which a rule that made a child fail shares the child with the other rules again."""

Done = Callable[[Sequence[m.Outlinks]], None]
"""Publishes the links and the record, and acks the page."""


class RuleExecutor:
    """Applies rules to pages, here or in a child process."""

    def __init__(
        self, clock: Clock, child_queue: ChildProcessQueue, *, health: RuleStatsCollector, scripts: bool = False
    ) -> None:
        self.registry = RuleRegistry(scripts=scripts)
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
        self._health = health
        self._scripts = scripts
        self._slow: set[tuple[str, int]] = set()
        """Rules that were slow on two of three pages: they run in the child process."""
        self._recent_runs: dict[tuple[str, int], int] = {}
        """Rules with a slow page among the last three → these pages as bits, 1: slow. A single slow page may be a pause
        of the garbage collector."""
        self._isolated: dict[tuple[str, int], int] = {}
        """Rules that made a child fail → successful pages since."""

    def read(
        self,
        page: m.Page,
        record: m.Record,
        links: Sequence[m.Outlinks],
        document: Document,
        facts: PageFacts,
        done: Done,
    ) -> None:
        """Apply the rule that matches a page, if there is one. `done` is called now or in a later turn of the loop."""
        entries = list(self.registry.for_page(page))
        if not entries:
            done(links)
            return
        work = _Work(page, record, links, entries, facts.follow)
        here = self._read_now(work, document) if self._inline(entries, document, facts.depth) else None
        if here is not None:
            done(here)
        else:
            self.pages_in_child += 1
            from nephila.parser.rules.task import request_of

            request = request_of({entry.rule.name: entry.text for entry in entries}, document, scripts=self._scripts)
            spooled = self.child_queue.spool(request, digest=False)
            # A copy without the body: sinks that store bodies hold the original page.
            work = work._replace(page=msgspec.structs.replace(page, body=b""))
            self.child_queue.start(self._read_later(work, spooled, done))

    def _inline(self, entries: list[KnownRule], document: Document, depth: int) -> bool:
        return all(fits(entry.rule, document.body, depth) and _key(entry) not in self._slow for entry in entries)

    def _read_now(self, work: _Work, document: Document) -> Sequence[m.Outlinks] | None:
        """The links to follow; None if the rule took too long: then the page is unchanged."""
        monotonic = self._clock.monotonic
        began, began_cpu_s = monotonic(), self.cpu_s()

        def check_time() -> None:
            if monotonic() - began > STOP_S:
                raise TimeLimitError

        passed = next((n for n, entry in enumerate(work.entries) if holds(entry.rule, document)), len(work.entries))
        entry = work.entries[passed] if passed < len(work.entries) else None
        try:
            found = extract(entry.rule, document, check_time=check_time) if entry is not None else None
        except TimeLimitError:
            found = None
        if entry is not None:
            self._count_run(_key(entry), slow=self.cpu_s() - began_cpu_s > SLOW_S)
        if entry is not None and found is None:
            return None
        for mismatched in work.entries[:passed]:
            self._mismatched(work, mismatched)
        if entry is None or found is None:
            return work.links
        return self._finished(work, entry, found)

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

    async def _read_later(self, work: _Work, spooled: SpooledBody, done: Done) -> None:
        from nephila.parser.rules.task import ISOLATED_RULES, RULES

        links = work.links
        task = ISOLATED_RULES if any(_key(entry) in self._isolated for entry in work.entries) else RULES
        try:
            answer = await self.child_queue.run(task, spooled, lambda payload: payload)
            self._count_success(work.entries)
            passed = answer.number if 0 <= answer.number < len(work.entries) else len(work.entries)
            for entry in work.entries[:passed]:
                self._mismatched(work, entry)
            if passed < len(work.entries):
                links = self._finished(work, work.entries[answer.number], answer.found)
        except Exception as error:
            # The page must be finished here. It is stored without the rule's items; the row has the error.
            self.pages_failed += 1
            if isinstance(error, ChildError) and error.retryable:
                self._isolated.update(dict.fromkeys(map(_key, work.entries), 0))
            rule = work.entries[0].rule
            unforeseen = not isinstance(error, ChildError | OSError)
            log.warning("rule %s: %s: %s", rule.name, ascii(work.page.url)[:500], error, exc_info=unforeseen)
            work.record.rule, work.record.rule_version = rule.name, rule.version
            note(work.record, str(error) or type(error).__name__)
            self._judged(work, work.entries[0], Extraction())
        done(links)

    def _count_success(self, entries: list[KnownRule]) -> None:
        for key in filter(self._isolated.__contains__, map(_key, entries)):
            self._isolated[key] += 1
            if self._isolated[key] >= _PAGES_TO_RECOVER:
                del self._isolated[key]

    def _finished(self, work: _Work, entry: KnownRule, found: Extraction) -> Sequence[m.Outlinks]:
        found = self._judged(work, entry, found)
        put_items(work.record, entry.rule, found)
        self.items += len(found.items)
        return links_of(work.page, work.links, found, entry.rule.stop) if work.follow else work.links

    def _judged(self, work: _Work, entry: KnownRule, found: Extraction) -> Extraction:
        """Count an extraction; returns the part that can be stored if the rule is degraded."""
        if work.page.status < 300:
            self._health.add_page(entry.rule, found)
        findings = self._health.findings(entry.rule)
        if not findings:
            return found
        kept = trusted_part(found, findings)
        self._health.degraded_pages += 1
        mark(work.record, findings, len(found.items) - len(kept.items))
        return kept

    def _mismatched(self, work: _Work, entry: KnownRule) -> None:
        """Count a page that matches a rule's URLs but not its conditions on content: the content may have changed."""
        if work.page.status < 300:
            self._health.add_mismatch(entry.rule)
        findings = self._health.findings(entry.rule)
        if any(one.field == MATCH for one in findings):
            self._health.degraded_pages += 1
            mark(work.record, findings)


class _Work(NamedTuple):
    """A page and the rules that may match it."""

    page: m.Page
    record: m.Record
    links: Sequence[m.Outlinks]
    entries: list[KnownRule]
    """Rules that match the URL, in order of priority."""
    follow: bool


def _key(entry: KnownRule) -> tuple[str, int]:
    return entry.rule.name, entry.rule.version
