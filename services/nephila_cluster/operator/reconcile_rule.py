"""One ParseRule: its spec and the rule that pages are read by → the next request and the new status. Pure.

The rule is applied when the control API has another one of its name, or none. Invariant: a spec that is refused leaves
the rule as it is, so pages are read by its last good version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from nephila.kernel.documents.yaml import MAX_BYTES
from nephila.kernel.runtime.errors import UsageError
from nephila_control import rule_types
from nephila_rules.runtime import load

from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator.plan import (
    Again,
    ReconcilePlan,
    document_of,
    faults_of,
    finalizers_of,
    is_deleted,
)
from nephila_cluster.operator.reconcile import STALLED, Observed, Verdict, delete, fault, generic, write_status

FILE = "nephila.dev/file"
"""Annotation: the file that a rule was read from."""
FILE_ERROR = "nephila.dev/file-error"
"""Annotation: why the present content of that file was refused; the spec is the last good one."""


@dataclass(frozen=True, slots=True)
class ObservedRule(Observed):
    """The rule of a resource in the control API."""

    rule: rule_types.Rule | None = None
    """The rule that pages are read by; None: there is none of this name."""
    health: rule_types.RuleHealth | None = None


def reconcile_rule(body: Mapping[str, Any], seen: ObservedRule, now: str) -> ReconcilePlan:
    """The next steps for a rule. `now`: the time as Kubernetes writes it."""

    def report(accepted: Verdict, again: Again) -> ReconcilePlan:
        ready = _ready(seen, accepted)
        verdicts = {
            "Accepted": accepted,
            "Ready": ready,
            **generic(accepted, ready),
            "Degraded": _degraded(seen, accepted),
        }
        return write_status(body, verdicts, _values(seen), now, again)

    if is_deleted(body):
        request = None if seen.rule is None else rule_types.RuleName(name=body["metadata"]["name"])
        return delete(body, seen, "rule", request, report)
    if FINALIZER not in finalizers_of(body):
        return ReconcilePlan(finalizers=[*finalizers_of(body), FINALIZER])
    document = document_of(body, "ParseRule")
    target, error = _read(document)
    if target is None:
        return report(("False", "Invalid", error), "interval")
    if (verdict := fault(body, seen)) is not None:
        return report(verdict, "retry")
    if seen.rule is None or seen.rule.document != target:
        return ReconcilePlan(request=rule_types.ApplyRules(rules=[document]))
    if error := (body["metadata"].get("annotations") or {}).get(FILE_ERROR, ""):
        return report(("False", "InvalidFile", error), "interval")
    return report(("True", "Applied", f"pages are read by version {seen.rule.version}"), "interval")


def _read(document: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The content of a rule, or why it cannot be used."""
    size = len(msgspec.json.encode(document))
    if size > MAX_BYTES:
        return None, f"the rule has {size:,} bytes; at most {MAX_BYTES:,} are allowed, divide it into several rules"
    try:
        return load.from_json(document, "ParseRule").content, ""
    except UsageError as error:
        return None, faults_of(error)


def _values(seen: ObservedRule) -> dict[str, Any]:
    """The status beside its conditions; values that are unknown now keep their last state."""
    if seen.problem:
        return {}
    return {
        "version": seen.rule.version if seen.rule else 0,
        "pages": seen.health.pages if seen.health else 0,
        "fillRate": seen.health.fill_rate if seen.health else 0.0,
    }


def _ready(seen: ObservedRule, accepted: Verdict) -> Verdict:
    if seen.problem:
        return "Unknown", "ControlApiUnavailable", seen.problem
    if seen.rule is None:
        return "False", "NoRule", "pages are not read by this rule"
    if accepted[0] == "False":
        return "False", "EarlierVersion", f"pages are read by version {seen.rule.version}, the last good one"
    return "True", "Live", f"pages are read by version {seen.rule.version}"


def _degraded(seen: ObservedRule, accepted: Verdict) -> Verdict:
    if accepted[0] == "False" and accepted[1] in STALLED:
        return "True", accepted[1], f"{_ready(seen, accepted)[2]}; the newest spec is refused: {accepted[2]}"
    if seen.health is None:
        return "Unknown", "NoPages", "no page has been read yet"
    if seen.health.degraded:
        return "True", "SiteChanged", seen.health.findings
    return "False", "Healthy", f"{seen.health.fill_rate:.0%} of the last pages have items"
