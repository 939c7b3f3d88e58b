"""Faults of jobs that no scheduler reports: a rule that a job uses is deleted, or no longer fits its site; or the job
ended with nothing stored.

Without a word in the list of jobs each of them looks like success. The work is O(rules of the job) for each report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob, RuleVerdict
from nephila.kernel.pages.item_parts import base_of
from nephila.kernel.runtime.clock import Clock

from nephila_control import job_types
from nephila_control.backend import Backend


class JobFaults:
    """The present faults of the jobs of one program, and since when each is there."""

    def __init__(self, backend: Backend) -> None:
        """`backend` is that of the whole program: a view for tenants does not see the rules of others."""
        self._backend = backend
        self._clock: Clock = backend.clock
        self._missing: dict[str, dict[str, float]] = {}
        """Job → its missing rules, and when this program first missed each. It is not stored: after a restart it is the
        time of the restart."""

    def mark(self, jobs: Iterable[tuple[CrawlJob, job_types.Job]]) -> list[job_types.Job]:
        """Returns the reports with their faults."""
        rules = self._backend.rules if self._backend.knows_rules else None
        degraded = _degraded(self._backend.verdicts())
        marked = []
        for job, report in jobs:
            report.degraded = self._faults(job, rules, degraded)
            report.failure = self._failure(report)
            marked.append(report)
        return marked

    def _failure(self, report: job_types.Job) -> job_types.Failure | None:
        if not report.has_failed:
            return None
        events = self._backend.events
        if events.failed_since(report) is None:
            self._backend.look()
        return job_types.Failure(
            cause=f"nothing was stored: {report.outcome_counts}",
            since=events.failed_since(report) or self._clock.now(),
            remedy=f"see nephila pages --job {report.name}, and nephila explain URL for one of them",
        )

    def _faults(
        self, job: CrawlJob, rules: Mapping[str, object] | None, degraded: Mapping[str, RuleVerdict]
    ) -> list[job_types.Degradation]:
        names, since = spec_of(job).rules, self._missing.pop(job.uid, {})
        missing = {
            rule: since.get(rule, self._clock.now()) for rule in names if rules is not None and rule not in rules
        }
        if missing:
            self._missing[job.uid] = missing
        return [
            _missing(rule, missing[rule]) if rule in missing else _changed(rule, degraded[rule])
            for rule in names
            if rule in missing or rule in degraded
        ]


def _degraded(verdicts: Iterable[RuleVerdict]) -> dict[str, RuleVerdict]:
    """Rule → the verdict that its site has changed."""
    return {base_of(verdict.rule): verdict for verdict in verdicts if verdict.degraded and not verdict.deleted}


def _missing(rule: str, since: float) -> job_types.Degradation:
    return job_types.Degradation(
        reason="RuleMissing",
        cause=f"the rule {rule!r} (spec.rules) is deleted; pages of the job are stored without its items",
        since=since,
        remedy="apply the rule again (nephila rules deploy, or its ParseRule), or take it out of spec.rules",
    )


def _changed(rule: str, verdict: RuleVerdict) -> job_types.Degradation:
    return job_types.Degradation(
        reason="SiteChanged",
        cause=f"the rule {rule!r} (spec.rules) no longer fits its site; rows of its pages are marked",
        since=verdict.since,
        remedy="see nephila rules status, and change the rule",
    )
