"""The notes of a release: what is lost, what stays as it was scaled, commands for restricted namespaces."""

from __future__ import annotations

import pytest

from tests.chart.test_chart import objects, pods
from tests.chart.test_chart_security import Render, notes

__all__ = ["notes"]


@pytest.mark.parametrize(
    ("settings", "found", "absent"),
    [
        ("", [], ["has no volume", "have no volume"]),
        ("kafka.dev.storage=", ["the broker has no volume"], ["the database has no volume"]),
        ("database.dev.storage=", ["the database has no volume"], ["the broker has no volume"]),
        ("scheduler.persistence.size=", ["schedulers have no volume", "the topic frontier"], ["is lost:"]),
        (
            "kafka.mode=external,kafka.external.bootstrap=k:9092,kafka.dev.storage=",
            [],
            ["the broker has no volume"],
        ),
    ],
)
def test_the_notes_name_what_ends_with_a_pod(notes: Render, settings: str, found: list[str], absent: list[str]) -> None:
    text = notes(*(("--set", settings) if settings else ()))
    assert [one for one in found if one not in text] == []
    assert [one for one in absent if one in text] == []


def test_no_command_of_the_notes_makes_a_pod_that_a_restricted_namespace_refuses(notes: Render) -> None:
    for settings in ("", "api.enabled=false,operator.enabled=false", "kafka.mode=strimzi"):
        assert "kubectl run" not in notes("--set", settings)
        assert " run crawl" not in notes("--set", settings)


def test_a_node_of_two_cores_has_room_for_four_downloaders() -> None:
    """By the shipped requests, with everything else of the release and half a core for the cluster."""
    cpu = 0.0
    for name, pod in pods([one for one in objects("--set", "downloader.replicas=4") if one["kind"] != "Pod"]):
        count = (
            next(
                one["spec"].get("replicas", 1)
                for one in objects()
                if f"{one['kind']} {one['metadata']['name']}" == name
            )
            if "downloader" not in name
            else 4
        )
        cpu += count * sum(float(one["resources"]["requests"]["cpu"].rstrip("m")) / 1000 for one in pod["containers"])
    assert cpu < 1.5


EXTERNAL = "kafka.mode=external,kafka.external.bootstrap=k.example.org:9092"
DATABASE = "database.mode=external,database.external.existingSecret=db"
BUCKET = "blobStore.url=s3://bucket/path"
INGRESS = "api.ingress.enabled=true,api.ingress.host=crawl.example.org"
PEERS = "peers[0].ipBlock.cidr=10.20.0.0/16"


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        (EXTERNAL, "networkPolicy.kafka.peers is empty"),
        (DATABASE, "networkPolicy.database.peers is empty"),
        (BUCKET, "networkPolicy.bucket.peers is empty"),
        (INGRESS, "networkPolicy.controlFrom is empty"),
        (f"{INGRESS},api.ingress.tls.enabled=false", "api.ingress.tls.enabled is false"),
        (f"{INGRESS},api.replicas=2", "a session of the console is in the memory of one member"),
        ("browser.enabled=true", "have seccomp-browser.json in /var/lib/kubelet/seccomp/"),
    ],
)
def test_the_notes_warn_of_what_does_not_work_yet(notes: Render, settings: str, warning: str) -> None:
    assert warning in notes("--set", settings)
    assert warning not in notes()


@pytest.mark.parametrize(
    "settings",
    [
        f"{EXTERNAL},networkPolicy.kafka.{PEERS}",
        f"{DATABASE},networkPolicy.database.{PEERS}",
        f"{EXTERNAL},{DATABASE},{BUCKET},networkPolicy.enabled=false",
        f"{INGRESS},networkPolicy.controlFrom[0].podSelector.matchLabels.app=nginx",
    ],
)
def test_the_notes_are_silent_where_the_way_is_open(notes: Render, settings: str) -> None:
    assert "is empty" not in notes("--set", settings)


def test_the_notes_of_a_restore_say_how_the_services_start(notes: Render) -> None:
    text = notes("--namespace", "crawl", "--set", "restore.enabled=true,backup.enabled=true")
    assert "app.kubernetes.io/component=restore" in text
    assert "with restore.enabled=false" in text
    assert "restore.enabled" not in notes("--namespace", "crawl")


def test_the_notes_have_the_way_out(notes: Render) -> None:
    """Resources before their operator, what stays and how it is deleted, no way back to an earlier version."""
    text = notes("--namespace", "crawl")
    assert "kubectl -n crawl delete crawljobs,parserules --all" in text
    assert '"finalizers":null' in text
    assert "kubectl -n crawl delete pvc,secret -l app.kubernetes.io/instance=web" in text
    assert "Upgrades go one way" in text
    assert "--reset-then-reuse-values" in text
    assert "kubectl -n team get crawljobs,parserules" in notes("--set", "operator.namespaces={team}")
    labelled = notes("--namespace", "crawl", "--set", "operator.unlabelled=false")
    assert "delete crawljobs,parserules -l nephila.dev/release=web" in labelled
    assert "delete crawljobs,parserules --all" not in labelled
    assert "finalizers" not in notes("--set", "operator.enabled=false")
