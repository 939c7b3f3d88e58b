"""An upgrade changes nothing that the API server does not let change: of each example, and by every value."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.installed import cluster, named_parts, rendered, upgrade
from tests.chart.test_chart import CHART, named, objects

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
PEER = [{"ipBlock": {"cidr": "10.20.0.0/16"}}]
OTHERS: dict[str, Any] = {
    "nameOverride": "",  # a name is for the life of a release
    "fullnameOverride": "",
    "crawler.partitions": 64,
    "image.digests": {"scheduler": f"sha256:{'0' * 64}"},
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}}],
    "imagePullSecrets": [{"name": "regcred"}],
    "crawler.networks": ["203.0.113.0/24=8"],
    "kafka.mode": "dev",  # another broker is another test
    "database.mode": "dev",
    "crds.enabled": False,
    "api.enabled": True,  # the operator needs it
    "rules.git.period": "20s",
    "monitoring.podMonitor.interval": "20s",
    "monitoring.serviceMonitor.enabled": False,  # beside the other monitor
    "monitoring.serviceMonitor.interval": "20s",
    "browser.keda.enabled": False,
    "browser.podSecurityContext.seccompProfile.type": "Localhost",
    "api.ingress.host": "crawl.example.org",
    "api.httpRoute.hostnames": ["crawl.example.org"],
    "api.httpRoute.parentRefs": [{"name": "public"}],
    "pod.topologySpreadConstraints": [],
    "pod.tolerations": [{"key": "spot"}],
    "pod.extraEnv": [{"name": "A", "value": "b"}],
    "pod.extraEnvFrom": [{"secretRef": {"name": "a"}}],
    "pod.extraVolumes": [{"name": "more", "emptyDir": {}}],
    "pod.extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "networkPolicy.dns": PEER,
    "networkPolicy.extraEgress": [{"to": PEER}],
    "networkPolicy.controlFrom": PEER,
    "networkPolicy.deniedNetworks": ["10.0.0.0/8"],
    "blobStore.persistence.accessModes": ["ReadWriteOnce"],
    "backup.persistence.accessModes": ["ReadWriteMany"],
    "backup.schedule": "30 4 * * *",
    "restore.from": "2026-11-23T16-40-00Z",
    "operator.namespaces": ["team"],
    "downloader.keda.enabled": False,  # beside autoscaling
    "parser.keda.enabled": False,
    "storage.keda.enabled": False,  # beside a volume
    "storage.replicas": 1,
    "rules.git.repository": "https://git.example/rules.git",
    "blobStore.url": "s3://bucket/path",
    "kafka.external.bootstrap": "kafka.test:9092",
}
"""Values whose other value does not follow from the type."""
BASES: dict[str, dict[str, Any]] = {
    "downloader.autoscaling": {"downloader": {"keda": {"enabled": False}}},
    "parser.autoscaling": {"parser": {"keda": {"enabled": False}}},
    "storage.persistence": {"storage": {"replicas": 1, "persistence": {"size": "5Gi"}}},
    "backup": {"backup": {"enabled": True}},
    "restore": {"backup": {"enabled": True}},
    "browser": {"browser": {"enabled": True}},
    "api.ingress": {"api": {"ingress": {"host": "crawl.example.org"}}},
    "api.httpRoute": {"api": {"httpRoute": {"hostnames": ["a.example"], "parentRefs": [{"name": "a"}]}}},
    "blobStore.persistence": {"blobStore": {"persistence": {"enabled": True}}},
}
"""What a section needs to have an effect."""


def leaves(values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of each value."""
    for key, value in values.items():
        here = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict) and value:
            yield from leaves(value, here)
        else:
            yield here, value


