"""What is wrong with a release, one line each, from what the API server said. Pure.

A finding that fails means that the release does not do its work; a warning will become one, or loses something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from nephila_cluster.kubernetes.release import COMPONENT_LABEL, Object, Release, Samples, is_stuck

LAG_S: Final = 900.0
"""As the alert NephilaLagOld."""
DISK_SHARE: Final = 0.05
"""As the alert NephilaDiskFull."""
SNAPSHOT_S: Final = 28_800.0
"""As the alert NephilaSnapshotsOld."""
BACKUP_S: Final = 2 * 86_400.0
UNSTICK: Final = (
    "kubectl -n {0} get crawljobs,parserules -o name | xargs -I@ kubectl -n {0} patch @ --type merge "
    """-p '{{"metadata":{{"finalizers":null}}}}'"""
)
"""Removes the finalizers of all resources of a namespace, as the notes of the chart have it."""
WAITING: Final = ("ContainerCreating", "PodInitializing")


class Finding(msgspec.Struct, frozen=True):
    """One line of the diagnosis."""

    state: Literal["warn", "fail"]
    object: str
    """Kind and name."""
    found: str
    remedy: str = ""


def findings(release: Release, now: float) -> list[Finding]:
    """All findings, failures first."""
    all_findings = [finding for check in CHECKS for finding in check(release, now)]
    return sorted(all_findings, key=lambda item: item.state)


def _workloads(release: Release, now: float) -> Iterator[Finding]:
    if not release.objects["pods"]:
        yield Finding("fail", f"release {release.name}".strip(), "has no pod", f"helm status {release.name}".strip())
    for kind in ("deployments", "statefulsets"):
        for workload in release.objects[kind]:
            replicas, ready = workload["spec"].get("replicas", 1), workload.get("status", {}).get("readyReplicas", 0)
            if ready < replicas:
                state: Literal["warn", "fail"] = "warn" if ready else "fail"
                yield Finding(state, f"{kind[:-1]} {_name(workload)}", f"{ready} of {replicas} pods are ready")


def _pods(release: Release, now: float) -> Iterator[Finding]:
    for pod in release.objects["pods"]:
        name, status = f"pod {_name(pod)}", pod.get("status", {})
        if status.get("phase") == "Succeeded" or pod["metadata"].get("deletionTimestamp"):
            continue
        for condition in status.get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                yield Finding("fail", name, f"not scheduled: {_line(condition.get('message'))}", "kubectl describe pod")
        containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        for container in containers:
            yield from _container(name, container)
        answers = release.answers.get(_name(pod))
        if answers is not None and answers.unready:
            yield Finding("fail", name, f"not ready: {answers.unready}", "docs/operations.md, Faults")
        elif status.get("phase") == "Running" and not _is_ready(status) and not any(map(_trouble, containers)):
            yield Finding("fail", name, "not ready", f"kubectl logs {_name(pod)}")


def _is_ready(status: Object) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions", ())
    )


def _trouble(container: Object) -> bool:
    reason = container.get("state", {}).get("waiting", {}).get("reason", "")
    return bool(reason) and reason not in WAITING


def _container(pod: str, container: Object) -> Iterator[Finding]:
    waiting = container.get("state", {}).get("waiting", {})
    ended = container.get("lastState", {}).get("terminated") or container.get("state", {}).get("terminated") or {}
    why = f"; the last one ended with {ended['reason']}, exit code {ended['exitCode']}" if ended.get("exitCode") else ""
    if _trouble(container):
        text = _line(waiting.get("message"))
        remedy = f"kubectl logs {pod.removeprefix('pod ')} --previous" if why else ""
        yield Finding("fail", pod, f"{waiting['reason']}{': ' + text if text else ''}{why}", remedy)
    elif ended.get("reason") == "OOMKilled":
        count = container.get("restartCount", 0)
        yield Finding("warn", pod, f"killed for its memory limit, {count} restarts", "raise resources.limits.memory")


def _helpers(release: Release, now: float) -> Iterator[Finding]:
    for job in release.objects["jobs"]:
        status = job.get("status", {})
        if status.get("succeeded") or not (status.get("failed") or status.get("active")):
            continue
        component = job["metadata"]["labels"].get(COMPONENT_LABEL, "")
        state_text = "topics are not created" if component == "topics" else f"{component} is not done"
        failed = f"{status.get('failed', 0)} attempts failed"
        over = any(
            condition["type"] == "Failed" and condition["status"] == "True"
            for condition in status.get("conditions", ())
        )
        state: Literal["warn", "fail"] = "fail" if over or component == "topics" else "warn"
        yield Finding(state, f"job {_name(job)}", f"{state_text}: {failed}", f"kubectl logs job/{_name(job)}")
    for cronjob in release.objects["cronjobs"]:
        at = cronjob.get("status", {}).get("lastSuccessfulTime") or cronjob["metadata"].get("creationTimestamp", "")
        if at and now - datetime.fromisoformat(at).timestamp() > BACKUP_S:
            yield Finding(
                "warn", f"cronjob {_name(cronjob)}", f"no backup since {at}", f"kubectl get jobs; {_name(cronjob)}"
            )


def _claims(release: Release, now: float) -> Iterator[Finding]:
    for claim in release.objects["claims"]:
        phase = claim.get("status", {}).get("phase", "Pending")
        if phase != "Bound":
            remedy = f"kubectl describe pvc {_name(claim)}: is there a StorageClass?"
            yield Finding("fail", f"claim {_name(claim)}", f"is {phase}", remedy)


def _metrics(release: Release, now: float) -> Iterator[Finding]:
    ready = flying = 0.0
    for pod, answers in release.answers.items():
        metrics, name = answers.metrics, f"pod {pod}"
        for service in ("scheduler", "storage"):
            size = _largest(metrics, f"nephila_{service}_disk_size_bytes")
            for _, free in metrics.get(f"nephila_{service}_disk_free_bytes", ()):
                if free < DISK_SHARE * size:
                    remedy = "enlarge the volume (docs/operations.md#nephiladiskfull)"
                    text = f"{free / 1e9:.1f} of {size / 1e9:.1f} GB are free on its disk"
                    yield Finding("fail", name, text, remedy)
        for labels, age in metrics.get("nephila_bus_oldest_unacked_seconds", ()):
            if age > LAG_S:
                text = (
                    f"a record of topic {labels['topic']} waits in group {labels['group']} for {age / 60:.0f} minutes"
                )
                yield Finding("fail", name, text, "docs/operations.md#nephilalagold")
        if (age := _largest(metrics, "nephila_scheduler_snapshot_age_seconds")) > SNAPSHOT_S:
            yield Finding(
                "warn", name, f"no snapshot for {age / 3600:.0f} hours", "docs/operations.md#nephilasnapshotsold"
            )
        if early := _sum(metrics, "nephila_scheduler_early_fetches_total"):
            text = f"{early:.0f} fetches came before their delay was over"
            yield Finding("fail", name, text, "pause the jobs; docs/operations.md#nephilapolitenessbreach")
        if letters := _sum(metrics, "nephila_bus_dead_letters_total"):
            yield Finding("warn", name, f"{letters:.0f} messages became dead letters", "nephila service dead list")
        ready += _sum(metrics, "nephila_scheduler_hosts_ready")
        flying += _sum(metrics, "nephila_downloader_requests_in_flight")
    if ready > 0 and not flying and not any(_is_component(release, pod, "downloader") for pod in release.answers):
        yield Finding("fail", "crawl", f"{ready:.0f} hosts are ready and no downloader runs", "scale the downloader")


def _is_component(release: Release, pod: str, component: str) -> bool:
    return any(
        _name(item) == pod and item["metadata"]["labels"].get(COMPONENT_LABEL) == component
        for item in release.objects["pods"]
    )


def _resources(release: Release, now: float) -> Iterator[Finding]:
    """A resource without a status is one that no operator has seen."""
    operates = any(
        pod["metadata"]["labels"].get(COMPONENT_LABEL) == "operator" and _is_ready(pod.get("status", {}))
        for pod in release.objects["pods"]
    )
    for kind, word in (("crawljobs", "crawljob"), ("parserules", "parserule")):
        for resource in release.objects[kind]:
            name, conditions = f"{word} {_name(resource)}", resource.get("status", {}).get("conditions", ())
            if is_stuck(resource) and not operates:
                text = "its deletion, and that of the namespace, waits for an operator, and none runs here"
                yield Finding("fail", name, text, UNSTICK.format(release.namespace))
                continue
            if not conditions:
                yield Finding("warn", name, "no operator has taken it", "is the operator ready?")
            for condition in conditions:
                bad = condition["status"] == "True" if condition["type"] in ("Stalled", "Degraded") else (
                    condition["type"] in ("Accepted", "Ready") and condition["status"] != "True"
                )  # fmt: skip
                if bad and condition.get("reason") not in ("Starting", "Deleting"):
                    state: Literal["warn", "fail"] = "warn" if condition["type"] == "Degraded" else "fail"
                    text = _line(condition.get("message"))
                    state_text = f"{condition['type']} is {condition['status']}: {condition.get('reason', '')}"
                    yield Finding(state, name, f"{state_text}{': ' + text if text else ''}")


def _hidden(release: Release, now: float) -> Iterator[Finding]:
    for right in release.hidden:
        yield Finding("warn", "rights", right, "what it would show is not checked")


CHECKS: Final[tuple[Callable[[Release, float], Iterator[Finding]], ...]] = (
    _workloads,
    _pods,
    _helpers,
    _claims,
    _metrics,
    _resources,
    _hidden,
)


def _name(resource: Object) -> str:
    return str(resource["metadata"]["name"])


def _line(text: Any) -> str:
    return " ".join(str(text or "").split())[:300]


def _sum(metrics: Samples, name: str) -> float:
    return sum(value for _, value in metrics.get(name, ()))


def _largest(metrics: Samples, name: str) -> float:
    return max((value for _, value in metrics.get(name, ())), default=0.0)
