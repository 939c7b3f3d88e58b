"""Each fault of a release is one line, and a healthy release has none."""

from __future__ import annotations

from typing import Any

import pytest
from nephila_cluster.kubernetes.diagnosis import findings
from nephila_cluster.kubernetes.release import KINDS, RESOURCES, PodAnswers, Release, samples

from tests.kubernetes_reads import labels, pod

NOW = 1_764_000_000.0
TODAY, LAST_WEEK = "2025-11-24T15:00:00Z", "2025-11-17T15:00:00Z"
HEALTHY = """
nephila_scheduler_disk_free_bytes 9e8
nephila_scheduler_disk_size_bytes 1e9
nephila_scheduler_hosts_ready 3
nephila_downloader_requests_in_flight 2
nephila_bus_oldest_unacked_seconds{group="storage",topic="records"} 3
nephila_scheduler_snapshot_age_seconds 60
nephila_scheduler_early_fetches_total 0
"""


def release(**objects: Any) -> Release:
    """A healthy release, but for these lists."""
    pods = [pod("web-scheduler-0", "scheduler"), pod("web-downloader-a", "downloader")]
    known: dict[str, list[Any]] = {kind: [] for kind in (*KINDS, *RESOURCES)}
    known["pods"] = pods
    known["deployments"] = [workload("web-downloader", 1, 1)]
    known["jobs"] = [{"metadata": {"name": "web-topics", "labels": labels("topics")}, "status": {"succeeded": 1}}]
    known["claims"] = [{"metadata": {"name": "data"}, "status": {"phase": "Bound"}}]
    known["cronjobs"] = [{"metadata": {"name": "web-backup"}, "status": {"lastSuccessfulTime": TODAY}}]
    known["crawljobs"] = [resource("news", Accepted="True", Ready="True")]
    found = Release("crawl", "web", {**known, **objects})
    found.answers = {one["metadata"]["name"]: PodAnswers("", samples(HEALTHY)) for one in pods}
    return found


def workload(name: str, wanted: int, ready: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"replicas": wanted}, "status": {"readyReplicas": ready}}


def resource(name: str, **conditions: str) -> dict[str, Any]:
    found = [{"type": kind, "status": status, "reason": "Why"} for kind, status in conditions.items()]
    return {"metadata": {"name": name}, "status": {"conditions": found}}


def lines(found: Release) -> list[str]:
    return [f"{one.state} {one.object}: {one.found}" for one in findings(found, NOW)]


def test_a_healthy_release_has_none() -> None:
    assert lines(release()) == []


@pytest.mark.parametrize(
    ("objects", "line"),
    [
        ({"pods": []}, "fail release web: has no pod"),
        ({"deployments": [workload("web-parser", 2, 0)]}, "fail deployment web-parser: 0 of 2 pods are ready"),
        ({"statefulsets": [workload("web-scheduler", 2, 1)]}, "warn statefulset web-scheduler: 1 of 2 pods are ready"),
        (
            {"claims": [{"metadata": {"name": "data"}, "status": {"phase": "Pending"}}]},
            "fail claim data: is Pending",
        ),
        (
            {"jobs": [{"metadata": {"name": "web-topics", "labels": labels("topics")}, "status": {"failed": 3}}]},
            "fail job web-topics: topics are not created: 3 attempts failed",
        ),
        (
            {"cronjobs": [{"metadata": {"name": "web-backup"}, "status": {"lastSuccessfulTime": LAST_WEEK}}]},
            f"warn cronjob web-backup: no backup since {LAST_WEEK}",
        ),
        ({"crawljobs": [resource("news", Accepted="False")]}, "fail crawljob news: Accepted is False: Why"),
        ({"crawljobs": [resource("news", Ready="Unknown")]}, "fail crawljob news: Ready is Unknown: Why"),
        ({"crawljobs": [resource("news", Stalled="True")]}, "fail crawljob news: Stalled is True: Why"),
        ({"crawljobs": [{"metadata": {"name": "news"}}]}, "warn crawljob news: no operator has taken it"),
        ({"parserules": [resource("shop", Degraded="True")]}, "warn parserule shop: Degraded is True: Why"),
    ],
)
def test_objects(objects: dict[str, Any], line: str) -> None:
    assert lines(release(**objects)) == [line]


