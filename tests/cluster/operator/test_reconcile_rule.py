"""A ParseRule: which request follows from spec, status and the rule that pages are read by, and which status."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator.plan import ReconcilePlan, Refusal
from nephila_cluster.operator.reconcile_rule import FILE_ERROR, ObservedRule, reconcile_rule
from nephila_cluster.operator.status import ParseRuleStatus
from nephila_control import rule_types
from nephila_rules.runtime import load

NOW = "2026-01-01T00:00:00Z"
SPEC = {"match": {"url": "^https://a\\.example/"}, "fields": {"title": "h1"}}


def resource(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    given = {"name": "shop", "generation": 2, "finalizers": [FINALIZER], **metadata}
    return {"metadata": given, "spec": SPEC if spec is None else spec}


def rule(spec: dict[str, Any] | None = None) -> rule_types.Rule:
    """The rule as the control API lists it."""
    document = {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": "shop"}, "spec": spec or SPEC}
    found = load.from_json(document)
    return rule_types.Rule(name="shop", version=found.rule.version, document=found.content)


def conditions(plan: ReconcilePlan) -> dict[str, tuple[str, str]]:
    assert plan.status is not None
    return {one["type"]: (one["status"], one["reason"]) for one in plan.status["conditions"]}


def message(plan: ReconcilePlan) -> str:
    assert plan.status is not None
    return str(plan.status["conditions"][0]["message"])


def test_a_rule_that_is_absent_or_different_is_applied() -> None:
    for seen in (ObservedRule(), ObservedRule(rule=rule({**SPEC, "priority": 3}))):
        request = reconcile_rule(resource(), seen, NOW).request
        assert isinstance(request, rule_types.ApplyRules)
        assert request.rules[0]["spec"] == SPEC


def test_defaults_that_the_api_server_fills_in_are_no_difference() -> None:
    spec = {**SPEC, "match": {**SPEC["match"], "content": {}}, "priority": 0}  # type: ignore[dict-item]
    plan = reconcile_rule(resource(spec), ObservedRule(rule=rule()), NOW)
    assert conditions(plan)["Accepted"] == ("True", "Applied")


def test_the_status_has_version_pages_and_health() -> None:
    health = rule_types.RuleHealth(
        rule="shop", version=1, degraded=True, findings="title is empty", pages=40, fill_rate=0.25
    )
    plan = reconcile_rule(resource(), ObservedRule(rule=rule(), health=health), NOW)
    assert conditions(plan) == {
        "Accepted": ("True", "Applied"),
        "Ready": ("True", "Live"),
        "Reconciling": ("False", "Live"),
        "Stalled": ("False", "Live"),
        "Degraded": ("True", "SiteChanged"),
    }
    status = msgspec.convert(plan.status, ParseRuleStatus)
    assert (status.version, status.pages, status.fill_rate) == (rule().version, 40, 0.25)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({**SPEC, "fields": {"title": {"css": "h1["}}}, "spec.fields.title.css: 'h1[' cannot be used"),
        ({**SPEC, "match": {"url": "(open"}}, "is not a valid RE2 expression"),
        ({"match": {"url": "x"}}, "neither fields nor outlinks nor pagination"),
        ({**SPEC, "fields": {"title": {"py": "x"}}}, "is not a file and a function in it"),
        ({**SPEC, "fields": {"title": {"constant": "x" * (1 << 20)}}}, "at most 1,048,576 are allowed"),
    ],
)
def test_a_bad_rule_is_reported_and_its_last_good_version_stays(spec: Any, words: str) -> None:
    plan = reconcile_rule(resource(spec), ObservedRule(rule=rule()), NOW)
    assert plan.request is None
    assert conditions(plan)["Accepted"] == ("False", "Invalid")
    assert conditions(plan)["Ready"] == ("False", "EarlierVersion")
    assert words in message(plan)
    assert len(message(plan)) <= 1000
    assert plan.events
    assert plan.events[0].type == "Warning"


def test_the_error_of_a_file_is_in_the_status_of_its_rule() -> None:
    body = resource(annotations={FILE_ERROR: "shop/rule.yaml:7:3: unknown key 'fild'"})
    plan = reconcile_rule(body, ObservedRule(rule=rule()), NOW)
    assert conditions(plan)["Accepted"] == ("False", "InvalidFile")
    assert message(plan) == "shop/rule.yaml:7:3: unknown key 'fild'"
    assert conditions(plan)["Ready"] == ("False", "EarlierVersion")


def test_without_the_control_api_the_rule_is_unknown() -> None:
    plan = reconcile_rule(resource(), ObservedRule(problem="http://x cannot be reached"), NOW)
    assert conditions(plan)["Accepted"] == ("Unknown", "ControlApiUnavailable")
    assert plan.again == "retry"


def test_a_refusal_is_tried_again() -> None:
    plan = reconcile_rule(resource(), ObservedRule(refusal=Refusal("rule 'shop' is a file", False)), NOW)
    assert conditions(plan)["Accepted"] == ("False", "Refused")
    assert plan.again == "retry"


def test_deletion_removes_the_rule_and_then_the_finalizer() -> None:
    assert reconcile_rule(resource(finalizers=[]), ObservedRule(), NOW).finalizers == [FINALIZER]
    body = resource(deletionTimestamp=NOW)
    assert isinstance(reconcile_rule(body, ObservedRule(rule=rule()), NOW).request, rule_types.RuleName)
    assert reconcile_rule(body, ObservedRule(), NOW).finalizers == []
    assert reconcile_rule(body, ObservedRule(problem="down"), NOW).again == "retry"
