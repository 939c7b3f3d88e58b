"""One CrawlJob: its spec and the state of its job → the next request and the new status. Pure.

The job is created or changed when the spec has a new generation, its namespace another tenant, or the job is absent. A
pause with `nephila jobs pause` stays until the spec changes. Invariants: a job is created only while the resource holds
the finalizer; a spec that is refused leaves the job as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephila.kernel.documents import job_document
from nephila.kernel.runtime.errors import UsageError
from nephila_control import job_types

from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator.plan import (
    Again,
    ReconcilePlan,
    document_of,
    faults_of,
    finalizers_of,
    find,
    is_deleted,
    one_line,
)
from nephila_cluster.operator.reconcile import Observed, Verdict, delete, fault, generic, is_accepted, write_status
from nephila_cluster.operator.status import MAX_REFUSED

REASONS: dict[job_types.JobState, str] = {
    "new": "Starting",
    "running": "Crawling",
    "paused": "Paused",
    "limit": "LimitReached",
    "quota": "QuotaUsedUp",
    "window": "OutsideWindow",
    "idle": "Idle",
}
"""State of a job → reason of its conditions."""
MESSAGES: dict[job_types.JobState, str] = {
    "new": "no scheduler has reported on this generation yet",
    "running": "URLs are queued or in flight",
    "paused": "nothing is fetched",
    "limit": "a budget is spent: of the job, or of every host that is left",
    "quota": "a quota of the job, its site or its tenant is used up",
    "window": "no window of the job is open",
    "idle": "every known URL is finished",
}


@dataclass(frozen=True, slots=True)
class ObservedJob(Observed):
    """The job of a resource in the control API."""

    job: job_types.Job | None = None
    """None: there is no such job."""
    applied: job_types.JobApplied | None = None
    """The answer to the request of this reconciliation."""
    author: str = ""
    """For whom the operator applies the spec."""
    refused_rules: Mapping[str, str] = field(default_factory=dict)
    """Rule of the job → why the newest spec of its ParseRule is refused."""


def reconcile_job(body: Mapping[str, Any], seen: ObservedJob, now: str) -> ReconcilePlan:
    """The next steps for a job. `now`: the time as Kubernetes writes it."""

    def report(accepted: Verdict, again: Again) -> ReconcilePlan:
        ready = _ready(seen, accepted)
        verdicts = {
            "Accepted": accepted,
            "Ready": ready,
            **generic(accepted, ready),
            "Progressing": _progressing(seen),
            "Degraded": _degraded(seen),
        }
        return write_status(body, verdicts, _values(seen), now, again)

    if is_deleted(body):
        request = None if seen.job is None else job_types.JobName(name=body["metadata"]["name"])
        return delete(body, seen, "job", request, report)
    if FINALIZER not in finalizers_of(body):
        return ReconcilePlan(finalizers=[*finalizers_of(body), FINALIZER])
    document, error = _read(document_of(body, "CrawlJob"))
    if document is None:
        return report(("False", "Invalid", error), "never" if seen.job is None else "interval")
    if (verdict := fault(body, seen)) is not None:
        return report(verdict, "retry")
    if seen.applied is not None:
        return report(("True", "Applied", _answer(seen.applied)), "interval")
    if is_accepted(body) and seen.job is not None and seen.job.tenant == document["spec"].get("tenant", ""):
        before = find(body["status"], "Accepted")
        return report(("True", before["reason"], before["message"]), "interval")
    return ReconcilePlan(request=job_types.ApplyJob(job=document, author=seen.author))


def _read(document: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The content of a job without defaults, which a control API of another release may not know; or why it cannot
    be one, in one line."""
    try:
        job = job_document.from_json(document, "CrawlJob")
    except UsageError as error:
        return None, faults_of(error)
    if job.files:
        return None, f"spec.seeds: file {job.files[0]!r} cannot be read by the operator; give url, sitemap or feed"
    return job_document.without_empty(job.content), ""


def _ready(seen: ObservedJob, accepted: Verdict) -> Verdict:
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.job is None:
        return "False", "NoJob", "the crawler has no such job"
    if accepted[0] == "False":
        return "False", "EarlierGeneration", "the last generation that was accepted stays in effect"
    if seen.job.state == "new":
        return "False", REASONS["new"], MESSAGES["new"]
    return "True", *_state(seen.job)


def _progressing(seen: ObservedJob) -> Verdict:
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.job is None:
        return "False", "NoJob", "the crawler has no such job"
    moves = "True" if seen.job.state in ("new", "running") else "False"
    return moves, *_state(seen.job)


def _degraded(seen: ObservedJob) -> Verdict:
    """The first fault of a job that goes on all the same; the message has all causes."""
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.job is None:
        return "False", "NoJob", "the crawler has no such job"
    faults: list[tuple[str, str]] = [(fault.reason, f"{fault.cause}; {fault.remedy}") for fault in seen.job.degraded]
    faults += [
        ("RuleRefused", f"the newest spec of the rule {rule!r} is refused, pages are read by its last good one: {why}")
        for rule, why in seen.refused_rules.items()
    ]
    if not faults:
        return "False", "Healthy", "all rules of the job are there and fit their sites"
    return "True", faults[0][0], " | ".join(text for _, text in faults)


def _state(job: job_types.Job) -> tuple[str, str]:
    """Reason and message of the state of a job."""
    if job.failure is not None:
        return "Failed", f"{job.failure.cause}; {job.failure.remedy}"
    return REASONS[job.state], job.held_by or MESSAGES[job.state]


def _values(seen: ObservedJob) -> dict[str, Any]:
    """The status beside its conditions; values that are unknown now keep their last state."""
    values: dict[str, Any] = {} if seen.job is None else _numbers(seen.job)
    if seen.applied is not None:
        values["refusedSeeds"] = [
            {"url": seed.url[:8192], "reason": one_line(seed.reason)} for seed in seen.applied.refused[:MAX_REFUSED]
        ]
    return values


def _numbers(job: job_types.Job) -> dict[str, Any]:
    return {
        "state": job.state,
        "jobGeneration": job.generation,
        "rate": job.rate,
        "counts": {
            "queued": job.queued,
            "inFlight": job.in_flight,
            "stored": job.stored,
            "denied": job.denied,
            "failed": job.failed,
            "dropped": job.dropped,
        },
    }


def _answer(applied: job_types.JobApplied) -> str:
    held = "; it begins when its seeds are read" if applied.held else ""
    refused = (
        f"; {applied.refused_count:,} seeds were refused, see status.refusedSeeds" if applied.refused_count else ""
    )
    return f"the job is {applied.verdict}, generation {applied.generation}{held}{refused}"
