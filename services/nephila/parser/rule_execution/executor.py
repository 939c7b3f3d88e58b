"""Rules on the pages of the service: here at once when that is bounded, else in the rules' child process.

`bounds.py` says what is bounded. A rule that took longer than SLOW_S all the same goes to the child from then on; at
STOP_S it is given up here, and that page goes there as well. Invariants: the loop
never waits for a rule that is not bounded; every page is finished exactly once, with the rule's items or with the
reason why there are none, and then its own title, text and links stand.
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
from nephila.parser.sandbox.offload import ChildProcessQueue, SpooledBody

log = logging.getLogger(__name__)

SLOW_S: Final = 0.1
"""Of CPU, of one page."""
STOP_S: Final = 0.3
"""Of one page, as far as it can be stopped: between two values, not within a selection."""
_PAGES_TO_RECOVER: Final = 20
"""Pages in a row that a rule which has broken a child has to be read on before it is with the others again."""

Done = Callable[[Sequence[m.Outlinks]], None]
"""Publishes the links and the record, and acks the page."""


class RuleExecutor:
    """See the module."""

    def __init__(
        self, clock: Clock, child_queue: ChildProcessQueue, *, health: RuleStatsCollector, scripts: bool = False
    ) -> None:
        self.registry = RuleRegistry(scripts=scripts)
        self.child_queue = child_queue
        """Those under way; rules have a child of their own there, so that a PDF of ten seconds keeps none waiting."""
        self.items = 0
        self.pages_in_child = 0
        """Pages that went to the child."""
        self.pages_failed = 0
        """Pages whose rule was given up."""
        self.cpu_s: Callable[[], float] = time.thread_time
        """By which a rule is slow: on a machine that stands still each would be."""
        self._clock = clock
        self._health = health
        self._scripts = scripts
        self._slow: set[tuple[str, int]] = set()
        """Rules that were slow on two of three pages: they run in the child process."""
        self._recent_runs: dict[tuple[str, int], int] = {}
        """Rules with a slow page among the last three → these pages as bits, 1: slow. A single slow page may be a pause
        of the garbage collector."""
        self._isolated: dict[tuple[str, int], int] = {}
        """Rules that have broken a child → pages on which they did well since."""

    def read(
        self,
        page: m.Page,
        record: m.Record,
        links: Sequence[m.Outlinks],
        document: Document,
        facts: PageFacts,
        done: Done,
    ) -> None:
        """Read a page by the rule that is for it, if there is one. `done` is called now or in a later turn."""
        entries = list(self.registry.for_url(page.job, page.url))
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
            # Without the body for as long as it takes; whoever keeps bodies has the page itself, and reads it later.
            work = work._replace(page=msgspec.structs.replace(page, body=b""))
            self.child_queue.start(self._read_later(work, spooled, done))

    def _inline(self, entries: list[KnownRule], document: Document, depth: int) -> bool:
        return all(fits(entry.rule, document.body, depth) and _key(entry) not in self._slow for entry in entries)

    def _read_now(self, work: _Work, document: Document) -> Sequence[m.Outlinks] | None:
        """The links that go on; None when it takes too long here, and then nothing was done."""
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
            # Whatever it was, there is nobody else to end the page. It is what it is without a rule; what went wrong
            # stands in its row.
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
        return links_of(work.page, work.links, found) if work.follow else work.links

    def _judged(self, work: _Work, entry: KnownRule, found: Extraction) -> Extraction:
        """What was found, counted, and what is kept of it when the rule is degraded."""
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
        """A rule that is for the page by its URL is not by its content, which may have been other once."""
        if work.page.status < 300:
            self._health.add_mismatch(entry.rule)
        findings = self._health.findings(entry.rule)
        if any(one.field == MATCH for one in findings):
            self._health.degraded_pages += 1
            mark(work.record, findings)


class _Work(NamedTuple):
    """A page and what is to be made of it."""

    page: m.Page
    record: m.Record
    links: Sequence[m.Outlinks]
    entries: list[KnownRule]
    """Rules that may be for it, in the order in which they count."""
    follow: bool


def _key(entry: KnownRule) -> tuple[str, int]:
    return entry.rule.name, entry.rule.version
