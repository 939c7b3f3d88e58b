"""The CronJob of backups: off by default, the frontier before the rows, on a volume that outlives the release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.installed import cluster, rendered
from tests.chart.test_chart import CHART, named, objects, pods, template

PRODUCTION = ("-f", str(CHART / "examples" / "production.yaml"))


def test_it_is_off_by_default() -> None:
    assert not [one for one in objects() if one["kind"] == "CronJob" or one["metadata"]["name"].endswith("-backup")]


@pytest.mark.parametrize("arguments", [("--set=backup.enabled=true",), PRODUCTION], ids=["dev", "production"])
def test_the_frontier_is_saved_before_the_rows(arguments: tuple[str, ...]) -> None:
    found = objects(*arguments)
    pod = named(found, "CronJob", "web-nephila-backup")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (frontier,), (rows,) = pod["initContainers"], pod["containers"]
    assert "nephila backup --bootstrap /etc/nephila/system.yaml --to /backups --without-rows" in frontier["args"][0]
    assert "pg_dump" in rows["args"][0]
    assert {"name": "backups", "mountPath": "/backups"} in frontier["volumeMounts"]
    assert {"name": "backups", "mountPath": "/backups"} in rows["volumeMounts"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for one in (frontier, rows) for mount in one["volumeMounts"]} <= volumes
    for one in (frontier, rows):
        assert one["securityContext"]["readOnlyRootFilesystem"] is True
    claim = named(found, "PersistentVolumeClaim", "web-nephila-backup")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_an_existing_claim_is_used() -> None:
    found = objects("--set=backup.enabled=true", "--set=backup.persistence.existingClaim=nas")
    pod = named(found, "CronJob", "web-nephila-backup")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert {"name": "backups", "persistentVolumeClaim": {"claimName": "nas"}} in pod["volumes"]
    assert not [one for one in found if one["kind"] == "PersistentVolumeClaim" and "backup" in one["metadata"]["name"]]


def test_it_may_reach_the_broker_and_the_database() -> None:
    found = objects("--set=backup.enabled=true", "--set=networkPolicy.enabled=true")
    policy = named(found, "NetworkPolicy", "web-nephila-backup")
    ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())}
    assert {9092, 5432} <= ports


RESTORE = ("-f", str(CHART / "examples" / "restore.yaml"))
EXTERNAL = (*PRODUCTION, "--set=restore.enabled=true,restore.from=2026-11-23T16-40-00Z")


def restore_job(*arguments: str) -> dict[str, Any]:
    """The Job that restores."""
    (job,) = [one for one in objects(*arguments) if one["metadata"]["name"].startswith("web-nephila-restore-")]
    assert job["kind"] == "Job"
    return job


@pytest.mark.parametrize("arguments", [RESTORE, EXTERNAL], ids=["dev", "production"])
def test_the_rows_are_restored_before_the_frontier(arguments: tuple[str, ...]) -> None:
    """A frontier without rows would count them as stored."""
    pod = restore_job(*arguments)["spec"]["template"]["spec"]
    (rows,), (frontier,) = pod["initContainers"], pod["containers"]
    assert "pg_restore" in rows["args"][0]
    assert "nephila restore" in frontier["args"][0]
    assert "--without-rows" in frontier["args"][0]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for one in (frontier, rows) for mount in one["volumeMounts"]} <= volumes
    for container in (frontier, rows):
        assert {"name": "backups", "mountPath": "/backups", "readOnly": True} in container["volumeMounts"]


def test_secrets_of_a_backup_and_of_a_restore_are_files() -> None:
    """A variable with a password would be in the description of the pod's container."""
    for arguments in (RESTORE, EXTERNAL):
        for name, pod in pods(objects(*arguments)):
            if name.startswith("StatefulSet"):
                continue
            for container in (*pod.get("initContainers", ()), *pod["containers"]):
                keys = [one["valueFrom"] for one in container.get("env", ()) if "valueFrom" in one]
                assert not [one for one in keys if "secretKeyRef" in one], name


@pytest.mark.parametrize("arguments", [RESTORE, EXTERNAL], ids=["dev", "production"])
def test_no_service_runs_while_a_backup_is_restored(arguments: tuple[str, ...]) -> None:
    """Neither an autoscaler starts one, nor does the CronJob replace a backup by one of an empty system."""
    rendered = objects(*arguments)
    replicas = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"]["replicas"]
        for one in rendered
        if one["kind"] in ("Deployment", "StatefulSet")
    }
    assert {name for name, count in replicas.items() if count} <= {"kafka", "postgres"}
    assert {"scheduler", "downloader", "parser", "storage", "api", "operator"} <= replicas.keys()
    assert not [one for one in rendered if one["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")]
    assert named(rendered, "CronJob", "web-nephila-backup")["spec"]["suspend"] is True


def test_the_restore_reaches_what_the_backup_reaches() -> None:
    rendered = objects(*EXTERNAL)
    backup, restore = (
        named(rendered, "NetworkPolicy", f"web-nephila-{name}")["spec"]["egress"] for name in ("backup", "restore")
    )
    assert restore == backup


def test_a_restore_without_the_volume_of_backups_is_refused() -> None:
    done = template("--set=restore.enabled=true")
    assert done.returncode == 1
    assert "restore.enabled needs the volume of the backups" in done.stderr
    assert restore_job("--set=restore.enabled=true", "--set=backup.persistence.existingClaim=nas")


@pytest.mark.parametrize("name", ["../other", "2026-11-23T16-40-00Z.part", "$(id)"])
def test_the_name_of_a_backup_is_its_time(name: str) -> None:
    done = template(*RESTORE, f"--set-string=restore.from={name}")
    assert done.returncode == 1
    assert "restore/from" in done.stderr


def test_another_backup_is_another_job() -> None:
    one = restore_job(*RESTORE)["metadata"]["name"]
    two = restore_job(*RESTORE, "--set=restore.from=2026-11-23T16-40-00Z")["metadata"]["name"]
    assert one != two


def test_the_services_start_after_a_restore(tmp_path: Path) -> None:
    """Also those whose number an autoscaler sets."""
    restored = objects(*EXTERNAL)
    with cluster(tmp_path, restored) as kubeconfig:
        after = rendered(kubeconfig, *PRODUCTION)
    replicas = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"].get("replicas", 1)
        for one in after
        if one["kind"] in ("Deployment", "StatefulSet")
    }
    assert replicas["scheduler"] == 4
    assert all(replicas.values()), replicas
    assert [one for one in after if one["kind"] == "ScaledObject"]
