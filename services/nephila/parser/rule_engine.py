"""The port of rules: what reads items from pages, and what judges whether rules still fit their sites.

The parser knows only these protocols. `nephila_rules` implements them; without that package `NoRules` and `NoJudge`
stand in their place, and a page whose job names rules says in its row that no rule was applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.extensions import extension, is_installed
from nephila.parser.config import ParserConfig
from nephila.parser.page.meta import note

if TYPE_CHECKING:
    # A process that only judges rules reads no page.
    from nephila.parser.in_progress import PageInProgress, Work
    from nephila.parser.sandbox.child_queue import ChildProcessQueue

ABSENT: Final = "no rule was applied: the package nephila_rules is not installed"


class RuleEngine(Protocol):
    """Applies the rules of jobs to pages."""

    items: int
    """Items extracted since the start."""
    pages_in_child: int
    """Pages whose rule ran in a child process."""
    pages_failed: int
    """Pages whose rule exceeded its limits."""

    @property
    def degraded_pages(self) -> int:
        """Pages read by a rule that no longer fits its site."""

    def start(self) -> None:
        """Subscribe to verdicts on rules."""

    def flush(self) -> None:
        """Publish all counts of rules."""

    def close(self) -> None:
        """Stop timers."""

    def update_rule(self, rule: m.ParseRule) -> None:
        """Take a new version of a rule, or its deletion."""

    def update_job(self, job: m.CrawlJob) -> None:
        """Take the rules of a job."""

    def applies_to(self, page: m.Page) -> bool:
        """Whether a rule of the page's job matches its URL."""

    def read(self, p: PageInProgress) -> Work | None:
        """Apply the rule that matches a page; a call that has to be awaited if a child process does so."""


class JudgedRule(Protocol):
    """A rule as its judge sees it."""

    since: float
    """Instant of the alarm, in seconds since 1970 UTC; 0: the rule fits."""

    @property
    def fill_rate(self) -> float:
        """Share of the last pages that had items."""


class RuleJudge(Protocol):
    """Judges from the counts of all parsers whether rules still fit their sites."""

    alarms: int
    """Times that a rule became degraded."""

    @property
    def rules(self) -> Mapping[str, JudgedRule]:
        """Rules that are judged here."""

    def start(self) -> None:
        """Subscribe to the counts."""

    def save(self) -> None:
        """Publish what was learnt, for the next judge."""

    def load(self, directory: Path) -> None:
        """Continue with what an earlier program stored in an output directory."""

    def store(self, directory: Path) -> None:
        """Store the state of all rules in an output directory."""

    def verdicts(self) -> list[m.RuleVerdict]:
        """One for each rule that is judged here."""

    def degraded(self) -> dict[str, str]:
        """Rule that no longer fits its site → the findings in words."""


class NoRules:
    """The engine of an installation without rules."""

    items = pages_in_child = pages_failed = degraded_pages = 0

    def start(self) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def update_rule(self, rule: m.ParseRule) -> None: ...
    def update_job(self, job: m.CrawlJob) -> None: ...

    def applies_to(self, page: m.Page) -> bool:
        return False

    def read(self, p: PageInProgress) -> None:
        note(p.record, "rule_problems", ABSENT)


class NoJudge:
    """The judge of an installation without rules."""

    alarms = 0
    rules: Mapping[str, JudgedRule] = {}

    def start(self) -> None: ...
    def save(self) -> None: ...
    def load(self, directory: Path) -> None: ...
    def store(self, directory: Path) -> None: ...

    def verdicts(self) -> list[m.RuleVerdict]:
        return []

    def degraded(self) -> dict[str, str]:
        return {}


def make_engine(bus: Bus, clock: Clock, child_queue: ChildProcessQueue, config: ParserConfig) -> RuleEngine:
    if not is_installed("rule-engine"):
        return NoRules()
    engine: RuleEngine = extension("rule-engine")(bus, clock, child_queue, config)
    return engine


def make_judge(bus: Bus, clock: Clock) -> RuleJudge:
    if not is_installed("rule-judge"):
        return NoJudge()
    judge: RuleJudge = extension("rule-judge")(bus, clock)
    return judge
