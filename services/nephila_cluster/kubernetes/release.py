"""What the API server says of one release: its objects, and `/readyz` and `/metrics` of its pods through the server.

Read only. What this person may not read is left out and named in `hidden`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_cluster.kubernetes.api_server import ApiServer
from nephila_cluster.kubernetes.login import Login

NAME_LABEL, INSTANCE_LABEL = "app.kubernetes.io/part-of", "app.kubernetes.io/instance"
NEPHILA: Final = "nephila"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
METRICS_PORT: Final = 9100
SERVICES: Final = ("scheduler", "downloader", "parser", "storage", "api", "operator")
KINDS: Final = {
    "pods": "/api/v1/namespaces/{}/pods",
    "claims": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "statefulsets": "/apis/apps/v1/namespaces/{}/statefulsets",
    "jobs": "/apis/batch/v1/namespaces/{}/jobs",
    "cronjobs": "/apis/batch/v1/namespaces/{}/cronjobs",
}
RESOURCES: Final = {
    "crawljobs": "/apis/nephila.dev/v1/namespaces/{}/crawljobs",
    "parserules": "/apis/nephila.dev/v1/namespaces/{}/parserules",
}
"""Without labels of a release."""
FINALIZER: Final = "nephila.dev/delete"
"""Held by a CrawlJob or ParseRule while the control API may have its job or rule; the operator removes it."""
Object = dict[str, Any]
Samples = dict[str, list[tuple[dict[str, str], float]]]
"""Metric → (labels, value)."""


@dataclass(slots=True)
class PodAnswers:
    """What a pod says itself."""

    unready: str = ""
    """Text of /readyz where it is not 200."""
    metrics: Samples = field(default_factory=dict)


@dataclass(slots=True)
class Release:
    """The objects of one release by kind, as JSON."""

    namespace: str
    name: str
    objects: dict[str, list[Object]] = field(default_factory=dict)
    answers: dict[str, PodAnswers] = field(default_factory=dict)
    """Pod → its answers, of running pods of services."""
    hidden: list[str] = field(default_factory=list)


class Forbidden(UserError):
    """The login may not read an object."""


async def read_release(login: Login, namespace: str, name: str) -> Release:
    """The state of a release; `name` empty: the only one of the namespace, which may be gone. Raises `UserError`."""
    async with aclosing(ApiServer(lambda: login)) as server:
        selector = f"{NAME_LABEL}={NEPHILA}"
        release = Release(namespace, name or await _only_release(server, namespace, selector))
        labels = quote(f"{selector},{INSTANCE_LABEL}={release.name}")
        paths = {kind: f"{path.format(namespace)}?labelSelector={labels}" for kind, path in KINDS.items()}
        paths |= {kind: path.format(namespace) for kind, path in RESOURCES.items()}
        lists = await asyncio.gather(*(_items(server, path) for path in paths.values()), return_exceptions=True)
        for kind, items in zip(paths, lists, strict=True):
            if isinstance(items, Forbidden):
                release.hidden.append(f"{kind}: {items}")
                release.objects[kind] = []
            elif isinstance(items, BaseException):
                raise items
            else:
                release.objects[kind] = items
        await _ask_pods(server, release)
        return release


async def _items(server: ApiServer, path: str) -> list[Object]:
    """Objects of a list; none where the server has no such kind."""
    status, _, body = await server.request("GET", path)
    if status == 404:
        return []
    try:
        value: Object = json.loads(body)
    except ValueError:
        value = {"message": body.decode(errors="replace")[:300]}
    if status in (401, 403):
        raise Forbidden(f"not allowed: {' '.join(str(value.get('message', status)).split())}")
    if status != 200:
        raise UserError(f"the API server answers {status} to {path}: {value.get('message', '')}")
    items: list[Object] = value.get("items", [])
    return items


def is_stuck(resource: Object) -> bool:
    """Whether the deletion of a CrawlJob or ParseRule waits for an operator."""
    metadata = resource["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FINALIZER in (metadata.get("finalizers") or ())


async def _only_release(server: ApiServer, namespace: str, selector: str) -> str:
    """The name; empty where a release was uninstalled and resources still wait for it. Raises `UsageError`."""
    pods = await _items(server, f"{KINDS['pods'].format(namespace)}?labelSelector={quote(selector)}")
    names = sorted({pod["metadata"]["labels"].get(INSTANCE_LABEL, "") for pod in pods})
    if not names and await _has_stuck(server, namespace):
        return ""
    if len(names) != 1:
        fault = f"has several releases: {', '.join(names)}; name one by --release" if names else "has no pod of nephila"
        raise UsageError(f"the namespace {namespace} {fault}")
    return str(names[0])


async def _has_stuck(server: ApiServer, namespace: str) -> bool:
    lists = [await _items(server, path.format(namespace)) for path in RESOURCES.values()]
    return any(is_stuck(resource) for resources in lists for resource in resources)


async def _ask_pods(server: ApiServer, release: Release) -> None:
    running = [
        pod["metadata"]["name"]
        for pod in release.objects["pods"]
        if pod["metadata"]["labels"].get(COMPONENT_LABEL) in SERVICES
        and pod.get("status", {}).get("phase") == "Running"
    ]
    answers = await asyncio.gather(*(_ask(server, release.namespace, pod) for pod in running), return_exceptions=True)
    refused: Sequence[UserError] = [answer for answer in answers if isinstance(answer, UserError)]
    if refused:
        release.hidden.append(f"pods/proxy: {refused[0]}")
    release.answers = {
        pod: answer for pod, answer in zip(running, answers, strict=True) if isinstance(answer, PodAnswers)
    }


async def _ask(server: ApiServer, namespace: str, pod: str) -> PodAnswers:
    base = f"/api/v1/namespaces/{namespace}/pods/{pod}:{METRICS_PORT}/proxy"
    ready = await server.request("GET", f"{base}/readyz")
    if ready.status in (401, 403):
        raise Forbidden(f"not allowed to read /metrics of pods through the API server (status {ready.status})")
    text = " ".join(ready.body.decode(errors="replace").split())[:300]
    answers = PodAnswers("" if ready.status == 200 else text or f"status {ready.status}")
    metrics = await server.request("GET", f"{base}/metrics")
    if metrics.status == 200:
        answers.metrics = samples(metrics.body.decode(errors="replace"))
    return answers


def samples(text: str) -> Samples:
    """Samples of the text format of Prometheus."""
    from prometheus_client.parser import text_string_to_metric_families

    by_name: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            by_name.setdefault(sample.name, []).append((sample.labels, sample.value))
    return by_name
