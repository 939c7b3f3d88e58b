"""The jobs and rules of a control API in memory, as far as the operator uses it."""

from __future__ import annotations

from typing import Any

from nephila.kernel.documents import job_document
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control import api, job_types, requests, rule_types
from nephila_rules.runtime import load


class FakeControl:
    """See `nephila_control.api.Control`; the methods that the operator does not use are missing."""

    def __init__(self) -> None:
        self.jobs: dict[str, job_types.Job] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.authors: dict[str, str] = {}
        """Job → author of its last change."""
        self.rules: dict[str, rule_types.Rule] = {}
        self.health: dict[str, rule_types.RuleHealth] = {}
        self.requests: list[str] = []
        self.down = ""
        """Why it cannot be reached."""
        self.refusal: UserError | None = None
        """What every change is answered with."""

    def _check(self, change: str = "") -> None:
        if self.down:
            raise NotReadyError(self.down)
        if change:
            self.requests.append(change)
            if self.refusal is not None:
                raise self.refusal

    async def list_jobs(self, request: job_types.ListJobs) -> job_types.JobList:
        self._check()
        return job_types.JobList(jobs=list(self.jobs.values()))

    async def apply_job(self, request: job_types.ApplyJob) -> job_types.JobApplied:
        found = job_document.from_json(request.job)
        self._check(f"apply {found.name}")
        if missing := [name for name in found.spec.rules if name not in self.rules]:
            raise UserError(f"the system has no rule {missing[0]!r}")
        before = self.jobs.get(found.name)
        generation = before.generation + 1 if before else 1
        state: Any = "paused" if found.job.paused else "running"
        self.documents[found.name] = request.job
        self.jobs[found.name] = job(found.name, state, generation=generation, tenant=found.job.tenant)
        self.authors[found.name] = request.author
        verdict: Any = "changed" if before else "created"
        return job_types.JobApplied(
            name=found.name, verdict=verdict, generation=generation, refused=[], refused_count=0
        )

    async def delete_job(self, request: job_types.JobName) -> job_types.JobChanged:
        self._check(f"delete {request.name}")
        if request.name not in self.jobs:
            raise api.NotFound(f"there is no job {request.name!r}")
        del self.jobs[request.name]
        return job_types.JobChanged(name=request.name, verdict="deleted", generation=1)

    async def list_rules(self, request: requests.Empty) -> rule_types.RuleList:
        self._check()
        return rule_types.RuleList(rules=list(self.rules.values()))

    async def rule_health(self, request: requests.Empty) -> rule_types.RuleHealthList:
        self._check()
        return rule_types.RuleHealthList(rules=list(self.health.values()))

    async def apply_rules(self, request: rule_types.ApplyRules) -> rule_types.RulesApplied:
        found = [load.from_json(one) for one in request.rules]
        self._check(f"rules {' '.join(one.name for one in found)}")
        for one in found:
            self.rules[one.name] = rule_types.Rule(name=one.name, version=one.rule.version, document=one.content)
        return rule_types.RulesApplied(rules=[])

    async def delete_rule(self, request: rule_types.RuleName) -> rule_types.RuleChange:
        self._check(f"delete rule {request.name}")
        if self.rules.pop(request.name, None) is None:
            raise api.NotFound(f"there is no rule {request.name!r}")
        return rule_types.RuleChange(name=request.name, verdict="deleted")


def job(name: str, state: Any = "running", *, generation: int = 1, **counts: Any) -> job_types.Job:
    """How a job stands."""
    numbers = {"queued": 0, "in_flight": 0, "stored": 0, "denied": 0, "failed": 0, "dropped": 0, **counts}
    return job_types.Job(name=name, state=state, generation=generation, observed_generation=generation, **numbers)


__all__ = ["FakeControl", "UsageError", "job"]