UNREADY = [{"type": "Ready", "status": "False"}]
CRASHES = {
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
    "lastState": {"terminated": {"reason": "Error", "exitCode": 2}},
}
KILLED = {"state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (
            {"conditions": UNREADY, "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "fail pod web-parser-a: ImagePullBackOff",
        ),
        (
            {"conditions": UNREADY, "containerStatuses": [CRASHES]},
            "fail pod web-parser-a: CrashLoopBackOff: back-off 10s; the last one ended with Error, exit code 2",
        ),
        (
            {"containerStatuses": [{**KILLED, "restartCount": 4}]},
            "warn pod web-parser-a: killed for its memory limit, 4 restarts",
        ),
        (
            {"phase": "Pending", "containerStatuses": [], "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: Insufficient\n cpu"}]},
            "fail pod web-parser-a: not scheduled: 0/1 nodes: Insufficient cpu",
        ),
        ({"conditions": UNREADY}, "fail pod web-parser-a: not ready"),
    ],
)  # fmt: skip
def test_pods(status: dict[str, Any], line: str) -> None:
    found = release()
    found.objects["pods"].append(pod("web-parser-a", "parser", **status))
    assert lines(found) == [line]


def test_pods_that_end_are_no_fault() -> None:
    found = release()
    found.objects["pods"].append(pod("web-topics-x", "topics", phase="Succeeded", conditions=UNREADY))
    going = pod("web-parser-a", "parser", conditions=UNREADY)
    going["metadata"]["deletionTimestamp"] = TODAY
    found.objects["pods"].append(going)
    assert lines(found) == []


def test_why_a_member_is_not_ready_is_its_own_text() -> None:
    """Broker, topics and database are named by the member; the pod is not reported twice."""
    found = release()
    found.objects["pods"][0]["status"]["conditions"] = UNREADY
    found.answers["web-scheduler-0"].unready = "waiting: topics are missing: pages, outlinks"
    assert lines(found) == ["fail pod web-scheduler-0: not ready: waiting: topics are missing: pages, outlinks"]


@pytest.mark.parametrize(
    ("sample", "line"),
    [
        (
            "nephila_storage_disk_free_bytes 1.2e9\nnephila_storage_disk_size_bytes 3e10",
            "fail pod web-scheduler-0: 1.2 of 30.0 GB are free on its disk",
        ),
        (
            'nephila_bus_oldest_unacked_seconds{group="storage",topic="records"} 1200',
            "fail pod web-scheduler-0: a record of topic records waits in group storage for 20 minutes",
        ),
        ("nephila_scheduler_snapshot_age_seconds 36000", "warn pod web-scheduler-0: no snapshot for 10 hours"),
        (
            "nephila_scheduler_early_fetches_total 2",
            "fail pod web-scheduler-0: 2 fetches came before their delay was over",
        ),
        (
            'nephila_bus_dead_letters_total{topic="pages",reason="crash"} 3',
            "warn pod web-scheduler-0: 3 messages became dead letters",
        ),
    ],
)
def test_metrics(sample: str, line: str) -> None:
    found = release()
    found.answers["web-scheduler-0"].metrics = samples(sample + "\n")
    assert lines(found) == [line]


def test_hosts_without_a_downloader() -> None:
    found = release(deployments=[])
    del found.objects["pods"][1], found.answers["web-downloader-a"]
    found.answers["web-scheduler-0"].metrics = samples("nephila_scheduler_hosts_ready 3\n")
    assert lines(found) == ["fail crawl: 3 hosts are ready and no downloader runs"]
