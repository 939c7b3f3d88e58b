"""The API server of Kubernetes as the operator uses it: two kinds of resources in one namespace, events, Leases."""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import os
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Literal
from urllib.parse import quote

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from nephila.kernel.runtime.errors import NotReadyError, UserError

GROUP: Final = "nephila.dev"
VERSION: Final = "v1"
Kind = Literal["CrawlJob", "ParseRule"]
PLURALS: dict[Kind, str] = {"CrawlJob": "crawljobs", "ParseRule": "parserules"}
TIMEOUT_S: Final = 15.0
"""Longest wait for one answer by default."""
MERGE: Final = "application/merge-patch+json"


class Absent(UserError):
    """The API server has no such object."""


class Conflict(UserError):
    """The object has changed since it was read, or exists already."""


class Refused(UserError):
    """The API server refuses the content of a request; the same request would be refused again."""


def timestamp(seconds: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """A time of a Lease, with microseconds."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Cluster:
    """Requests of one thread at a time, beside the event loop. All methods raise `NotReadyError` while the API server
    cannot be reached, `Absent`, `Conflict`, or `Refused` in one line."""

    def __init__(self, namespace: str, timeout_s: float = TIMEOUT_S) -> None:
        """Raises `UserError` without a service account and without a kubeconfig."""
        self.namespace = namespace
        self._timeout_s = timeout_s
        try:
            if "KUBERNETES_SERVICE_HOST" in os.environ:
                config.load_incluster_config()
            else:
                config.load_kube_config(config_file=os.environ.get("KUBECONFIG"))
        except config.ConfigException as error:
            raise UserError(f"there is neither a service account nor a kubeconfig: {error}") from None
        settings = client.Configuration.get_default_copy()
        settings.retries = False  # the callers try again, within their own deadlines
        self._client = client.ApiClient(settings)
        logging.getLogger("kubernetes").setLevel(logging.WARNING)  # below it every answer is logged
        self._thread = ThreadPoolExecutor(1, "kubernetes")

    def close(self) -> None:
        """End the thread and the connections."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    async def missing_kinds(self) -> list[str]:
        """Names of the custom resources that the API server does not serve."""
        try:
            found = await self._call("GET", f"/apis/{GROUP}/{VERSION}")
        except Absent:
            found = {"resources": []}
        served = {one["name"] for one in found["resources"]}
        return [f"{plural}.{GROUP}" for plural in PLURALS.values() if plural not in served]

    async def set_finalizers(self, kind: Kind, body: Mapping[str, Any], finalizers: list[str]) -> dict[str, Any]:
        """Replace the finalizers of a resource as it was read; returns the resource."""
        metadata = {"finalizers": finalizers, "resourceVersion": body["metadata"]["resourceVersion"]}
        return await self._call("PATCH", self._path(kind, _name(body)), {"metadata": metadata})

    async def set_status(self, kind: Kind, body: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
        """Write the status of a resource; returns the resource."""
        return await self._call("PATCH", f"{self._path(kind, _name(body))}/status", {"status": status})

    async def post_event(
        self, kind: Kind, body: Mapping[str, Any], type_: str, reason: str, message: str, now: float
    ) -> None:
        """An Event about a resource."""
        involved = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind,
            "name": _name(body),
            "namespace": self.namespace,
            "uid": body["metadata"].get("uid", ""),
        }
        await self._post_event(involved, type_, reason, message, now)

    async def post_own_event(self, pod: str, reason: str, message: str, now: float) -> None:
        """A warning about the operator's pod."""
        involved = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": self.namespace}
        await self._post_event(involved, "Warning", reason, message, now)

    async def _post_event(self, involved: dict[str, Any], type_: str, reason: str, message: str, now: float) -> None:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{involved['name'][:200]}.{secrets.token_hex(8)}", "namespace": self.namespace},
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
        await self._call("POST", f"/api/v1/namespaces/{self.namespace}/events", event)

    async def put_rule(self, document: Mapping[str, Any], annotations: Mapping[str, str | None]) -> str:
        """Create a ParseRule or replace its spec: created, changed or unchanged."""
        name = _name(document)
        try:
            found = await self._call("GET", self._path("ParseRule", name))
        except Absent:
            given = {key: value for key, value in annotations.items() if value is not None}
            metadata = {**document["metadata"], "annotations": given}
            await self._call("POST", self._path("ParseRule"), {**document, "metadata": metadata})
            return "created"
        before = found["metadata"].get("annotations") or {}
        after = {key: value for key, value in {**before, **annotations}.items() if value is not None}
        changed = {**found, "spec": document["spec"], "metadata": {**found["metadata"], "annotations": after}}
        changed = await self._call("PUT", self._path("ParseRule", name), changed)
        same = changed["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
        return "unchanged" if same else "changed"

    async def annotate_rule(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Change annotations of a ParseRule; None removes one."""
        await self._call("PATCH", self._path("ParseRule", name), {"metadata": {"annotations": annotations}})

    async def delete_rule(self, name: str) -> None:
        """Delete a ParseRule."""
        await self._call("DELETE", self._path("ParseRule", name))

    async def rules(self) -> list[dict[str, Any]]:
        """All ParseRules."""
        found: list[dict[str, Any]] = (await self._call("GET", self._path("ParseRule")))["items"]
        return found

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

    def _path(self, kind: Kind, name: str = "") -> str:
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}/{PLURALS[kind]}"
        return f"{path}/{quote(name, safe='')}" if name else path

    def _lease_path(self, name: str = "") -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        return f"{path}/{quote(name, safe='')}" if name else path

    async def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, method, path, body)

    def _answer(self, method: str, path: str, body: Any) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": MERGE if method == "PATCH" else "application/json"}
        try:
            found: dict[str, Any] = self._client.call_api(
                path,
                method,
                header_params=headers,
                body=body,
                response_types_map=dict.fromkeys((200, 201, 202), "object"),
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _request_timeout=self._timeout_s,
            )
            return found
        except ApiException as error:
            raise _translated(error) from None
        except (HTTPError, OSError) as error:
            reason = " ".join(str(error).split())[:300]
            raise NotReadyError(f"the API server of Kubernetes cannot be reached: {reason}") from None


def _name(body: Mapping[str, Any]) -> str:
    return str(body["metadata"]["name"])


def _translated(error: ApiException) -> UserError:
    message = _message(error)
    if error.status == 404:
        return Absent(message)
    if error.status == 409:
        return Conflict(message)
    if error.status in (401, 408, 429) or error.status >= 500:
        return NotReadyError(f"the API server of Kubernetes does not answer now: {message}")
    return Refused(f"the API server of Kubernetes refuses this: {message}")


def _message(error: ApiException) -> str:
    """The message of a Status object."""
    try:
        found = json.loads(error.body)
        return " ".join(str(found["message"]).split())[:1000]
    except (TypeError, ValueError, KeyError):
        return f"status {error.status} {error.reason}"
