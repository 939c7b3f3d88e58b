"""What a browser does with a page: from the job's section `browser` and the steps of its rules. Pure."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec
import re2
from nephila.kernel import messages as m
from nephila.kernel.documents.browser_schema import Browser, Step
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.runtime.errors import UNREADABLE

log = logging.getLogger(__name__)


class _Match(msgspec.Struct):
    url: list[str] | str
    exclude: list[str] | str = msgspec.field(default_factory=list)


class _Spec(msgspec.Struct):
    match: _Match
    priority: int = 0
    steps: list[Step] = msgspec.field(default_factory=list)


class _Rule(msgspec.Struct):
    spec: _Spec


@dataclass(frozen=True, slots=True)
class _RuleSteps:
    """The part of a rule that a browser needs."""

    name: str
    priority: int
    wanted: tuple[Any, ...]
    unwanted: tuple[Any, ...]
    steps: tuple[Step, ...]

    def reads(self, url: str) -> bool:
        """Whether the rule reads the page of a URL. Conditions on the content are not known yet."""
        return any(pattern.search(url) for pattern in self.wanted) and not any(
            pattern.search(url) for pattern in self.unwanted
        )


@dataclass(slots=True)
class _Job:
    ignore_robots: bool
    delay_s: float
    browser: Browser
    rules: frozenset[str]
    requisites: bool
    chosen: list[_RuleSteps] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PageInstructions:
    """What is done with one page."""

    browser: Browser
    steps: tuple[Step, ...]
    obey_robots: bool = True
    delay_s: float = 0.0
    """Time between two fetches of the host."""
    requisites: bool = False
    """What the page loads is archived."""


_DEFAULT = PageInstructions(Browser(), ())


class Instructions:
    """The instructions of all jobs. `of` costs a regular expression per rule of the job that has steps."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._rules: dict[str, _RuleSteps] = {}

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        if job.deleted:
            self._jobs.pop(job.uid, None)
            return
        spec = spec_of(job)
        self._jobs[job.uid] = _Job(
            not spec.politeness.respect_robots,
            seconds(spec.politeness.delay),
            spec.browser,
            frozenset(spec.rules),
            spec.parse.requisites > 0,
        )
        self._choose()

    def on_rule(self, rule: m.ParseRule) -> None:
        """A rule is new, has changed or is deleted."""
        self._rules.pop(rule.name, None)
        if not rule.deleted and '"steps"' in rule.document:
            try:
                self._rules[rule.name] = _read(rule)
            except (*UNREADABLE, re2.error) as error:
                log.warning("the steps of rule %s cannot be read: %s", rule.name, error)
        self._choose()

    def of(self, job: str, url: str) -> PageInstructions:
        """What is done with a page of a job."""
        state = self._jobs.get(job)
        if state is None:
            return _DEFAULT
        steps = next((rule.steps for rule in state.chosen if rule.reads(url)), tuple(state.browser.steps))
        return PageInstructions(state.browser, steps, not state.ignore_robots, state.delay_s, state.requisites)

    def _choose(self) -> None:
        """Per job the rules with steps, in the order in which they count: highest priority, then first name."""
        ordered = sorted(self._rules.values(), key=lambda rule: (-rule.priority, rule.name))
        for job in self._jobs.values():
            job.chosen = [rule for rule in ordered if rule.name in job.rules]


def _read(rule: m.ParseRule) -> _RuleSteps:
    spec = msgspec.json.decode(rule.document, type=_Rule).spec
    return _RuleSteps(
        rule.name, spec.priority, _compiled(spec.match.url), _compiled(spec.match.exclude), tuple(spec.steps)
    )


def _compiled(expressions: list[str] | str) -> tuple[Any, ...]:
    return tuple(map(re2.compile, [expressions] if isinstance(expressions, str) else expressions))
