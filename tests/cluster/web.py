"""The site of a run as a pod with many Services, and the volumes of a cluster without a StorageClass."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.cluster.release import Release
from tests.cluster.verdict import Verdict, judge

SITE = Path(__file__).with_name("site.py")
CLASS = "nephila-show"
VOLUMES = 10
FOLDERS = f"/var/tmp/{CLASS}"  # noqa: S108 - of the node


class Web:
    """Hosts of a number of pages each, in the namespace of a release."""

    def __init__(self, release: Release, hosts: int, pages: int) -> None:
        self.release = release
        self.hosts = [f"h{number:02}" for number in range(hosts)]
        self.pages = pages
        self.goal = hosts * pages
        self.names = [f"{host}.{release.namespace}.svc.cluster.local" for host in self.hosts]
        self.start = f"http://{self.names[0]}/0"

    def open(self) -> None:
        """Start the site anew: its log begins here."""
        began = time.monotonic()
        limit = f"--timeout={self.release.limit(120)}"
        self.release.kubectl("delete", "pod/site", "--ignore-not-found", "--grace-period=1", limit)
        manifest = {
            "apiVersion": "v1",
            "kind": "List",
            "items": [{"apiVersion": "v1", **one} for one in self._objects()],
        }
        self.release.kubectl("apply", "-f", "-", text=json.dumps(manifest))
        self.release.kubectl("wait", "--for=condition=Ready", "pod/site", limit)
        self.release.step("site", began, f"{len(self.hosts)} hosts of {self.pages} pages")

    def _objects(self) -> list[dict[str, Any]]:
        labels = {"app": "site"}
        container = {
            "name": "site",
            "image": f"nephila-cli:{self.release.options.tag}",
            "command": ["python3", "/site/site.py", str(self.pages), *self.names],
            "ports": [{"containerPort": 8080}],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
            "volumeMounts": [{"name": "site", "mountPath": "/site"}],
        }
        pod = {"containers": [container], "volumes": [{"name": "site", "configMap": {"name": "site"}}]}
        ports = [{"port": 80, "targetPort": 8080}]
        return [
            {"kind": "ConfigMap", "metadata": {"name": "site"}, "data": {"site.py": SITE.read_text()}},
            {"kind": "Pod", "metadata": {"name": "site", "labels": labels}, "spec": pod},
            *({"kind": "Service", "metadata": {"name": host}, "spec": {"selector": labels, "ports": ports}}
              for host in self.hosts),
        ]  # fmt: skip

    def requests(self) -> list[dict[str, Any]]:
        """The requests that it has got, one dict each."""
        log = self.release.kubectl("logs", "pod/site", "--tail=-1")
        return [json.loads(line) for line in log.splitlines() if line.startswith("{")]

    def verdict(self, delay_s: float) -> Verdict:
        """Of its log so far."""
        return judge(self.requests(), delay_s)


def make_storage_class(release: Release) -> None:
    """A default StorageClass over folders of the node, for clusters that have none: claims then outlive their pods.
    A volume that was used is made empty and free again."""
    found = release.run("kubectl", "get", "storageclass", "-o", "jsonpath={.items[*].metadata.name}").split()
    if found not in ([], [CLASS]):
        return
    release.run("kubectl", "create", "namespace", release.namespace, check=False)
    release.run("kubectl", "delete", "pv", "-l", f"app={CLASS}", f"--timeout={release.limit(60)}")
    _empty_folders(release)
    metadata = {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata,
         "provisioner": "kubernetes.io/no-provisioner"},
        *(_volume(number) for number in range(VOLUMES)),
    ]  # fmt: skip
    release.run("kubectl", "apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def _volume(number: int) -> dict[str, Any]:
    spec = {
        "capacity": {"storage": "100Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "storageClassName": CLASS,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": f"{FOLDERS}/{number}"},
    }
    metadata = {"name": f"{CLASS}-{number}", "labels": {"app": CLASS}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def delete_storage_class(release: Release) -> None:
    """What `make_storage_class` has made."""
    release.run("kubectl", "delete", "pv", "-l", f"app={CLASS}", f"--timeout={release.limit(60)}", check=False)
    release.run("kubectl", "delete", "storageclass", CLASS, "--ignore-not-found")


def _empty_folders(release: Release) -> None:
    """Folders that every user may write: a kubelet does not change the owner of a hostPath."""
    script = f"rm -rf /v/* && cd /v && for n in $(seq 0 {VOLUMES - 1}); do mkdir $n && chmod 777 $n; done"
    _on_node(release, script, FOLDERS)


def write_to_node(release: Release, file: Path, folder: str) -> None:
    """Copy a file into a folder of the node."""
    _on_node(release, f"cat > /v/{file.name} <<'END'\n{file.read_text()}\nEND\n", folder)


def _on_node(release: Release, script: str, folder: str) -> None:
    """Run a script as root, with a folder of the node at /v."""
    container = {
        "name": "folder",
        "image": f"nephila-cli:{release.options.tag}",
        "command": ["sh", "-euc", script],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    volume = {"name": "v", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": [volume]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "folder"}, "spec": spec}
    release.kubectl("apply", "-f", "-", text=json.dumps(pod))
    limit = f"--timeout={release.limit(60)}"
    release.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/folder", limit)
    release.kubectl("delete", "pod/folder", limit)
