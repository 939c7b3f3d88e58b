"""A parser's part of the watch over its rules: it tells what it saw of them, and knows which of them are degraded.

Counts go out every TELL_S seconds, and with every PAGES pages of a rule: on a fast crawl the alarm must not come a
thousand pages late. Invariants: nothing wakes the program while there is nothing to tell; a verdict on another version
of a rule says nothing about this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.topics import RULE_STATS, RULE_VERDICTS
from nephila.native import partition_of
from nephila.parser.rule_health.counts import Tally
from nephila.parser.rules.extract import Extraction
from nephila.parser.rules.spec import Rule

GROUP: Final = "parser"
TELL_S: Final = 5.0
PAGES: Final = 5


class Reporter:
    """See the module."""

    def __init__(self, bus: Bus, clock: Clock, partitions: int) -> None:
        self.verdicts: dict[str, m.RuleVerdict] = {}
        self.degraded_pages = 0
        """Pages that were read by a rule while it was degraded."""
        self._bus = bus
        self._clock = clock
        self._partitions = partitions
        self._tallies: dict[tuple[str, int], Tally] = {}
        self._timer: Timer | None = None

    def start(self) -> None:
        """Hear of verdicts."""
        self._bus.subscribe(RULE_VERDICTS, GROUP, self._on_verdict, credits=1000)

    def close(self) -> None:
        """Tell nothing more by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def tell(self) -> None:
        """Tell what was seen and not told yet."""
        self.close()
        for tally in list(self._tallies.values()):
            self._tell(tally)

    def findings(self, rule: Rule) -> Sequence[m.RuleFinding]:
        """What is wrong with a rule; nothing when it is well."""
        verdict = self.verdicts.get(rule.name)
        if verdict is None or not verdict.degraded or verdict.version != rule.version:
            return ()
        return verdict.findings

    def saw(self, rule: Rule, found: Extraction) -> None:
        """A page was read by a rule."""
        tally = self._tally(rule)
        tally.saw(found)
        self._counted(tally)

    def missed(self, rule: Rule) -> None:
        """A page of a rule's URLs has not what the rule asks of the content."""
        tally = self._tally(rule)
        tally.missed()
        self._counted(tally)

    def _tally(self, rule: Rule) -> Tally:
        key = rule.name, rule.version
        tally = self._tallies.get(key)
        if tally is None:
            for other in [one for one in self._tallies.values() if one.name == rule.name]:
                self._tell(other)
                del self._tallies[other.name, other.version]
            tally = self._tallies[key] = Tally(rule)
        return tally

    def _counted(self, tally: Tally) -> None:
        if tally.pages >= PAGES:
            self._tell(tally)
        elif self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + TELL_S, self.tell)

    def _tell(self, tally: Tally) -> None:
        if tally.pages:
            self._bus.publish(RULE_STATS, partition_of(key_of(tally.name), self._partitions), tally.take())

    def _on_verdict(self, delivery: Delivery) -> None:
        verdict: m.RuleVerdict = delivery.message
        if verdict.deleted:
            self.verdicts.pop(verdict.rule, None)
        else:
            self.verdicts[verdict.rule] = verdict
        delivery.ack()


def key_of(rule: str) -> bytes:
    """What a rule's partition goes by."""
    return hashlib.md5(rule.encode("utf-8", "replace"), usedforsecurity=False).digest()
