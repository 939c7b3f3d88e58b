"""An API server of Kubernetes for tests: two kinds of custom resources with status, Events, Leases. It can restart,
lose its watches, and expire their versions (410 Gone)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from nephila_control.http.server import HttpServer, tcp_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

NAMESPACE = "crawl"
CUSTOM = ("crawljobs", "parserules")
KINDS = {"crawljobs": "CrawlJob", "parserules": "ParseRule", "leases": "Lease", "events": "Event"}
KINDS |= {"namespaces": "Namespace", "customresourcedefinitions": "CustomResourceDefinition"}
GROUPS = {"nephila.dev": CUSTOM, "coordination.k8s.io": ("leases",)}
GROUPS |= {"apiextensions.k8s.io": ("customresourcedefinitions",)}


def merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _key(name: str, namespace: str) -> str:
    return name if namespace == NAMESPACE else f"{namespace}/{name}"


def _key_of(body: dict[str, Any]) -> str:
    return _key(body["metadata"]["name"], body["metadata"]["namespace"])


def failure(code: int, reason: str, message: str) -> Response:
    """A Status object."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return JSONResponse({**body, "message": message}, code)


class KubernetesServer:
    """The state of the server; it survives `restart`."""

    def __init__(self, folder: Path) -> None:
        self.version = 100
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        """(plural, name) → object; the name is NAMESPACE/NAME in another namespace than NAMESPACE."""
        self.has_crds = True
        self.gone = 0
        """So many watches are answered with 410 Gone."""
        self.refuse: str = ""
        """Every write of a ParseRule is refused with this message."""
        self.writes: list[tuple[str, str]] = []
        """(method, path) of every request that changes something."""
        self.lists = 0
        self._watchers: dict[asyncio.Queue[dict[str, Any] | None], tuple[str, str]] = {}
        self._changed = asyncio.Event()
        self._server: HttpServer | None = None
        self._kubeconfig = folder / "kubeconfig"
        self._port = 0

    async def start(self) -> Path:
        """Serve; returns the kubeconfig."""
        self._server = tcp_server(self._application(), "127.0.0.1", self._port, "port")
        await self._server.open()
        self._port = self._server.port
        cluster = {"name": "test", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}
        context = {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": NAMESPACE}}
        user = {"name": "test", "user": {"token": "none"}}
        content = {"apiVersion": "v1", "kind": "Config", "current-context": "test"}
        content |= {"clusters": [cluster], "contexts": [context], "users": [user]}  # type: ignore[dict-item]
        self._kubeconfig.write_text(json.dumps(content))
        return self._kubeconfig

    async def stop(self) -> None:
        """End all connections and stop listening."""
        self.end_watches()
        assert self._server is not None
        await self._server.close()

    def end_watches(self) -> None:
        """Every watch ends, as after a lost connection."""
        for queue in self._watchers:
            queue.put_nowait(None)

    # ---- what a person does

    def apply(self, plural: str, name: str, spec: dict[str, Any], namespace: str = NAMESPACE) -> None:
        """As kubectl apply."""
        old = self.objects.get((plural, _key(name, namespace)))
        if old is None:
            self._create(plural, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
        else:
            self._replace(plural, {**old, "spec": spec})

    def label(self, plural: str, name: str, labels: dict[str, str]) -> None:
        """As kubectl label."""
        self._replace(plural, merged(self.objects[plural, name], {"metadata": {"labels": labels}}))

    def annotate(self, plural: str, name: str, annotations: dict[str, str]) -> None:
        """As kubectl annotate."""
        self._replace(plural, merged(self.objects[plural, name], {"metadata": {"annotations": annotations}}))

    def delete(self, plural: str, name: str) -> None:
        """As kubectl delete."""
        found = self.objects[plural, name]
        if found["metadata"].get("finalizers"):
            self._replace(plural, merged(found, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
        else:
            self._remove(plural, name)

    def get(self, plural: str, name: str) -> dict[str, Any]:
        """An object; empty when there is none."""
        return self.objects.get((plural, name), {})

    def condition(self, plural: str, name: str, kind: str) -> tuple[str, str, str]:
        """(status, reason, message) of a condition."""
        for one in self.get(plural, name).get("status", {}).get("conditions", []):
            if one["type"] == kind:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def events(self) -> list[tuple[str, str, str]]:
        """(name of the object, reason, message) of all Events."""
        return [
            (one["involvedObject"]["name"], one["reason"], one["message"])
            for (plural, _), one in self.objects.items()
            if plural == "events"
        ]

    async def until(self, what: Any, limit_s: float = 60.0) -> None:
        """Return when `what()` is true; it is asked at every change of an object."""
        async with asyncio.timeout(limit_s):
            while not what():
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 0.2)

    # ---- objects

    def _create(self, plural: str, body: dict[str, Any]) -> dict[str, Any]:
        kind = KINDS[plural]
        group = next((f"{group}/v1" for group, plurals in GROUPS.items() if plural in plurals), "v1")
        given = {"namespace": NAMESPACE, **body["metadata"], "uid": f"uid-{self.version}", "generation": 1}
        found = {**body, "apiVersion": group, "kind": kind, "metadata": given}
        if plural in CUSTOM:
            found.pop("status", None)
        return self._put(plural, _key_of(found), found, "ADDED")

    def _replace(self, plural: str, body: dict[str, Any]) -> dict[str, Any]:
        name = _key_of(body)
        old = self.objects[plural, name]
        if body == old:
            return old
        if body.get("spec") != old.get("spec"):
            body = merged(body, {"metadata": {"generation": old["metadata"]["generation"] + 1}})
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers"):
            self._remove(plural, name)
            return body
        return self._put(plural, name, body, "MODIFIED")

    def _put(self, plural: str, name: str, body: dict[str, Any], type_: str) -> dict[str, Any]:
        self.version += 1
        found = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.objects[plural, name] = found
        self._report(plural, {"type": type_, "object": found})
        return found

    def _remove(self, plural: str, name: str) -> None:
        self.version += 1
        self._report(plural, {"type": "DELETED", "object": self.objects.pop((plural, name))})

    def _report(self, plural: str, event: dict[str, Any]) -> None:
        self._changed.set()
        for queue, watched in self._watchers.items():
            if watched == (plural, event["object"]["metadata"]["namespace"]):
                queue.put_nowait(event)

    # ---- HTTP

    def _application(self) -> Starlette:
        base = "/apis/{group}/v1/namespaces/{namespace}/{plural}"
        core = "/api/v1/namespaces/{namespace}/{plural}"
        routes = [
            Route("/version", self._version),
            Route("/api", self._core),
            Route("/apis", self._groups),
            Route("/apis/{group}", self._group),
            Route("/api/v1", self._core_resources),
            Route("/apis/{group}/v1", self._resources),
        ]
        for path in (base, core):
            routes += [
                Route(path, self._collection, methods=["GET", "POST"]),
                Route(path + "/{name}", self._object, methods=["GET", "PATCH", "PUT", "DELETE"]),
                Route(path + "/{name}/status", self._object, methods=["PATCH"]),
            ]
        return Starlette(routes=routes)

    async def _version(self, request: Request) -> Response:
        return JSONResponse({"major": "1", "minor": "34"})

    async def _core(self, request: Request) -> Response:
        return JSONResponse({"kind": "APIVersions", "versions": ["v1"]})

    async def _groups(self, request: Request) -> Response:
        groups = [self._one_group(group) for group in GROUPS if group != "nephila.dev" or self.has_crds]
        return JSONResponse({"kind": "APIGroupList", "groups": groups})

    async def _group(self, request: Request) -> Response:
        return JSONResponse(self._one_group(request.path_params["group"]))

    @staticmethod
    def _one_group(group: str) -> dict[str, Any]:
        version = {"groupVersion": f"{group}/v1", "version": "v1"}
        return {"name": group, "versions": [version], "preferredVersion": version}

    async def _core_resources(self, request: Request) -> Response:
        found = [self._resource(plural) for plural in ("events", "namespaces")]
        return JSONResponse({"kind": "APIResourceList", "groupVersion": "v1", "resources": found})

    async def _resources(self, request: Request) -> Response:
        group = request.path_params["group"]
        if group == "nephila.dev" and not self.has_crds:
            return failure(404, "NotFound", "the server could not find the requested resource")
        found = [self._resource(plural) for plural in GROUPS[group]]
        found += [{**self._resource(plural), "name": f"{plural}/status"} for plural in CUSTOM if group == "nephila.dev"]
        return JSONResponse({"kind": "APIResourceList", "groupVersion": f"{group}/v1", "resources": found})

    @staticmethod
    def _resource(plural: str) -> dict[str, Any]:
        kind, verbs = KINDS[plural], ["get", "list", "watch", "patch"]
        names = {"name": plural, "kind": kind, "singularName": kind.lower()}
        return {**names, "verbs": verbs, "namespaced": kind != "Namespace"}

    async def _collection(self, request: Request) -> Response:
        plural, namespace = request.path_params["plural"], request.path_params["namespace"]
        if request.method == "POST":
            body = await request.json()
            body["metadata"]["namespace"] = namespace
            self.writes.append(("POST", plural))
            if plural == "parserules" and self.refuse:
                return failure(422, "Invalid", self.refuse)
            if (plural, _key_of(body)) in self.objects:
                return failure(409, "AlreadyExists", "it exists already")
            return JSONResponse(self._create(plural, body), 201)
        if request.query_params.get("watch") in ("true", "True", "1"):
            return StreamingResponse(
                self._watch(plural, namespace, int(request.query_params.get("resourceVersion") or 0))
            )
        self.lists += 1
        items = self._all(plural, namespace)
        metadata = {"resourceVersion": str(self.version)}
        kind = f"{KINDS[plural]}List"
        return JSONResponse({"kind": kind, "apiVersion": "nephila.dev/v1", "metadata": metadata, "items": items})

    def _all(self, plural: str, namespace: str) -> list[dict[str, Any]]:
        found = [one for (kind, _), one in self.objects.items() if kind == plural]
        return [one for one in found if one["metadata"]["namespace"] == namespace]

    async def _watch(self, plural: str, namespace: str, since: int) -> AsyncIterator[bytes]:
        if self.gone:
            self.gone -= 1
            status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
            yield json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
            return
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        for one in self._all(plural, namespace):
            if int(one["metadata"]["resourceVersion"]) > since:
                queue.put_nowait({"type": "MODIFIED", "object": one})
        self._watchers[queue] = (plural, namespace)
        try:
            while (event := await queue.get()) is not None:
                yield json.dumps(event).encode() + b"\n"
        finally:
            del self._watchers[queue]

    async def _object(self, request: Request) -> Response:
        plural, name = (
            request.path_params["plural"],
            _key(request.path_params["name"], request.path_params["namespace"]),
        )
        found = self.objects.get((plural, name))
        if found is None:
            return failure(404, "NotFound", f'{plural} "{name}" not found')
        if request.method == "GET":
            return JSONResponse(found)
        self.writes.append((request.method, request.url.path))
        if plural == "parserules" and self.refuse and request.method == "PUT":
            return failure(422, "Invalid", self.refuse)
        if request.method == "DELETE":
            self.delete(plural, name)
            return JSONResponse(found)
        body = await request.json()
        version = body.get("metadata", {}).get("resourceVersion")
        if version is not None and version != found["metadata"]["resourceVersion"]:
            return failure(409, "Conflict", "the object has been modified")
        if request.method == "PUT":
            return JSONResponse(self._replace(plural, {**body, "kind": found["kind"]}))
        assert request.headers["content-type"] == "application/merge-patch+json"
        whole = merged(found, body)
        if request.url.path.endswith("/status"):
            whole = {**found, "status": whole["status"]}
        elif plural in CUSTOM and "status" in found:
            whole["status"] = found["status"]
        whole["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        return JSONResponse(self._replace(plural, whole))
