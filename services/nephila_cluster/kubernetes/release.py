"""What the API server says of one release: its objects, and `/readyz` and `/metrics` of its pods through the server.

Read only. What this person may not read is left out and named in `hidden`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_cluster.kubernetes.login import Login

TIMEOUT_S: Final = 15.0
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
    """This person may not read it."""


class ApiServer:
    """GET requests. All methods raise `UserError` in one line."""

    def __init__(self, login: Login, session: aiohttp.ClientSession) -> None:
        self._login = login
        self._session = session
        self._tls = login.tls()

    async def get(self, path: str) -> Object:
        """A JSON object; one without items where the server has no such kind."""
        status, body = await self.text(path)
        if status == 404:
            return {"items": []}
        try:
            found: Object = json.loads(body)
        except ValueError:
            found = {"message": body[:300]}
        if status in (401, 403):
            raise Forbidden(f"not allowed: {' '.join(str(found.get('message', status)).split())}")
        if status != 200:
            raise UserError(f"the API server answers {status} to {path}: {found.get('message', '')}")
        return found

    async def text(self, path: str) -> tuple[int, str]:
        """Status and body."""
        try:
            async with self._session.get(
                self._login.server + path,
                headers=self._login.headers,
                ssl=self._tls,
                server_hostname=self._login.server_name,
                proxy=self._login.proxy,
                allow_redirects=False,
            ) as answer:
                return answer.status, await answer.text(errors="replace")
        except (aiohttp.ClientError, OSError) as error:
            reason = " ".join(str(error).split())[:300] or f"no answer in {TIMEOUT_S:g} s"
            raise UserError(f"the API server at {self._login.server} cannot be reached: {reason}") from None


async def read_release(login: Login, namespace: str, name: str) -> Release:
    """The state of a release; `name` empty: the only one of the namespace. Raises `UserError`."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session:
        server = ApiServer(login, session)
        selector = f"{NAME_LABEL}={NEPHILA}"
        if not name:
            name = await _only_release(server, namespace, selector)
        found = Release(namespace, name)
        wanted = quote(f"{selector},{INSTANCE_LABEL}={name}")
        paths = {kind: f"{path.format(namespace)}?labelSelector={wanted}" for kind, path in KINDS.items()}
        paths |= {kind: path.format(namespace) for kind, path in RESOURCES.items()}
        lists = await asyncio.gather(*(server.get(path) for path in paths.values()), return_exceptions=True)
        for kind, answer in zip(paths, lists, strict=True):
            if isinstance(answer, Forbidden):
                found.hidden.append(f"{kind}: {answer}")
                found.objects[kind] = []
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.objects[kind] = answer.get("items", [])
        await _ask_pods(server, found)
        return found


async def _only_release(server: ApiServer, namespace: str, selector: str) -> str:
    pods = await server.get(f"{KINDS['pods'].format(namespace)}?labelSelector={quote(selector)}")
    names = sorted({one["metadata"]["labels"].get(INSTANCE_LABEL, "") for one in pods["items"]})
    if len(names) != 1:
        found = f"has several releases: {', '.join(names)}; name one by --release" if names else "has no pod of nephila"
        raise UsageError(f"the namespace {namespace} {found}")
    return str(names[0])


async def _ask_pods(server: ApiServer, found: Release) -> None:
    running = [
        one["metadata"]["name"]
        for one in found.objects["pods"]
        if one["metadata"]["labels"].get(COMPONENT_LABEL) in SERVICES
        and one.get("status", {}).get("phase") == "Running"
    ]
    answers = await asyncio.gather(*(_ask(server, found.namespace, pod) for pod in running), return_exceptions=True)
    refused: Sequence[UserError] = [one for one in answers if isinstance(one, UserError)]
    if refused:
        found.hidden.append(f"pods/proxy: {refused[0]}")
    found.answers = {pod: one for pod, one in zip(running, answers, strict=True) if isinstance(one, PodAnswers)}


async def _ask(server: ApiServer, namespace: str, pod: str) -> PodAnswers:
    base = f"/api/v1/namespaces/{namespace}/pods/{pod}:{METRICS_PORT}/proxy"
    status, text = await server.text(f"{base}/readyz")
    if status in (401, 403):
        raise Forbidden(f"not allowed to read /metrics of pods through the API server (status {status})")
    answers = PodAnswers("" if status == 200 else " ".join(text.split())[:300] or f"status {status}")
    status, text = await server.text(f"{base}/metrics")
    if status == 200:
        answers.metrics = samples(text)
    return answers


def samples(text: str) -> Samples:
    """Samples of the text format of Prometheus."""
    from prometheus_client.parser import text_string_to_metric_families

    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found
