"""An API server with the objects of an installed release, for the chart's lookups, and what no upgrade changes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.chart.test_chart import CHART, OPERATORS, helm

GROUPS = {
    "v1": {"configmaps": "ConfigMap", "secrets": "Secret", "persistentvolumeclaims": "PersistentVolumeClaim"},
    "apps/v1": {"deployments": "Deployment", "statefulsets": "StatefulSet"},
    "storage.k8s.io/v1": {"storageclasses": "StorageClass"},
    "rbac.authorization.k8s.io/v1": {"clusterroles": "ClusterRole"},
    "apiextensions.k8s.io/v1": {"customresourcedefinitions": "CustomResourceDefinition"},
}
NAMESPACED = ("v1", "apps/v1")
MISSING = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


def answers(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Path → answer of an API server with these objects."""
    every: dict[str, Any] = {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    }
    for group, kinds in GROUPS.items():
        base = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        resources = [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": group in NAMESPACED}
            for plural, kind in kinds.items()
        ]
        verbs = {"verbs": ["get", "list"]}
        every[base] = {
            "kind": "APIResourceList",
            "groupVersion": group,
            "resources": [{**one, **verbs} for one in resources],
        }
        for plural, kind in kinds.items():
            items = [one for one in found if one["kind"] == kind and one["apiVersion"] == group]
            every[f"{base}/{plural}"] = {"kind": f"{kind}List", "apiVersion": group, "metadata": {}, "items": items}
            for namespace in {one["metadata"].get("namespace", "") for one in items} | {"crawl"}:
                here = [one for one in items if one["metadata"].get("namespace", "") == namespace]
                listed = {"kind": f"{kind}List", "apiVersion": group, "metadata": {}, "items": here}
                every[f"{base}/namespaces/{namespace}/{plural}"] = listed
            for one in items:
                place = f"/namespaces/{one['metadata']['namespace']}" if group in NAMESPACED else ""
                every[f"{base}{place}/{plural}/{one['metadata']['name']}"] = one
    return every


@contextlib.contextmanager
def cluster(folder: Path, found: list[dict[str, Any]]) -> Iterator[str]:
    """The path of a kubeconfig for an API server with these objects."""
    known = answers(found)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = known.get(self.path.partition("?")[0])
            body = json.dumps(answer or MISSING).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(json.dumps(content))
    try:
        yield str(path)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def upgrade(kubeconfig: str, *arguments: str, release: str = "web") -> subprocess.CompletedProcess[str]:
    """What `helm upgrade` would apply, with the lookups of a cluster."""
    command = [helm(), "template", release, str(CHART), "--namespace", "crawl", "--dry-run=server", *OPERATORS]
    command += ["--kubeconfig", kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def rendered(kubeconfig: str, *arguments: str) -> list[dict[str, Any]]:
    """The same as objects."""
    done = upgrade(kubeconfig, *arguments)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]


def immutable(one: dict[str, Any]) -> Any:
    """The part of an object that the API server does not let change; None when everything may."""
    spec = one.get("spec", {})
    match one["kind"]:
        case "Deployment":
            return spec["selector"]
        case "StatefulSet":
            keys = ("serviceName", "selector", "podManagementPolicy", "volumeClaimTemplates")
            return {key: spec[key] for key in keys if key in spec}
        case "Job":
            return spec["template"]
        case "Service":
            return spec.get("clusterIP")
        case "PersistentVolumeClaim":
            return {"accessModes": spec["accessModes"], "storageClassName": spec.get("storageClassName", "")}
        case "RoleBinding":
            return one["roleRef"]
        case "Secret":
            return one.get("type")
    return None


def named_parts(found: list[dict[str, Any]]) -> dict[str, Any]:
    """KIND NAME → its immutable part."""
    return {f"{one['kind']} {one['metadata']['name']}": part for one in found if (part := immutable(one)) is not None}
