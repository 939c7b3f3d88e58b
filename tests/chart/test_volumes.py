"""Volumes: claims where they can be had, kept as they are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.installed import cluster, rendered
from tests.chart.test_chart import named, objects

SETS = ("web-nephila-kafka", "web-nephila-postgres", "web-nephila-scheduler")


def storage_class(default: bool) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local", "annotations": annotations},
    }


def with_claims(found: list[dict[str, Any]]) -> set[str]:
    return {one for one in SETS if named(found, "StatefulSet", one)["spec"].get("volumeClaimTemplates")}


@pytest.mark.parametrize(
    ("classes", "claims"), [([storage_class(True)], set(SETS)), ([storage_class(False)], set()), ([], set())]
)
def test_automatic_volumes_are_claims_where_there_is_a_default_class(
    tmp_path: Path, classes: list[dict[str, Any]], claims: set[str]
) -> None:
    with cluster(tmp_path, classes) as kubeconfig:
        assert with_claims(rendered(kubeconfig, "--set", "volumes=auto")) == claims
        assert with_claims(rendered(kubeconfig)) == set(SETS)


def test_without_a_cluster_automatic_volumes_are_claims() -> None:
    """What `helm template` of a GitOps tool renders must not depend on what it can see."""
    assert with_claims(objects("--set", "volumes=auto")) == set(SETS)


def test_a_release_without_claims_keeps_none_and_one_with_claims_keeps_theirs(tmp_path: Path) -> None:
    small = objects("--set", "kafka.dev.storage=1Gi,database.dev.storage=")
    with cluster(tmp_path, [*small, storage_class(True)]) as kubeconfig:
        found = rendered(kubeconfig, "--set", "volumes=auto,kafka.dev.storage=5Gi")
    assert with_claims(found) == {"web-nephila-kafka", "web-nephila-scheduler"}
    (claim,) = named(found, "StatefulSet", "web-nephila-kafka")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


@pytest.mark.parametrize(("size", "wanted"), [("50Gi", "50Gi"), ("1500Mi", "20Gi"), ("1Ti", "1Ti")])
def test_a_claim_grows_and_never_shrinks_or_moves(tmp_path: Path, size: str, wanted: str) -> None:
    arguments = ("--set", "blobStore.persistence.enabled=true")
    before = [one for one in objects(*arguments) if one["kind"] == "PersistentVolumeClaim"]
    before[0]["spec"]["storageClassName"] = "local"
    change = f"blobStore.persistence.size={size},blobStore.persistence.storageClass=fast"
    with cluster(tmp_path, before) as kubeconfig:
        found = rendered(kubeconfig, *arguments, "--set", change)
    (claim,) = (one for one in found if one["kind"] == "PersistentVolumeClaim")
    assert claim["spec"]["storageClassName"] == "local"
    assert claim["spec"]["resources"]["requests"]["storage"] == wanted
