"""Counts of a parser's rules, published for the judge; and the verdicts of the judge, kept for the parser.

Counts of a rule are published after FLUSH_PAGES pages, or after FLUSH_S seconds, whichever comes first. Invariants: no
timer runs while there is nothing to publish; a verdict applies only to the version of the rule that it names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.bus.latest import Latest
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import RULE_STATS, RULE_VERDICTS
from nephila.native import partition_of

from nephila_rules.fit.counts import RuleCounts
from nephila_rules.runtime.extract import Extraction
from nephila_rules.runtime.spec import Rule

GROUP: Final = "parser"
FLUSH_S: Final = 5.0
FLUSH_PAGES: Final = 5


class RuleStatsCollector:
    """Collects the counts of one parser and keeps the newest verdict on each rule."""

    def __init__(self, bus: Bus, clock: Clock, partitions: int) -> None:
        self.verdicts: Latest[m.RuleVerdict] = Latest(RULE_VERDICTS)
        self.degraded_pages = 0
        """Pages read by a degraded rule."""
        self._bus = bus
        self._partitions = partitions
        self._counts_by_version: dict[tuple[str, int], RuleCounts] = {}
        self._timer = OneTimer(clock, self.flush)

    def start(self) -> None:
        """Subscribe to verdicts."""
        self._bus.subscribe(RULE_VERDICTS, GROUP, self._on_verdict, credits=1000)

    def close(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def flush(self) -> None:
        """Publish all counts that were not published yet."""
        self.close()
        for counts in list(self._counts_by_version.values()):
            self._publish(counts)

    def findings(self, rule: Rule) -> Sequence[m.RuleFinding]:
        """Findings about a degraded rule; empty for a healthy one."""
        verdict = self.verdicts.get(rule.name)
        if verdict is None or not verdict.degraded or verdict.version != rule.version:
            return ()
        return verdict.findings

    def add_page(self, rule: Rule, extraction: Extraction) -> None:
        """Count a page that the rule has read."""
        counts = self._counts_of(rule)
        counts.add_page(extraction)
        self._publish_or_wait(counts)

    def add_mismatch(self, rule: Rule) -> None:
        """Count a page that matches the rule's URLs but not its conditions on content."""
        counts = self._counts_of(rule)
        counts.add_mismatch()
        self._publish_or_wait(counts)

    def _counts_of(self, rule: Rule) -> RuleCounts:
        key = rule.name, rule.version
        counts = self._counts_by_version.get(key)
        if counts is None:
            for other in [counted for counted in self._counts_by_version.values() if counted.name == rule.name]:
                self._publish(other)
                del self._counts_by_version[other.name, other.version]
            counts = self._counts_by_version[key] = RuleCounts(rule)
        return counts

    def _publish_or_wait(self, counts: RuleCounts) -> None:
        if counts.pages >= FLUSH_PAGES:
            self._publish(counts)
        else:
            self._timer.start(FLUSH_S)

    def _publish(self, counts: RuleCounts) -> None:
        if counts.pages:
            self._bus.publish(RULE_STATS, partition_of(key_of(counts.name), self._partitions), counts.take())

    def _on_verdict(self, delivery: Delivery) -> None:
        self.verdicts.take(delivery.message)
        delivery.ack()


def key_of(rule: str) -> bytes:
    """The key by which a rule has its partition."""
    return hashlib.md5(rule.encode("utf-8", "replace"), usedforsecurity=False).digest()
