"""Common labels and annotations take nothing off an object, in every example and with everything switched on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.test_chart import EXAMPLES, objects, template

COMMON = {
    "commonLabels": {"team": "search", "release": "theirs", "app.kubernetes.io/name": "other"},
    "commonAnnotations": {"example.org/owner": "search", "helm.sh/resource-policy": "delete"},
}
"""Keys of the release's own, and keys that the chart or another value sets."""
EVERYTHING = {
    "backup": {"enabled": True},
    "storage": {"persistence": {"size": "1Gi"}},
    "blobStore": {"persistence": {"enabled": True}},
    "downloader": {"autoscaling": {"enabled": True}, "annotations": {"checksum/config": "x", "a": "b"}},
    "parser": {"keda": {"enabled": True}, "labels": {"app.kubernetes.io/component": "x", "team": "parser"}},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/crawl"}},
    "monitoring": {
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True},
    },
}
CLUSTER_WIDE = ("CustomResourceDefinition", "ClusterRole")
"""Objects of the chart nephila-crds, which belong to no release."""


class OnceLoader(yaml.CSafeLoader):
    """A loader that refuses a mapping with a key twice, as strict readers of YAML do."""


def _mapping(loader: OnceLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [key.value for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return loader.construct_mapping(node, deep=True)


OnceLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def arguments(*files: Path, **values: Any) -> list[str]:
    words = [word for path in files for word in ("-f", str(path))]
    return [*words, *(word for key, value in values.items() for word in ("--set-json", f"{key}={json.dumps(value)}"))]


CASES = [pytest.param(arguments(path), id=path.stem) for path in EXAMPLES]
CASES += [pytest.param(arguments(**EVERYTHING), id="everything"), pytest.param([], id="default")]


@pytest.mark.parametrize("words", CASES)
def test_every_object_keeps_its_labels_and_annotations(words: list[str]) -> None:
    plain = {(one["kind"], one["metadata"]["name"]): one["metadata"] for one in objects(*words)}
    common = {(one["kind"], one["metadata"]["name"]): one["metadata"] for one in objects(*words, *arguments(**COMMON))}
    assert {name for kind, name in plain if kind != "Job"} == {name for kind, name in common if kind != "Job"}
    for (kind, name), metadata in plain.items():
        if kind in CLUSTER_WIDE or kind == "Job":  # the name of the Job is a hash of its labels
            continue
        own = common[kind, name]
        assert own["labels"] == COMMON["commonLabels"] | metadata["labels"], name
        assert own["annotations"] == COMMON["commonAnnotations"] | metadata.get("annotations", {}), name


@pytest.mark.parametrize("words", CASES)
def test_no_object_has_a_key_twice(words: list[str]) -> None:
    done = template(*words, *arguments(**COMMON))
    assert done.returncode == 0, done.stderr
    assert len(list(yaml.load_all(done.stdout, OnceLoader))) > 10


@pytest.mark.parametrize("words", CASES)
def test_pods_have_the_labels_that_select_them(words: list[str]) -> None:
    for one in objects(*words, *arguments(**COMMON)):
        spec = one.get("spec", {})
        if one["kind"] in ("Deployment", "StatefulSet"):
            assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_monitoring_is_selected_with_common_annotations() -> None:
    """The labels by which Prometheus and the sidecar of Grafana select their objects."""
    labels = {one["kind"]: one["metadata"]["labels"] for one in objects(*arguments(**EVERYTHING, **COMMON))}
    assert labels["PodMonitor"]["release"] == labels["PrometheusRule"]["release"] == "prometheus"
    dashboards = [
        one["metadata"]["labels"].get("grafana_dashboard")
        for one in objects(*arguments(**EVERYTHING, **COMMON))
        if "-dashboard-" in one["metadata"]["name"]
    ]
    assert len(dashboards) > 5
    assert set(dashboards) == {"1"}


def test_each_service_account_has_the_annotations_of_the_values() -> None:
    """That of the operator as well, and beside the common ones."""
    accounts = [one for one in objects(*arguments(**EVERYTHING, **COMMON)) if one["kind"] == "ServiceAccount"]
    assert {one["metadata"]["name"].removeprefix("web-nephila-") for one in accounts} == {
        *("scheduler", "downloader", "parser", "storage", "api", "operator")
    }
    for one in accounts:
        assert one["metadata"]["annotations"] == {
            **EVERYTHING["serviceAccount"]["annotations"],
            **COMMON["commonAnnotations"],
        }


def test_uninstall_keeps_every_claim_and_the_secrets_that_open_it() -> None:
    """A claim of a StatefulSet is no object of the release; Helm deletes the others without the policy."""
    found = objects(*arguments(**EVERYTHING))
    kept = {
        (one["kind"], one["metadata"]["name"])
        for one in found
        if one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    claims = {(one["kind"], one["metadata"]["name"]) for one in found if one["kind"] == "PersistentVolumeClaim"}
    assert {name for _, name in claims} == {"web-nephila-storage", "web-nephila-blobs", "web-nephila-backup"}
    assert claims | {("Secret", "web-nephila-postgres"), ("Secret", "web-nephila-api")} <= kept
