"""Tenants of namespaces: the settings of services and operator, and the admission policy that is made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from nephila.scheduler.tenants.tenants import tenants

from tests.chart.test_chart import named, objects, system_of, template

TENANTS = ["news pages=100 namespaces=press,radio share=2", "shop namespaces=shop", "free pages=5"]
NAME = "crawl-web-nephila-crawljobs"


@pytest.fixture
def values(tmp_path: Path) -> tuple[str, str]:
    """Words of helm for two tenants with namespaces and one without."""
    file = tmp_path / "values.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "crawler": {"tenants": TENANTS},
                "operator": {"namespaces": ["press", "shop"]},
                "admission": {"enabled": True},
            }
        )
    )
    return "-f", str(file)


def operator_settings(rendered: list[dict[str, Any]]) -> dict[str, str]:
    pod = named(rendered, "Deployment", "web-nephila-operator")["spec"]["template"]["spec"]
    return {one["name"]: one.get("value", "") for one in pod["containers"][0]["env"]}


def test_services_and_operator_read_the_same_tenants(values: tuple[str, str]) -> None:
    rendered = objects(*values)
    assert system_of(rendered)["tenants"] == TENANTS
    settings = operator_settings(rendered)
    assert json.loads(settings["NEPHILA_OPERATOR__TENANTS"]) == TENANTS
    assert settings["NEPHILA_OPERATOR__AUTHOR_ANNOTATION"] == "true"
    assert operator_settings(objects())["NEPHILA_OPERATOR__AUTHOR_ANNOTATION"] == "false"


def test_the_policy_has_the_namespaces_of_the_operator(values: tuple[str, str]) -> None:
    """Its map is the one that the operator makes of the same setting."""
    rendered = objects(*values)
    policy = named(rendered, "ValidatingAdmissionPolicy", NAME)
    binding = named(rendered, "ValidatingAdmissionPolicyBinding", NAME)
    for one in (policy, binding):
        assert "namespace" not in one["metadata"]
        kubernetes_validate.validate(one, "1.34.0", strict=True)
    variables = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
    bound = {place: name for name, tenant in tenants(TENANTS).items() for place in tenant.namespaces}
    assert json.loads(variables["tenantOf"]) == bound
    expressions = [one["expression"] for one in policy["spec"]["validations"]]
    assert len(expressions) == 2
    assert '["news","shop"]' in expressions[1]
    # Else the finalizer of an object that is older than the policy could not be removed.
    assert all("variables.sameSpec" in expression for expression in expressions)
    (selector,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert selector["values"] == ["crawl", "press", "shop"]
    assert binding["spec"]["validationActions"] == ["Deny"]


def test_without_tenants_only_the_author_is_checked() -> None:
    policy = named(objects("--set=admission.enabled=true"), "ValidatingAdmissionPolicy", NAME)
    assert len(policy["spec"]["validations"]) == 1
    assert not [one for one in objects() if one["kind"].startswith("ValidatingAdmission")]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--set=admission.enabled=true,operator.enabled=false",), "admission.enabled needs operator.enabled"),
        (("--set=admission.enabled=true", "--kube-version=1.29.0"), "admission.enabled needs Kubernetes 1.30"),
    ],
)
def test_a_policy_without_effect_is_refused(words: tuple[str, ...], line: str) -> None:
    done = template(*words)
    assert done.returncode == 1
    assert line in done.stderr


def test_another_tenant_restarts_those_that_read_it(values: tuple[str, str]) -> None:
    """Neither downloaders nor parsers nor storage."""

    def checksums(rendered: list[dict[str, Any]]) -> dict[str, str]:
        return {
            one["metadata"]["name"].removeprefix("web-nephila-"): json.dumps(one["spec"]["template"], sort_keys=True)
            for one in rendered
            if one["kind"] in ("Deployment", "StatefulSet")
        }

    before, after = checksums(objects()), checksums(objects(*values))
    assert {name for name in before if before[name] != after[name]} == {"scheduler", "api", "operator"}
