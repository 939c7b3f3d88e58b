"""All rules of a parser, and for each job the set of rules that it names.

Rules and jobs arrive in any order and may change at any time; a page is read by the rules known at that time.
Invariants: a changed rule or job costs each job one new set, built for its next page; a document that this version
cannot read leaves the rule unchanged and is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.runtime.errors import UsageError

from nephila_rules.runtime.function_directory import NO_DIRECTORY, functions_in
from nephila_rules.runtime.load import from_text
from nephila_rules.runtime.match import RuleSet
from nephila_rules.runtime.spec import Rule

log = logging.getLogger(__name__)

_NO_CONTEXT = m.Context()


class KnownRule(msgspec.Struct, frozen=True):
    """A rule and its document as JSON."""

    rule: Rule
    text: str


class RuleRegistry:
    """Rules by name, and the rule sets of jobs."""

    def __init__(self, *, scripts: bool = False, functions: bool = False) -> None:
        """`scripts`: the scripts of rules are run; `functions`: their Python functions are called."""
        self._scripts = scripts
        self._functions = functions
        self._entries: dict[str, KnownRule] = {}
        self._names_by_job: dict[str, tuple[str, ...]] = {}
        self._sets: dict[str, RuleSet] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def update_rule(self, message: m.ParseRule) -> None:
        """The desired state of a rule. O(jobs)."""
        name = message.name
        if message.deleted:
            self._entries.pop(name, None)
        else:
            entry = self._entries.get(name)
            if entry is not None and entry.text == message.document:
                return
            try:
                rule = from_text(message.document, name).rule
            except UsageError as error:
                log.error("rule %s is unchanged: %s", name, error)
                return
            self._entries[name] = KnownRule(rule, message.document)
            if not self._scripts and any(reader.scripts for reader in rule.page_rules):
                log.warning(
                    "rule %s: its scripts are not run, and their fields are empty; --rule-scripts runs them", name
                )
            if not self._functions and functions_in([rule]):
                log.warning(
                    "rule %s: its Python functions are not called, and their fields are empty: %s", name, NO_DIRECTORY
                )
        for job, names in self._names_by_job.items():
            if name in names:
                self._sets.pop(job, None)

    def update_job(self, job: m.CrawlJob) -> None:
        """The desired state of a job."""
        self._sets.pop(job.uid, None)
        rules = spec_of(job).rules
        if job.deleted or not rules:
            self._names_by_job.pop(job.uid, None)
        else:
            self._names_by_job[job.uid] = tuple(rules)

    def for_page(self, page: m.Page) -> Iterator[KnownRule]:
        """The rules of its job that match the URL, the stage and the platform of a page, in order of priority."""
        context = page.context or _NO_CONTEXT
        for entry in self.for_url(page.job, page.url):
            rule = entry.rule
            if rule.stage in ("", context.stage) and rule.platform in ("", context.platform):
                yield entry

    def for_url(self, job: str, url: str) -> Iterator[KnownRule]:
        """The rules of a job that match a URL, in order of priority."""
        rule_set = self._sets.get(job)
        if rule_set is None:
            names = self._names_by_job.get(job, ())
            rule_set = self._sets[job] = RuleSet(self._entries[name].rule for name in names if name in self._entries)
        for rule in rule_set.for_url(url):
            entry = self._entries[rule.name.partition("/")[0]]
            yield entry if entry.rule is rule else KnownRule(rule, entry.text)
