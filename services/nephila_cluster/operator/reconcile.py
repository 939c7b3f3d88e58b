"""The steps that reconciliations of both kinds share: refusals, deletion, the new status. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator.plan import (
    Again,
    ReconcilePlan,
    Refusal,
    Request,
    condition,
    dated,
    finalizers_of,
    find,
    settle,
)

Verdict = tuple[str, str, str]
"""Status, reason and message of a condition."""
Report = Callable[[Verdict, Again], ReconcilePlan]
"""The plan that writes the status with this condition Accepted."""
STALLED: Final = ("Invalid", "InvalidFile")
"""Reasons of Accepted that no later attempt changes."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of the control API for one resource."""

    problem: str = ""
    """Why the control API cannot be reached; the rest is then unknown."""
    refusal: Refusal | None = None
    """The control API refused the request of this reconciliation."""


def is_accepted(body: Mapping[str, Any]) -> bool:
    """Whether the present generation of a resource was accepted before."""
    before = find(body.get("status") or {}, "Accepted")
    return before.get("observedGeneration") == body["metadata"]["generation"] and before.get("status") == "True"


def fault(body: Mapping[str, Any], seen: Observed) -> Verdict | None:
    """Accepted after a refusal, or while the control API cannot be reached. An accepted generation stays accepted."""
    if seen.refusal is not None:
        return "False", "Invalid" if seen.refusal.final else "Refused", seen.refusal.message
    if not seen.problem:
        return None
    if is_accepted(body):
        before = find(body["status"], "Accepted")
        return "True", before["reason"], before["message"]
    return "Unknown", "ControlApiUnavailable", seen.problem


def generic(accepted: Verdict, ready: Verdict) -> dict[str, Verdict]:
    """The conditions by which kubectl, Argo CD and Flux follow any resource (kstatus): Reconciling is True while the
    newest generation is on its way, Stalled when the document has to change."""
    if accepted[0] == "False" and accepted[1] in STALLED:
        return {"Reconciling": ("False", *accepted[1:]), "Stalled": ("True", *accepted[1:])}
    if ready[0] == "True":
        return {"Reconciling": ("False", *ready[1:]), "Stalled": ("False", *ready[1:])}
    cause = accepted if accepted[0] != "True" else ready
    return {"Reconciling": ("True", *cause[1:]), "Stalled": ("False", *cause[1:])}


def delete(
    body: Mapping[str, Any], seen: Observed, noun: str, request: Request | None, report: Report
) -> ReconcilePlan:
    """The deletion of a resource: the request first, then the finalizer. `request`: deletes the job or rule; None when
    the control API has none."""
    if FINALIZER not in finalizers_of(body):
        return ReconcilePlan(again="never")
    if reason := seen.problem or (seen.refusal.message if seen.refusal else ""):
        return report(("Unknown", "Deleting", f"the {noun} cannot be deleted yet: {reason}"), "retry")
    if request is not None:
        return ReconcilePlan(request=request)
    return ReconcilePlan(finalizers=[finalizer for finalizer in finalizers_of(body) if finalizer != FINALIZER])


def write_status(
    body: Mapping[str, Any], verdicts: Mapping[str, Verdict], values: Mapping[str, Any], now: str, again: Again
) -> ReconcilePlan:
    """The plan that writes conditions and further values of the status."""
    old = body.get("status") or {}
    generation = body["metadata"]["generation"]
    conditions = [condition(kind, *verdict, generation) for kind, verdict in verdicts.items()]
    new = {**old, "observedGeneration": generation, "conditions": dated(old, conditions, now), **values}
    return settle(old, new, again)
