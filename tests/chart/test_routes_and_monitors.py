"""Ingress and HTTPRoute of the API, PodMonitor and ServiceMonitor; image and security contexts of one component."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.chart.test_chart import named, objects, pods, system_of, template

INGRESS = "api.ingress.enabled=true,api.ingress.host=crawl.example.org"
ROUTE = {
    "enabled": True,
    "hostnames": ["crawl.example.org"],
    "parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "https"}],
}
SERVICE_MONITOR = (
    "--api-versions=monitoring.coreos.com/v1/ServiceMonitor",
    "--set",
    "monitoring.serviceMonitor.enabled=true",
)


def test_an_ingress_serves_api_and_console_by_tls() -> None:
    found = objects("--set", f"{INGRESS},api.ingress.className=nginx,api.ingress.tls.secretName=crawl-tls")
    spec = named(found, "Ingress", "web-nephila-api")["spec"]
    assert spec["tls"] == [{"hosts": ["crawl.example.org"], "secretName": "crawl-tls"}]
    assert spec["ingressClassName"] == "nginx"
    (rule,) = spec["rules"]
    assert rule["host"] == "crawl.example.org"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    ports = named(found, "Service", backend["name"])["spec"]["ports"]
    assert backend["port"]["name"] in {port["name"] for port in ports}
    assert "crawl.example.org" in system_of(found)["api"]["console_names"]
    plain = named(objects("--set", f"{INGRESS},api.ingress.tls.enabled=false"), "Ingress", "web-nephila-api")
    assert "tls" not in plain["spec"]
    default = named(objects("--set", INGRESS), "Ingress", "web-nephila-api")
    assert default["spec"]["tls"] == [{"hosts": ["crawl.example.org"]}]


def test_a_route_of_the_gateway_api_names_its_listener() -> None:
    found = objects("--set-json", f"api.httpRoute={json.dumps(ROUTE)}")
    spec = named(found, "HTTPRoute", "web-nephila-api")["spec"]
    assert (spec["parentRefs"], spec["hostnames"]) == (ROUTE["parentRefs"], ROUTE["hostnames"])
    (backend,) = spec["rules"][0]["backendRefs"]
    ports = named(found, "Service", backend["name"])["spec"]["ports"]
    assert backend["port"] in {port["port"] for port in ports}
    assert "crawl.example.org" in system_of(found)["api"]["console_names"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("api.ingress.enabled=true", "api.ingress.host is required"),
        ("api.httpRoute.enabled=true", "api.httpRoute.parentRefs and api.httpRoute.hostnames are required"),
        (f"{INGRESS},api.enabled=false,operator.enabled=false", "need api.enabled"),
        ("monitoring.podMonitor.enabled=true,monitoring.serviceMonitor.enabled=true", "both enabled"),
        ("monitoring.serviceMonitor.enabled=true", "no CRD ServiceMonitor"),
        ("api.ingress.host=https://crawl.example.org", "host"),
    ],
)
def test_what_leads_nowhere_is_refused(setting: str, message: str) -> None:
    done = template("--set", setting)
    assert done.returncode != 0
    assert message in done.stderr


def test_a_service_monitor_scrapes_each_member_once() -> None:
    found = objects(*SERVICE_MONITOR)
    assert not [one for one in found if one["kind"] == "PodMonitor"]
    spec = named(found, "ServiceMonitor", "web-nephila")["spec"]
    chosen = [
        one
        for one in found
        if one["kind"] == "Service" and spec["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
    ]
    (service,) = chosen
    (port,) = service["spec"]["ports"]
    assert spec["endpoints"][0]["port"] == port["name"]
    with_port = {
        name
        for name, pod in pods(found)
        if any(one["name"] == port["targetPort"] for item in pod["containers"] for one in item.get("ports", []))
    }
    assert {name.partition(" ")[2].removeprefix("web-nephila-") for name in with_port} == {
        *("scheduler", "downloader", "parser", "storage", "api", "operator")
    }
    pod_monitor = named(objects("--set", "monitoring.podMonitor.enabled=true"), "PodMonitor", "web-nephila")["spec"]
    assert pod_monitor["podMetricsEndpoints"][0]["relabelings"] == spec["endpoints"][0]["relabelings"]


@pytest.mark.parametrize(
    ("section", "pod"),
    [
        ("scheduler", "StatefulSet web-nephila-scheduler"),
        ("downloader", "Deployment web-nephila-downloader"),
        ("browser", "Deployment web-nephila-browser"),
        ("parser", "Deployment web-nephila-parser"),
        ("storage", "Deployment web-nephila-storage"),
        ("api", "Deployment web-nephila-api"),
        ("operator", "Deployment web-nephila-operator"),
        ("backup", "CronJob web-nephila-backup"),
        ("topics", "Job web-nephila-topics"),
        ("kafka.dev", "StatefulSet web-nephila-kafka"),
        ("database.dev", "StatefulSet web-nephila-postgres"),
    ],
)
def test_a_component_has_its_own_image_and_security_context(section: str, pod: str) -> None:
    values: dict[str, Any] = {
        "image": "mirror.example.org/own@sha256:" + "0" * 64,
        "podSecurityContext": {"fsGroup": 7, "supplementalGroups": [9]},
        "securityContext": {"runAsUser": 77},
    }
    words = [word for key, value in values.items() for word in ("--set-json", f"{section}.{key}={json.dumps(value)}")]
    found = objects("--set", "browser.enabled=true,backup.enabled=true", *words)
    for name, spec in pods(found):
        container = [*spec.get("initContainers", []), *spec["containers"]][0]
        own = name.startswith(pod)
        if name.startswith("Pod "):  # the test of the release has the image of topics
            continue
        assert (container["image"] == values["image"]) is own, name
        assert (spec["securityContext"]["fsGroup"] == 7) is own, name
        assert (container["securityContext"].get("runAsUser") == 77) is own, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
