"""The judge of rules: receives the statistics of all parsers for the rules of its partitions, and publishes verdicts.

A single program has one judge. Over Kafka every parser has one; `rule-stats` goes to the parser that owns the partition
of the MD5 of the rule's name. A verdict contains the judge's learned state. It is published every SAVE_PAGES pages and
read by all parsers, so that the next owner of a rule continues from it. Invariant: a verdict of another member is newer
than the local state of that rule.
"""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.pages.item_parts import base_of
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UNREADABLE, PermanentError
from nephila.kernel.topics import RULE_STATS, RULE_VERDICTS, RULES

from nephila_rules import health
from nephila_rules.fit.health import RuleHealth, decode, encode
from nephila_rules.fit.messages import log_line

log = logging.getLogger(__name__)

GROUP: Final = "parser"
JUDGE_GROUP: Final = "judge"
SAVE_PAGES: Final = 100


class RuleJudge:
    """Judges the rules of its partitions."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self.alarms = 0
        """Times that a rule became degraded."""
        self.rules: dict[str, RuleHealth] = {}
        """Rules that this judge judged last."""
        self._bus = bus
        self._clock = clock
        self._name = uuid.uuid4().hex[:12]
        self._foreign: dict[str, m.RuleVerdict] = {}
        """Newest verdicts of other judges on rules that are not in `rules`."""
        self._published_pages: dict[str, int] = {}
        self._was_degraded: dict[str, bool] = {}
        self._existing: set[str] = set()
        """Names of existing rules."""

    def start(self) -> None:
        """Subscribe to verdicts before statistics: over Kafka all verdicts are read before the first statistics."""
        self._bus.subscribe(RULES, JUDGE_GROUP, self._on_rule, credits=1000)
        self._bus.subscribe(RULE_VERDICTS, JUDGE_GROUP, self._on_verdict, credits=1000)
        self._bus.subscribe(RULE_STATS, GROUP, self._on_stats, credits=1000)

    def save(self) -> None:
        """Publish the state that was learned since the last verdict, for the next judge of these rules."""
        for name, rule in self.rules.items():
            if rule.pages != self._published_pages.get(name):
                self._publish(name, rule)

    def load(self, directory: Path) -> None:
        """Continue with the rules that an earlier program stored in an output directory."""
        for stored in health.load(directory):
            self.restore(stored.rule, stored.state)

    def store(self, directory: Path) -> None:
        """Store the rules in an output directory."""
        health.save(directory, self.verdicts())

    def degraded(self) -> dict[str, str]:
        """Degraded rule → its findings in words."""
        return health.degraded(self.verdicts())

    def verdict(self, name: str) -> m.RuleVerdict:
        """The verdict on a rule of `rules`."""
        rule = self.rules[name]
        findings = rule.findings()
        return m.RuleVerdict(
            rule=name,
            version=rule.version,
            degraded=bool(findings),
            since=rule.since,
            pages=rule.pages,
            findings=findings,
            fill_rate=rule.fill_rate,
            state=encode(rule),
            judge=self._name,
        )

    def verdicts(self) -> list[m.RuleVerdict]:
        """The verdict on each existing rule that is judged here."""
        return [self.verdict(name) for name in sorted(self.rules) if base_of(name) in self._existing]

    def restore(self, name: str, state: bytes) -> None:
        """Continue with the state that an earlier program stored."""
        rule = self._decode_state(name, state)
        self.rules[name] = rule
        self._publish(name, rule)

    def _on_rule(self, delivery: Delivery) -> None:
        rule: m.ParseRule = delivery.message
        if not rule.deleted:
            self._existing.add(rule.name)
        else:
            self._existing.discard(rule.name)
            for name in [
                known_name for known_name in (*self.rules, *self._foreign) if base_of(known_name) == rule.name
            ]:
                self._foreign.pop(name, None)
                if self.rules.pop(name, None) is not None:
                    self._bus.publish(RULE_VERDICTS, 0, m.RuleVerdict(name, judge=self._name, deleted=True))
        delivery.ack()

    def _on_stats(self, delivery: Delivery) -> None:
        stats: m.RuleStats = delivery.message
        name = stats.rule
        rule = self.rules.get(name)
        if rule is None:
            rule = self.rules[name] = self._take_over(name)
        if rule.add(stats, self._clock.now()) or rule.pages - self._published_pages.get(name, 0) >= SAVE_PAGES:
            self._publish(name, rule)
        delivery.ack()

    def _take_over(self, name: str) -> RuleHealth:
        received = self._foreign.pop(name, None)
        if received is None:
            return RuleHealth()
        self._was_degraded[name] = received.degraded
        return self._decode_state(name, received.state)

    def _decode_state(self, name: str, state: bytes) -> RuleHealth:
        try:
            rule = decode(state)
        except UNREADABLE as error:
            log.warning("rule %s: its stored health cannot be decoded and is learned again: %s", name, error)
            rule = RuleHealth()
        self._published_pages[name] = rule.pages
        return rule

    def _publish(self, name: str, rule: RuleHealth) -> None:
        verdict = self.verdict(name)
        self._published_pages[name] = rule.pages
        before = self._was_degraded.get(name, False)
        self._was_degraded[name] = verdict.degraded
        if verdict.degraded:
            self.alarms += not before
            log.log(logging.INFO if before else logging.WARNING, "%s", log_line(verdict))
        elif before:
            log.warning("rule %s (version %d) is healthy again", name, verdict.version)
        try:
            self._bus.publish(RULE_VERDICTS, 0, verdict)
        except PermanentError as error:
            log.error("rule %s: its verdict cannot be published: %s", name, error)

    def _on_verdict(self, delivery: Delivery) -> None:
        verdict: m.RuleVerdict = delivery.message
        if verdict.judge != self._name:
            self.rules.pop(verdict.rule, None)
            self._foreign.pop(verdict.rule, None)
            if not verdict.deleted:
                self._foreign[verdict.rule] = verdict
        delivery.ack()
