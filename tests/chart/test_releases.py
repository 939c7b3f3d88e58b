"""Several releases: who serves what, whose CRDs, which rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.installed import cluster, rendered, upgrade
from tests.chart.test_chart import named, objects


def owned(kind: str, version: str, name: str, release: str) -> dict[str, Any]:
    annotations = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "crawl"}
    metadata = {"name": name, "namespace": "crawl", "annotations": annotations}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@pytest.mark.parametrize("namespace", ["crawl", "team"])
def test_a_second_release_that_serves_what_has_no_label_is_refused(tmp_path: Path, namespace: str) -> None:
    first = owned("ConfigMap", "v1", "nephila-unlabelled", "first")
    first["metadata"]["namespace"] = namespace
    settings = ("--set", "operator.namespaces={team}")
    with cluster(tmp_path, [first]) as kubeconfig:
        done = upgrade(kubeconfig, *settings)
        assert "the release crawl/first serves what has no label" in done.stderr
        assert "operator.unlabelled=false" in done.stderr
        found = rendered(kubeconfig, *settings, "--set", "operator.unlabelled=false")
    assert not [one for one in found if one["metadata"]["name"] == "nephila-unlabelled"]
    (operator,) = named(found, "Deployment", "web-nephila-operator")["spec"]["template"]["spec"]["containers"]
    env = {one["name"]: one.get("value") for one in operator["env"]}
    assert (env["NEPHILA_OPERATOR__RELEASE"], env["NEPHILA_OPERATOR__UNLABELLED"]) == ("web", "false")


@pytest.mark.parametrize(("prefix", "code"), [("", 1), ("second-", 0)])
def test_two_releases_of_a_namespace_do_not_share_topics_and_groups(tmp_path: Path, prefix: str, code: int) -> None:
    external = "kafka.mode=external,kafka.external.bootstrap=kafka.test:9092"
    first = [one for one in objects("--set", external) if one["kind"] == "ConfigMap"]
    settings = f"{external},operator.unlabelled=false,kafka.config.prefix={prefix}"
    with cluster(tmp_path, first) as kubeconfig:
        assert upgrade(kubeconfig, "--set", external).returncode == 0
        done = upgrade(kubeconfig, "--set", settings, release="second")
    assert done.returncode == code, done.stderr
    if code:
        assert "give this release another kafka.config.prefix" in done.stderr


def test_the_same_release_is_upgraded(tmp_path: Path) -> None:
    with cluster(tmp_path, [owned("ConfigMap", "v1", "nephila-unlabelled", "web")]) as kubeconfig:
        assert named(rendered(kubeconfig), "ConfigMap", "nephila-unlabelled")["data"] == {"release": "web"}


def test_an_operator_of_several_namespaces_has_a_role_in_each() -> None:
    found = objects("--set", "operator.namespaces={team}")
    roles = {one["metadata"]["namespace"]: one for one in found if one["kind"] == "Role"}
    assert set(roles) == {"crawl", "team"}
    assert {resource for rule in roles["team"]["rules"] for resource in rule["resources"]} == {
        "crawljobs",
        "parserules",
        "crawljobs/status",
        "parserules/status",
        "events",
    }
    bindings = [one for one in found if one["kind"] == "RoleBinding"]
    assert {one["metadata"]["namespace"] for one in bindings} == {"crawl", "team"}
    for one in bindings:
        assert one["roleRef"]["name"] == roles[one["metadata"]["namespace"]]["metadata"]["name"]
        assert one["subjects"][0]["namespace"] == "crawl"
    (operator,) = named(found, "Deployment", "web-nephila-operator")["spec"]["template"]["spec"]["containers"]
    env = {one["name"]: one.get("value") for one in operator["env"]}
    assert env["NEPHILA_OPERATOR__NAMESPACES"] == '["team"]'


def test_crds_and_roles_of_another_release_are_left_to_it(tmp_path: Path) -> None:
    version = "apiextensions.k8s.io/v1"
    foreign = owned("CustomResourceDefinition", version, "crawljobs.nephila.dev", "first")
    own = owned("CustomResourceDefinition", version, "parserules.nephila.dev", "web")
    role = owned("ClusterRole", "rbac.authorization.k8s.io/v1", "nephila-edit", "first")
    with cluster(tmp_path, [foreign, own, role]) as kubeconfig:
        found = {one["metadata"]["name"] for one in rendered(kubeconfig)}
    assert {"parserules.nephila.dev", "nephila-view"} <= found
    assert not {"crawljobs.nephila.dev", "nephila-edit"} & found


def test_the_roles_view_edit_and_admin_of_a_cluster_know_both_kinds() -> None:
    found = objects()
    for role, verb in (("view", "list"), ("edit", "create")):
        one = named(found, "ClusterRole", f"nephila-{role}")
        assert one["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{role}"] == "true"
        (rule,) = one["rules"]
        assert verb in rule["verbs"]
        assert rule["resources"] == ["crawljobs", "parserules"]
    labels = named(found, "ClusterRole", "nephila-edit")["metadata"]["labels"]
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in labels


def test_secrets_stay_as_they_are(tmp_path: Path) -> None:
    """Over an upgrade, and over an uninstallation: the volume of the database has the password of the first."""
    before = [one for one in objects() if one["kind"] == "Secret"]
    assert all(one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for one in before)
    with cluster(tmp_path, before) as kubeconfig:
        after = [one for one in rendered(kubeconfig) if one["kind"] == "Secret"]
    assert [one["data"] for one in after] == [one["data"] for one in before]


def test_an_image_can_be_named_by_its_digest() -> None:
    digest = f"sha256:{'0' * 64}"
    found = objects("--set", f"image.digests.scheduler={digest}")
    images = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in found
        if one["kind"] in ("Deployment", "StatefulSet")
    }
    assert images["web-nephila-scheduler"] == f"nephila-scheduler@{digest}"
    assert "@" not in images["web-nephila-parser"]


def test_named_secrets_make_every_rendering_the_same() -> None:
    settings = ("--set", "api.existingSecret=token,database.dev.existingSecret=database")
    assert not [one for one in objects(*settings) if one["kind"] == "Secret"]
    assert objects(*settings) == objects(*settings, "--debug")


@pytest.mark.parametrize("component", ["kafka", "database", "bucket"])
def test_peers_outside_are_reached_by_the_services_that_need_them(component: str) -> None:
    settings = (
        "kafka.mode=external,kafka.external.bootstrap=k:9092,database.mode=external,"
        "database.external.existingSecret=db,blobStore.url=s3://bucket,"
        f"networkPolicy.{component}.peers[0].ipBlock.cidr=10.20.0.0/16,backup.enabled=true"
    )
    found = objects("--set", settings)
    peers = {"to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}]}
    allowed = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]
        for one in found
        if one["kind"] == "NetworkPolicy" and any(peers["to"] == rule.get("to") for rule in one["spec"]["egress"])
    }
    every = {"scheduler", "downloader", "parser", "storage", "api", "backup"}
    wanted = {"kafka": every | {"topics", "test"}, "database": {"storage", "api", "backup"}, "bucket": every}
    assert allowed == wanted[component]


def test_the_control_api_is_closed_to_other_pods() -> None:
    def sources(*arguments: str) -> list[Any]:
        (rule,) = named(objects(*arguments), "NetworkPolicy", "web-nephila-api")["spec"]["ingress"]
        return list(rule["from"])

    own = {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": "web"}}}
    assert sources() == [own]
    peer = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    assert sources("--set", "networkPolicy.controlFrom[0].namespaceSelector.matchLabels.a=b") == [own, peer]
    assert sources("--set", "networkPolicy.metricsFrom.matchLabels.a=b") == [own, peer]
