"""The CronJob of backups: off by default, the frontier before the rows, on a volume that outlives the release."""

from __future__ import annotations

import pytest

from tests.chart.test_chart import CHART, named, objects

PRODUCTION = ("-f", str(CHART / "examples" / "production.yaml"))


def test_it_is_off_by_default() -> None:
    assert not [one for one in objects() if one["kind"] == "CronJob" or one["metadata"]["name"].endswith("-backup")]


@pytest.mark.parametrize("arguments", [("--set=backup.enabled=true",), PRODUCTION], ids=["dev", "production"])
def test_the_frontier_is_saved_before_the_rows(arguments: tuple[str, ...]) -> None:
    found = objects(*arguments)
    pod = named(found, "CronJob", "web-nephila-backup")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (frontier,), (rows,) = pod["initContainers"], pod["containers"]
    assert frontier["args"][:5] == ["backup", "--bootstrap", "/etc/nephila/system.yaml", "--to", "/backups"]
    assert "--without-rows" in frontier["args"]
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


def test_a_release_can_be_installed_without_running_services() -> None:
    """A restore needs topics, broker and database, and no service that writes to them."""
    services = {"scheduler", "downloader", "parser", "storage", "operator"}
    found = objects("--set", ",".join(f"{name}.replicas=0" for name in services))
    wanted = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"]["replicas"]
        for one in found
        if one["kind"] in ("Deployment", "StatefulSet")
    }
    assert {name for name, replicas in wanted.items() if not replicas} == services
    assert [one["metadata"]["name"] for one in found if one["kind"] == "Job"]
