"""What a reconciliation decides: at most one request to the control API, and the state of the custom resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nephila.kernel.runtime.errors import UsageError
from nephila_control import job_types, rule_types

from nephila_cluster.operator.status import MAX_MESSAGE

Again = Literal["interval", "retry", "never"]
"""When to reconcile without an event: at the next interval, after a growing wait, or not at all."""
Request = job_types.ApplyJob | rule_types.ApplyRules | job_types.JobName | rule_types.RuleName


@dataclass(frozen=True, slots=True)
class Event:
    """An Event of Kubernetes about the resource."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the control API refused a request."""

    message: str
    final: bool
    """The same request would be refused again: the document has to change."""


@dataclass(frozen=True, slots=True)
class ReconcilePlan:
    """The next steps for one resource, in this order: finalizers, request, then status and event."""

    finalizers: list[str] | None = None
    """The new list; None: unchanged."""
    request: Request | None = None
    """After it, the resource is reconciled again with the answer."""
    status: dict[str, Any] | None = None
    """The new status; None: unchanged."""
    events: tuple[Event, ...] = ()
    again: Again = "interval"


def one_line(text: str) -> str:
    """A message of a condition or an event."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def faults_of(error: UsageError) -> str:
    """The first error of a document, which names its key, and how many more there are. Its location is left out: in a
    resource it is the same key."""
    text = str(error).partition(": ")[2] or str(error)
    return f"{text} (and {len(error.others)} more)" if error.others else text


def condition(kind: str, status: str, reason: str, message: str, generation: int) -> dict[str, Any]:
    """A condition without its time."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": one_line(message),
        "observedGeneration": generation,
    }


def find(status: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A condition of a status; empty where it has none."""
    return next((entry for entry in status.get("conditions") or [] if entry.get("type") == kind), {})


def dated(old: Mapping[str, Any], conditions: list[dict[str, Any]], now: str) -> list[dict[str, Any]]:
    """Conditions with the time of their last transition. `old`: the status that they replace."""
    dated_conditions = []
    for entry in conditions:
        before = find(old, entry["type"])
        same = before.get("status") == entry["status"]
        dated_conditions.append({**entry, "lastTransitionTime": before.get("lastTransitionTime", now) if same else now})
    return dated_conditions


def events_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Event, ...]:
    """The events of a change: one of the condition Accepted, one of the condition Degraded."""
    events = []
    before, after = find(old, "Accepted"), find(new, "Accepted")
    if any(before.get(key) != after.get(key) for key in ("status", "reason", "message")):
        events.append(Event("Normal" if after["status"] == "True" else "Warning", after["reason"], after["message"]))
    before, after = find(old, "Degraded"), find(new, "Degraded")
    was, is_now = before.get("status") == "True", after.get("status") == "True"
    if is_now and (not was or before["reason"] != after["reason"]):
        events.append(Event("Warning", after["reason"], after["message"]))
    elif was and after.get("status") == "False":
        events.append(Event("Normal", after["reason"], after["message"]))
    return tuple(events)


def settle(old: Mapping[str, Any], new: dict[str, Any], again: Again) -> ReconcilePlan:
    """The plan that writes a status, if it differs."""
    if new == old:
        return ReconcilePlan(again=again)
    return ReconcilePlan(status=new, events=events_of(old, new), again=again)


def finalizers_of(body: Mapping[str, Any]) -> list[str]:
    """The finalizers of a resource."""
    return list(body["metadata"].get("finalizers") or [])


def is_deleted(body: Mapping[str, Any]) -> bool:
    """Whether the resource is being deleted."""
    return bool(body["metadata"].get("deletionTimestamp"))


def document_of(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The document in a resource, without what Kubernetes adds."""
    metadata = {"name": body["metadata"]["name"]}
    return {"apiVersion": "nephila.dev/v1", "kind": kind, "metadata": metadata, "spec": body.get("spec") or {}}
