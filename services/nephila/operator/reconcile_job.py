"""One CrawlJob: its spec and the state of its job → the next request and the new status. Pure.

The job is created or changed when the spec has a new generation or the job is absent. A pause with `nephila jobs pause`
stays until the spec changes. Invariants: a job is created only while the resource holds the finalizer; a spec that is
refused leaves the job as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephila.control import api
from nephila.kernel.documents import job_document
from nephila.kernel.runtime.errors import UsageError
from nephila.operator.plan import (
    FINALIZER,
    Again,
    Plan,
    Refusal,
    condition,
    dated,
    document_of,
    faults_of,
    finalizers_of,
    find,
    is_deleted,
    one_line,
    settle,
)
from nephila.operator.status import MAX_REFUSED

REASONS = {"new": "Starting", "running": "Crawling", "paused": "Paused", "limit": "LimitReached", "idle": "Idle"}
"""State of a job → reason of its conditions."""
MESSAGES = {
    "new": "no scheduler has reported on this generation yet",
    "running": "URLs are queued or in flight",
    "paused": "nothing is fetched",
    "limit": "a budget is spent: of the job, or of every host that is left",
    "idle": "every known URL is finished",
}


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """What is known about the job of a resource."""

    problem: str = ""
    """Why the control API cannot be asked; the rest is then unknown."""
    job: api.Job | None = None
    """None: there is no such job."""
    applied: api.JobApplied | None = None
    """The answer to the request of this reconciliation."""
    refusal: Refusal | None = None
    """That the request of this reconciliation was refused."""


def reconcile_job(body: Mapping[str, Any], seen: ObservedJob, now: str) -> Plan:
    """`now`: the time as Kubernetes writes it."""
    old = body.get("status") or {}
    if is_deleted(body):
        return _delete(body, old, seen, now)
    if FINALIZER not in finalizers_of(body):
        return Plan(finalizers=[*finalizers_of(body), FINALIZER])
    generation = body["metadata"]["generation"]
    document, fault = _read(document_of(body, "CrawlJob"))
    if document is None:
        return _report(
            old, seen, generation, ("False", "Invalid", fault), now, "never" if seen.job is None else "interval"
        )
    if seen.refusal is not None:
        accepted = ("False", "Invalid" if seen.refusal.final else "Refused", seen.refusal.message)
        return _report(old, seen, generation, accepted, now, "retry")
    before = find(old, "Accepted")
    done = before.get("observedGeneration") == generation and before.get("status") == "True"
    if seen.problem:
        accepted = (
            ("True", before["reason"], before["message"])
            if done
            else ("Unknown", "ControlApiUnavailable", seen.problem)
        )
        return _report(old, seen, generation, accepted, now, "retry")
    if seen.applied is not None:
        return _report(old, seen, generation, ("True", "Applied", _answer(seen.applied)), now, "interval")
    if done and seen.job is not None:
        return _report(old, seen, generation, ("True", before["reason"], before["message"]), now, "interval")
    return Plan(request=api.ApplyJob(job=document))


def _read(document: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The content of a job without defaults, which a control API of an earlier release may not know; or why it cannot
    be one, in one line."""
    try:
        found = job_document.from_json(document, "CrawlJob")
    except UsageError as error:
        return None, faults_of(error)
    files = [place for kind, place in found.sources if kind == "file"]
    if files:
        return None, f"spec.seeds: file {files[0]!r} cannot be read by the operator; give url, sitemap or feed"
    return _without_empty(found.content), ""


def _without_empty(content: dict[str, Any]) -> dict[str, Any]:
    """Without sections that have only defaults."""
    found = {key: _without_empty(one) if isinstance(one, dict) else one for key, one in content.items()}
    return {key: one for key, one in found.items() if one != {}}


def _delete(body: Mapping[str, Any], old: Mapping[str, Any], seen: ObservedJob, now: str) -> Plan:
    if FINALIZER not in finalizers_of(body):
        return Plan(again="never")
    generation = body["metadata"]["generation"]
    if fault := seen.problem or (seen.refusal.message if seen.refusal else ""):
        message = f"the job cannot be deleted yet: {fault}"
        return _report(old, seen, generation, ("Unknown", "Deleting", message), now, "retry")
    if seen.job is not None:
        return Plan(request=api.JobName(name=body["metadata"]["name"]))
    return Plan(finalizers=[one for one in finalizers_of(body) if one != FINALIZER], again="never")


def _report(
    old: Mapping[str, Any],
    seen: ObservedJob,
    generation: int,
    accepted: tuple[str, str, str],
    now: str,
    again: Again,
) -> Plan:
    conditions = [
        condition("Accepted", *accepted, generation),
        condition("Ready", *_ready(seen, accepted), generation),
        condition("Progressing", *_progressing(seen), generation),
    ]
    new = {**old, "observedGeneration": generation, "conditions": dated(old, conditions, now)}
    if seen.job is not None:
        new |= _numbers(seen.job)
    if seen.applied is not None:
        new["refusedSeeds"] = [
            {"url": one.url[:8192], "reason": one_line(one.reason)} for one in seen.applied.refused[:MAX_REFUSED]
        ]
    return settle(old, new, again)


def _ready(seen: ObservedJob, accepted: tuple[str, str, str]) -> tuple[str, str, str]:
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.job is None:
        return "False", "NoJob", "the crawler has no such job"
    if accepted[0] == "False":
        return "True", "EarlierGeneration", "the last generation that was accepted stays in effect"
    if seen.job.state == "new":
        return "False", REASONS["new"], MESSAGES["new"]
    return "True", REASONS[seen.job.state], MESSAGES[seen.job.state]


def _progressing(seen: ObservedJob) -> tuple[str, str, str]:
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.job is None:
        return "False", "NoJob", "the crawler has no such job"
    moves = "True" if seen.job.state in ("new", "running") else "False"
    return moves, REASONS[seen.job.state], MESSAGES[seen.job.state]


def _numbers(job: api.Job) -> dict[str, Any]:
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


def _answer(applied: api.JobApplied) -> str:
    held = "; it begins when its seeds are read" if applied.held else ""
    refused = (
        f"; {applied.refused_count:,} seeds were refused, see status.refusedSeeds" if applied.refused_count else ""
    )
    return f"the job is {applied.verdict}, generation {applied.generation}{held}{refused}"
