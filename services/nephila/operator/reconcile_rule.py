"""One ParseRule: its spec and the rule that pages are read by → the next request and the new status. Pure.

The rule is applied when the control API has another one of its name, or none. Invariant: a spec that is refused leaves
the rule as it is, so pages are read by its last good version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nephila.control import api
from nephila.kernel.documents.yaml import MAX_BYTES
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
    settle,
)
from nephila.parser.rules import load

FILE = "nephila.dev/file"
"""Annotation: the file that a rule was read from."""
FILE_ERROR = "nephila.dev/file-error"
"""Annotation: why the present content of that file was refused; the spec is the last good one."""


@dataclass(frozen=True, slots=True)
class ObservedRule:
    """What is known about the rule of a resource."""

    problem: str = ""
    """Why the control API cannot be asked; the rest is then unknown."""
    rule: api.Rule | None = None
    """The rule that pages are read by; None: there is none of this name."""
    health: api.RuleHealth | None = None
    refusal: Refusal | None = None
    """That the request of this reconciliation was refused."""


def reconcile_rule(body: Mapping[str, Any], seen: ObservedRule, now: str) -> Plan:
    """`now`: the time as Kubernetes writes it."""
    old = body.get("status") or {}
    if is_deleted(body):
        return _delete(body, old, seen, now)
    if FINALIZER not in finalizers_of(body):
        return Plan(finalizers=[*finalizers_of(body), FINALIZER])
    generation = body["metadata"]["generation"]
    document = document_of(body, "ParseRule")
    wanted, fault = _read(document)
    if wanted is None:
        return _report(old, seen, generation, ("False", "Invalid", fault), now, "interval")
    if seen.refusal is not None:
        accepted = ("False", "Invalid" if seen.refusal.final else "Refused", seen.refusal.message)
        return _report(old, seen, generation, accepted, now, "retry")
    before = find(old, "Accepted")
    if seen.problem:
        done = before.get("observedGeneration") == generation and before.get("status") == "True"
        accepted = (
            ("True", before["reason"], before["message"])
            if done
            else ("Unknown", "ControlApiUnavailable", seen.problem)
        )
        return _report(old, seen, generation, accepted, now, "retry")
    if seen.rule is not None and seen.rule.document == wanted:
        if error := (body["metadata"].get("annotations") or {}).get(FILE_ERROR):
            return _report(old, seen, generation, ("False", "InvalidFile", error), now, "interval")
        message = f"pages are read by version {seen.rule.version}"
        return _report(old, seen, generation, ("True", "Applied", message), now, "interval")
    return Plan(request=api.ApplyRules(rules=[document]))


def _read(document: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The content of a rule, or why it cannot be used."""
    size = len(msgspec.json.encode(document))
    if size > MAX_BYTES:
        return None, f"the rule has {size:,} bytes; at most {MAX_BYTES:,} are allowed, divide it into several rules"
    try:
        return load.from_json(document, "ParseRule").content, ""
    except UsageError as error:
        return None, faults_of(error)


def _delete(body: Mapping[str, Any], old: Mapping[str, Any], seen: ObservedRule, now: str) -> Plan:
    if FINALIZER not in finalizers_of(body):
        return Plan(again="never")
    generation = body["metadata"]["generation"]
    if fault := seen.problem or (seen.refusal.message if seen.refusal else ""):
        message = f"the rule cannot be deleted yet: {fault}"
        return _report(old, seen, generation, ("Unknown", "Deleting", message), now, "retry")
    if seen.rule is not None:
        return Plan(request=api.RuleName(name=body["metadata"]["name"]))
    return Plan(finalizers=[one for one in finalizers_of(body) if one != FINALIZER], again="never")


def _report(
    old: Mapping[str, Any],
    seen: ObservedRule,
    generation: int,
    accepted: tuple[str, str, str],
    now: str,
    again: Again,
) -> Plan:
    conditions = [
        condition("Accepted", *accepted, generation),
        condition("Ready", *_ready(seen, accepted), generation),
        condition("Degraded", *_degraded(seen), generation),
    ]
    new = {**old, "observedGeneration": generation, "conditions": dated(old, conditions, now)}
    if not seen.problem:
        new["version"] = seen.rule.version if seen.rule else 0
        new["pages"] = seen.health.pages if seen.health else 0
        new["fillRate"] = seen.health.fill_rate if seen.health else 0.0
    return settle(old, new, again)


def _ready(seen: ObservedRule, accepted: tuple[str, str, str]) -> tuple[str, str, str]:
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.rule is None:
        return "False", "NoRule", "pages are not read by this rule"
    if accepted[0] == "False":
        return "True", "EarlierVersion", f"pages are read by version {seen.rule.version}, the last good one"
    return "True", "Live", f"pages are read by version {seen.rule.version}"


def _degraded(seen: ObservedRule) -> tuple[str, str, str]:
    if seen.health is None:
        return "Unknown", "NoPages", "no page has been read yet"
    if seen.health.degraded:
        return "True", "SiteChanged", seen.health.findings
    return "False", "Healthy", f"{seen.health.fill_rate:.0%} of the last pages have items"
