"""The files for Argo CD and Flux: health of resources as the operator writes them, values as the chart accepts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua54 import LuaRuntime

from tests.chart.test_chart import ROOT, template
from tests.cluster.operator.test_reconcile_job import NOW, ObservedJob, applied, job, reconcile_job, resource

GITOPS = ROOT / "charts" / "gitops"


def health(body: dict[str, Any], kind: str = "CrawlJob") -> tuple[str, str]:
    """Status and message that Argo CD shows."""
    data = yaml.safe_load((GITOPS / "argocd-health.yaml").read_text())["data"]
    lua = LuaRuntime()
    script = lua.eval(f"function(obj) {data[f'resource.customizations.health.nephila.dev_{kind}']} end")
    found = script(lua.table_from(body, recursive=True))
    return found["status"], found["message"]


def reconciled(seen: ObservedJob, **spec: Any) -> dict[str, Any]:
    """A CrawlJob with the status that the operator writes."""
    body = resource({"seeds": ["https://a.example/"], **spec})
    plan = reconcile_job(body, seen, NOW)
    return {**body, "status": plan.status}


@pytest.mark.parametrize(
    ("seen", "spec", "status"),
    [
        (ObservedJob(job=job("news", "running"), applied=applied()), {}, "Healthy"),
        (ObservedJob(job=job("news", "idle"), applied=applied()), {}, "Healthy"),
        (ObservedJob(job=job("news", "paused"), applied=applied()), {}, "Suspended"),
        (ObservedJob(job=job("news", "new"), applied=applied()), {}, "Progressing"),
        (ObservedJob(problem="no answer"), {}, "Progressing"),
        (ObservedJob(job=job("news", "running")), {"weigth": 2}, "Degraded"),
    ],
)
def test_argo_cd_shows_whether_the_newest_generation_is_in_effect(
    seen: ObservedJob, spec: dict[str, Any], status: str
) -> None:
    body = reconciled(seen, **spec)
    assert health(body)[0] == status
    body["metadata"]["generation"] += 1
    assert health(body)[0] == "Progressing"


def test_a_rule_that_no_longer_fits_its_site_is_degraded() -> None:
    conditions = [
        {"type": "Ready", "status": "True", "message": "live"},
        {"type": "Degraded", "status": "True", "message": "3 fields are empty"},
    ]
    body = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": conditions}}
    assert health(body, "ParseRule") == ("Degraded", "3 fields are empty")
    assert health({"metadata": {"generation": 1}}, "ParseRule")[0] == "Progressing"


def test_the_values_of_both_files_are_accepted_and_those_of_argo_cd_render_no_secret(tmp_path: Path) -> None:
    argo = yaml.safe_load((GITOPS / "argocd.yaml").read_text())["spec"]["source"]["helm"]["valuesObject"]
    (release,) = (one for one in yaml.safe_load_all((GITOPS / "flux.yaml").read_text()) if one["kind"] == "HelmRelease")
    for values in (argo, release["spec"]["values"]):
        (tmp_path / "values.yaml").write_text(json.dumps(values))
        done = template("-f", str(tmp_path / "values.yaml"))
        assert done.returncode == 0, done.stderr
        if values is argo:
            assert "kind: Secret\n" not in done.stdout
