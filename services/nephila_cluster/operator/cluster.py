"""The API server of Kubernetes as the operator uses it: two kinds of resources in one namespace, events, Leases."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

from nephila.kernel.runtime.errors import NotReadyError, UserError

from nephila_cluster.kubernetes.api_server import TIMEOUT_S, Answer, ApiServer
from nephila_cluster.kubernetes.login import log_in

GROUP: Final = "nephila.dev"
VERSION: Final = "v1"
Kind = Literal["CrawlJob", "ParseRule"]
PLURALS: dict[Kind, str] = {"CrawlJob": "crawljobs", "ParseRule": "parserules"}


class Absent(UserError):
    """The API server has no such object."""


class Conflict(UserError):
    """The object has changed since it was read, or exists already."""


class ResourceRefused(UserError):
    """The API server refuses the content of a request; the same request would be refused again."""


def timestamp(seconds: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """A time of a Lease, with microseconds."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Cluster:
    """Requests to the API server. All methods raise `NotReadyError` while it cannot be reached, `Absent`, `Conflict`,
    or `ResourceRefused` in one line."""

    def __init__(self, namespace: str, timeout_s: float = TIMEOUT_S) -> None:
        """Raises `UserError` without a service account and without a kubeconfig."""
        self.namespace = namespace
        self._server = ApiServer(log_in, timeout_s)

    async def close(self) -> None:
        """End the connections."""
        await self._server.aclose()

    async def missing_kinds(self) -> list[str]:
        """Names of the custom resources that the API server does not serve."""
        try:
            answer = await self._call("GET", f"/apis/{GROUP}/{VERSION}")
        except Absent:
            answer = {"resources": []}
        served = {resource["name"] for resource in answer["resources"]}
        return [f"{plural}.{GROUP}" for plural in PLURALS.values() if plural not in served]

    async def set_finalizers(self, kind: Kind, body: Mapping[str, Any], finalizers: list[str]) -> dict[str, Any]:
        """Replace the finalizers of a resource as it was read; returns the resource."""
        metadata = {"finalizers": finalizers, "resourceVersion": body["metadata"]["resourceVersion"]}
        return await self._call("PATCH", self._path(kind, body), {"metadata": metadata})

    async def set_status(self, kind: Kind, body: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
        """Write the status of a resource; returns the resource."""
        return await self._call("PATCH", f"{self._path(kind, body)}/status", {"status": status})

    async def claim(self, kind: Kind, body: Mapping[str, Any], release: str) -> dict[str, Any]:
        """Write `status.release` of a resource as it was read; returns the resource. Raises `Conflict` when it has
        changed."""
        change = {"metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}, "status": {"release": release}}
        return await self._call("PATCH", f"{self._path(kind, body)}/status", change)

    async def post_event(
        self, kind: Kind, body: Mapping[str, Any], type_: str, reason: str, message: str, now: float
    ) -> None:
        """An Event about a resource."""
        involved = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind,
            "name": _name(body),
            "namespace": self._namespace_of(body),
            "uid": body["metadata"].get("uid", ""),
        }
        await self._post_event(involved, type_, reason, message, now)

    async def post_own_event(self, pod: str, reason: str, message: str, now: float) -> None:
        """A warning about the operator's pod."""
        involved = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": self.namespace}
        await self._post_event(involved, "Warning", reason, message, now)

    async def _post_event(self, involved: dict[str, Any], type_: str, reason: str, message: str, now: float) -> None:
        namespace = involved["namespace"]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{involved['name'][:200]}.{secrets.token_hex(8)}", "namespace": namespace},
            "involvedObject": involved,
            "type": type_,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": "nephila-operator"},
            "reportingComponent": "nephila.dev/operator",
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
        await self._call("POST", f"/api/v1/namespaces/{namespace}/events", event)

    async def put_rule(self, document: Mapping[str, Any], annotations: Mapping[str, str | None]) -> str:
        """Create a ParseRule or replace its spec: created, changed or unchanged."""
        try:
            stored = await self._call("GET", self._path("ParseRule", document))
        except Absent:
            present = {key: value for key, value in annotations.items() if value is not None}
            metadata = {**document["metadata"], "annotations": present}
            await self._call("POST", self._path("ParseRule"), {**document, "metadata": metadata})
            return "created"
        before = stored["metadata"].get("annotations") or {}
        after = {key: value for key, value in {**before, **annotations}.items() if value is not None}
        changed = {**stored, "spec": document["spec"], "metadata": {**stored["metadata"], "annotations": after}}
        changed = await self._call("PUT", self._path("ParseRule", stored), changed)
        same = changed["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        return "unchanged" if same else "changed"

    async def annotate_rule(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Change annotations of a ParseRule; None removes one."""
        rule = {"metadata": {"name": name}}
        await self._call("PATCH", self._path("ParseRule", rule), {"metadata": {"annotations": annotations}})

    async def delete_rule(self, name: str) -> None:
        """Delete a ParseRule."""
        await self._call("DELETE", self._path("ParseRule", {"metadata": {"name": name}}))

    async def rules(self) -> list[dict[str, Any]]:
        """All ParseRules."""
        items: list[dict[str, Any]] = (await self._call("GET", self._path("ParseRule")))["items"]
        return items

    async def lease(self, name: str) -> dict[str, Any] | None:
        """A Lease; None when there is none."""
        try:
            return await self._call("GET", self._lease_path(name))
        except Absent:
            return None

    async def put_lease(self, name: str, spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
        """Create a Lease, or replace the one that was read. Raises `Conflict` when another process was faster."""
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": dict(spec)}
        if old is None:
            return await self._call("POST", self._lease_path(), body)
        return await self._call("PUT", self._lease_path(name), {**body, "metadata": old["metadata"]})

    def _path(self, kind: Kind, body: Mapping[str, Any] | None = None) -> str:
        """Of one resource, or of all in the operator's namespace."""
        namespace = self.namespace if body is None else self._namespace_of(body)
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURALS[kind]}"
        return path if body is None else f"{path}/{quote(_name(body), safe='')}"

    def _namespace_of(self, body: Mapping[str, Any]) -> str:
        """A document of a file has no namespace."""
        return str(body["metadata"].get("namespace") or self.namespace)

    def _lease_path(self, name: str = "") -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        return f"{path}/{quote(name, safe='')}" if name else path

    async def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = await self._server.request(method, path, body)
        if not 200 <= answer.status < 300:
            raise _translated(answer)
        value: dict[str, Any] = json.loads(answer.body)
        return value


def _name(body: Mapping[str, Any]) -> str:
    return str(body["metadata"]["name"])


def _translated(answer: Answer) -> UserError:
    message = _message(answer)
    if answer.status == 404:
        return Absent(message)
    if answer.status == 409:
        return Conflict(message)
    if answer.status in (401, 408, 429) or answer.status >= 500:
        return NotReadyError(f"the API server of Kubernetes does not answer now: {message}")
    return ResourceRefused(f"the API server of Kubernetes refuses this: {message}")


def _message(answer: Answer) -> str:
    """The message of a Status object."""
    try:
        return " ".join(str(json.loads(answer.body)["message"]).split())[:1000]
    except (TypeError, ValueError, KeyError):
        return f"status {answer.status} {answer.reason}"