def other(path: str, value: Any, schema: dict[str, Any]) -> Any:
    """Another value that the schema accepts."""
    if path in OTHERS:
        return OTHERS[path]
    for key in path.split("."):
        schema = schema.get("properties", {}).get(key, {})
    if enum := schema.get("enum"):
        return next(one for one in enum if one != value)
    name = path.rpartition(".")[2]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, dict):
        return {} if name == "config" else {"team": "a"}
    if isinstance(value, list):
        return [*value, *PEER] if name == "peers" else value
    if name in ("cpu", "memory", "storage", "size", "shmSize"):
        return "3Gi"
    return f"{value}x" if value else "other"


def put(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The same values with another one."""
    found = copy.deepcopy(values)
    *above, last = path.split(".")
    place = found
    for key in above:
        place = place.setdefault(key, {})
    place[last] = value
    return found


@pytest.mark.parametrize("example", ["default", "laptop", "production", "strimzi", "browser"])
def test_an_upgrade_by_the_same_values_changes_nothing_that_cannot_change(example: str, tmp_path: Path) -> None:
    values = [] if example == "default" else ["-f", str(CHART / "examples" / f"{example}.yaml")]
    before = objects(*values)
    with cluster(tmp_path, before) as kubeconfig:
        after = named_parts(rendered(kubeconfig, *values))
    assert "StatefulSet web-nephila-scheduler" in after
    assert after == named_parts(before)


def test_no_value_alone_changes_what_cannot_change(tmp_path: Path) -> None:
    """Each value is given another one, some at a time; a Job with another pod has another name."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    before = objects()
    wanted = named_parts(before)
    pods: dict[str, Any] = {}
    changes = [(path, other(path, value, schema)) for path, value in leaves(VALUES)]
    changed = [(path, value) for path, value in changes if value != dict(leaves(VALUES))[path]]
    assert len(changed) > 150
    with cluster(tmp_path, before) as kubeconfig:
        for first in range(0, len(changed), 12):
            values: dict[str, Any] = {}
            for path, value in changed[first : first + 12]:
                for section, base in BASES.items():
                    if path.startswith(section):
                        values = merged(values, base)
                values = put(values, path, value)
            (tmp_path / "values.yaml").write_text(json.dumps(values))
            found = named_parts(rendered(kubeconfig, "-f", str(tmp_path / "values.yaml")))
            for key, part in found.items():
                if key.startswith("Job "):
                    assert pods.setdefault(key, part) == part, (key, values)
                else:
                    assert wanted.get(key, part) == part, (key, values)


def merged(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Both maps, the second in front."""
    found = dict(one)
    for key, value in two.items():
        found[key] = merged(found.get(key, {}), value) if isinstance(value, dict) else value
    return found


@pytest.mark.parametrize(
    "setting",
    [
        "image.tag=v2",
        "image.pullPolicy=Always",
        "image.repository=a/b",
        "imagePullSecrets[0].name=regcred",
        "commonLabels.team=a",
        "pod.labels.team=a",
        "pod.priorityClassName=high",
        "topics.nodeSelector.disk=ssd",
        "topics.resources.requests.cpu=10m",
        "crawler.partitions=128",
        "kafka.config.prefix=a-",
    ],
)
def test_a_job_with_another_pod_or_other_settings_has_another_name(setting: str) -> None:
    (before,) = (one for one in objects() if one["kind"] == "Job")
    (after,) = (one for one in objects("--set", setting) if one["kind"] == "Job")
    assert before["metadata"]["name"] != after["metadata"]["name"]
    assert after["spec"]["ttlSecondsAfterFinished"] > 0


def test_labels_and_versions_replace_neither_broker_nor_database() -> None:
    """Nor does a version replace any other pod whose image stays."""
    changes = "commonLabels.team=a,pod.labels.team=a,pod.annotations.team=a,commonAnnotations.team=a"
    before, after = objects(), objects("--set", changes)
    for name in ("web-nephila-kafka", "web-nephila-postgres"):
        one, two = (named(found, "StatefulSet", name)["spec"] for found in (before, after))
        assert one == two
    for one in before:
        if one["kind"] in ("Deployment", "StatefulSet", "Job"):
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert not {"helm.sh/chart", "app.kubernetes.io/version"} & labels.keys(), one["metadata"]["name"]


@pytest.mark.parametrize(
    ("setting", "restarted"),
    [
        ("downloader.logLevel=debug", {"downloader"}),
        ("downloader.config.concurrency=300", {"downloader"}),
        ("parser.config.window=99", {"parser"}),
        ("api.config.console_names={crawl.example.org}", {"api"}),
        ("crawler.perAddress=8", {"scheduler", "downloader"}),
        ("crawler.logLevel=debug", {"scheduler", "downloader", "parser", "storage", "api", "operator"}),
    ],
)
def test_a_setting_restarts_only_the_services_that_read_it(setting: str, restarted: set[str]) -> None:
    before, after = objects(), objects("--set", setting)
    found = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]
        for one, two in zip(before, after, strict=True)
        if one["kind"] in ("Deployment", "StatefulSet") and one["spec"]["template"] != two["spec"]["template"]
    }
    assert found == restarted


def test_topics_are_made_again_by_a_broker_without_a_volume() -> None:
    """Its pod is replaced by no upgrade, since its disk is empty then."""
    spec = named(objects("--set", "kafka.dev.storage="), "StatefulSet", "web-nephila-kafka")["spec"]
    # The API server has set rollingUpdate for a broker with a volume, and refuses it beside OnDelete.
    assert spec["updateStrategy"] == {"type": "OnDelete", "rollingUpdate": None}
    assert [one["name"] for one in spec["template"]["spec"]["containers"]] == ["kafka", "topics"]
    spec = named(objects(), "StatefulSet", "web-nephila-kafka")["spec"]
    assert "updateStrategy" not in spec
    assert [one["name"] for one in spec["template"]["spec"]["containers"]] == ["kafka"]


def live(replicas: int, value: str) -> dict[str, Any]:
    """The downloader of a release."""
    annotations = {"nephila.dev/replicas": value}
    metadata = {"name": "web-nephila-downloader", "namespace": "crawl", "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("now", "before", "settings", "replicas"),
    [
        (4, "2", "", 4),  # scaled by hand
        (0, "2", "", 0),
        (4, "2", "downloader.replicas=3", 3),  # the value changes
        (7, "2", "downloader.autoscaling.enabled=true", 7),
        (7, "2", "downloader.keda.enabled=true", 7),
    ],
)
def test_an_upgrade_takes_no_scaling_back(tmp_path: Path, now: int, before: str, settings: str, replicas: int) -> None:
    with cluster(tmp_path, [live(now, before)]) as kubeconfig:
        found = rendered(kubeconfig, *(("--set", settings) if settings else ()))
    assert named(found, "Deployment", "web-nephila-downloader")["spec"]["replicas"] == replicas


def test_a_new_release_with_an_autoscaler_leaves_the_replicas_to_it() -> None:
    found = objects("--set", "downloader.autoscaling.enabled=true")
    assert "replicas" not in named(found, "Deployment", "web-nephila-downloader")["spec"]


@pytest.mark.parametrize(("partitions", "code"), [(64, 0), (128, 1)])
def test_partitions_stay_as_the_release_has_them(tmp_path: Path, partitions: int, code: int) -> None:
    """The same number is accepted, another is refused with the reason."""
    with cluster(tmp_path, objects()) as kubeconfig:
        done = upgrade(kubeconfig, "--set", f"crawler.partitions={partitions}")
    assert done.returncode == code, done.stderr
    if code:
        assert "crawler.partitions is 64 in this release and cannot become 128" in done.stderr


def test_the_name_in_selectors_is_for_life(tmp_path: Path) -> None:
    with cluster(tmp_path, objects()) as kubeconfig:
        done = upgrade(kubeconfig, "--set", "nameOverride=other,fullnameOverride=web-nephila")
    assert done.returncode == 1
    assert "nameOverride" in done.stderr
