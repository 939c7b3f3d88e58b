"""Downloaders with a browser in the chart: their image, sandbox, memory and scale; the plain ones stay as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from nephila.downloader.service import BROWSER_GROUP
from nephila.kernel.topics import REQUESTS_BROWSER
from nephila_cluster.service import settings

from tests.chart.test_chart import CHART, named, objects, template

EXAMPLE = ("-f", str(CHART / "examples" / "browser.yaml"))
NAME = "web-nephila-browser"


def browser(*arguments: str) -> dict[str, Any]:
    return dict(named(objects(*EXAMPLE, *arguments), "Deployment", NAME)["spec"]["template"]["spec"])


def test_a_release_has_no_browser_unless_it_is_asked_for() -> None:
    assert not [one for one in objects() if one["metadata"]["name"] == NAME]
    kinds = {one["kind"] for one in objects(*EXAMPLE) if one["metadata"]["name"] == NAME}
    assert kinds == {"Deployment", "ServiceAccount", "NetworkPolicy"} | (
        {"PodDisruptionBudget"} if "PodDisruptionBudget" in kinds else set()
    )


def test_a_browser_is_a_downloader_with_another_image() -> None:
    (container,) = browser()["containers"]
    assert container["image"] == "nephila-browser:0.1.0"
    assert container["args"] == ["service", "downloader"]
    (container,) = browser("--set", "crawler.topology=fetchparse")["containers"]
    assert container["args"] == ["service", "fetchparse"]


def test_chromium_has_a_sandbox_and_shared_memory_within_its_limit() -> None:
    pod = browser()
    profile = {"type": "Localhost", "localhostProfile": "seccomp-browser.json"}
    assert pod["securityContext"]["seccompProfile"] == profile
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}} in pod["volumes"]
    assert {one["name"]: one["mountPath"] for one in container["volumeMounts"]}["shm"].endswith("/shm")
    assert container["resources"]["limits"]["memory"] == "4Gi"


def test_a_node_without_the_profile_runs_it_by_values() -> None:
    context = json.dumps({"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": None}})
    pod = browser("--set-json", f"browser.podSecurityContext={context}")
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_program_reads_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a browser by its file alone, also in an image of one's own."""
    for name in [name for name in os.environ if name.startswith("NEPHILA_")]:
        monkeypatch.delenv(name)
    data = named(objects(*EXAMPLE, "--set", "crawler.userAgent=examplebot/2.0"), "ConfigMap", "web-nephila-config")
    for name, enabled in (("system.yaml", False), ("browser.yaml", True)):
        (tmp_path / name).write_text(data["data"][name])
        assert settings.read("downloader", str(tmp_path / name)).service.browser.enabled is enabled


def test_its_settings_are_those_of_downloaders_but_for_its_own() -> None:
    words = (
        "--set",
        "downloader.config.concurrency=9,browser.config.concurrency=3,downloader.config.browser.pages=7,browser.config.browser.processes=2",
    )
    data = named(objects(*EXAMPLE, *words), "ConfigMap", "web-nephila-config")["data"]
    system, own = (yaml.safe_load(data[key]) for key in ("system.yaml", "browser.yaml"))
    assert (system["downloader"]["concurrency"], own["downloader"]["concurrency"]) == (9, 3)
    assert own["downloader"]["browser"] == {"enabled": True, "pages": 7, "processes": 2}
    assert system["downloader"]["browser"] == {"pages": 7}
    assert {key: value for key, value in own.items() if key != "downloader"} == {
        key: value for key, value in system.items() if key != "downloader"
    }
    (container,) = browser(*words)["containers"]
    assert {"name": "NEPHILA_CONFIG", "value": "/etc/nephila/browser.yaml"} in container["env"]


@pytest.mark.parametrize(
    ("setting", "restarted"),
    [
        ("browser.config.concurrency=3", {"browser"}),
        ("downloader.config.concurrency=3", {"browser", "downloader"}),
        ("parser.config.max_links=3", {"parser"}),
    ],
)
def test_a_setting_restarts_the_members_that_read_it(setting: str, restarted: set[str]) -> None:
    def checksums(*words: str) -> dict[str, str]:
        return {
            one["metadata"]["labels"]["app.kubernetes.io/component"]: annotations["checksum/config"]
            for one in objects(*EXAMPLE, *words)
            if "checksum/config"
            in (annotations := one.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {}))
        }

    before, after = checksums(), checksums("--set", setting)
    assert {name for name in before if before[name] != after[name]} == restarted


def test_only_fetching_members_reach_public_addresses() -> None:
    policies = {one["metadata"]["name"]: one for one in objects(*EXAMPLE) if one["kind"] == "NetworkPolicy"}
    public = {
        name.removeprefix("web-nephila-")
        for name, policy in policies.items()
        if any(
            peer.get("ipBlock", {}).get("cidr") == "0.0.0.0/0"
            for rule in policy["spec"]["egress"]
            for peer in rule.get("to", [])
        )
    }
    assert public == {"browser", "downloader"}


def test_it_scales_by_itself() -> None:
    found = objects(*EXAMPLE, "--set", "browser.keda.enabled=true,browser.keda.maxReplicas=5")
    scaler = named(found, "ScaledObject", NAME)["spec"]
    assert (scaler["maxReplicaCount"], scaler["scaleTargetRef"]) == (5, {"name": NAME})
    trigger = scaler["triggers"][0]["metadata"]
    assert (trigger["topic"], trigger["consumerGroup"]) == (REQUESTS_BROWSER.name, BROWSER_GROUP)
    assert "replicas" not in named(found, "Deployment", NAME)["spec"]
    found = objects(*EXAMPLE, "--set", "browser.autoscaling.enabled=true")
    assert named(found, "HorizontalPodAutoscaler", NAME)["spec"]["scaleTargetRef"]["name"] == NAME
    assert named(objects(*EXAMPLE), "Deployment", NAME)["spec"]["replicas"] == 2
    both = template(*EXAMPLE, "--set", "browser.autoscaling.enabled=true,browser.keda.enabled=true")
    assert "browser.autoscaling and browser.keda are both enabled" in both.stderr
    off = objects("--set", "browser.keda.enabled=true")
    assert not [one for one in off if one["kind"] in ("ScaledObject", "TriggerAuthentication")]
