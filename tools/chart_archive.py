"""Writes a packaged chart as an OCI image layout in one tar file, as registries take it.

    python -m tools.chart_archive dist/nephila-1.2.3.tgz          → dist/nephila-1.2.3.oci.tar

Publish with `oras copy --from-oci-layout FILE:1.2.3 REGISTRY/nephila:1.2.3` or `skopeo copy oci-archive:FILE …`;
install with `helm install nephila oci://REGISTRY/nephila --version 1.2.3`. The same chart gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import yaml

CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def repeatable(chart: bytes) -> bytes:
    """The same package without times and in order of its names."""
    target = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(chart)) as source,
        gzip.GzipFile(fileobj=target, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as files,
    ):
        for one in sorted(source.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(one.name)
            plain.size, plain.mode = one.size, 0o644
            files.addfile(plain, source.extractfile(one))
    return target.getvalue()


def layout(chart: bytes) -> dict[str, bytes]:
    """Path → content of the layout for a packaged chart."""
    with tarfile.open(fileobj=io.BytesIO(chart)) as package:
        name = next(one for one in package.getnames() if one.count("/") == 1 and one.endswith("/Chart.yaml"))
        found = package.extractfile(name)
        assert found is not None
        facts: dict[str, Any] = yaml.safe_load(found.read())
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(json.dumps(facts, sort_keys=True).encode(), CONFIG),
        "layers": [blob(chart, CONTENT)],
        "annotations": {
            "org.opencontainers.image.title": facts["name"],
            "org.opencontainers.image.version": facts["version"],
            "org.opencontainers.image.description": facts["description"],
        },
    }
    entry = blob(json.dumps(manifest, sort_keys=True).encode(), MANIFEST)
    entry["annotations"] = {"org.opencontainers.image.ref.name": facts["version"]}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
    return {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode(), **blobs}


def write(package: Path) -> Path:
    """Make the package repeatable and write the archive beside it; returns the path of the archive."""
    chart = repeatable(package.read_bytes())
    package.write_bytes(chart)
    target = package.with_name(f"{package.stem}.oci.tar")
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as files:
        for path, content in sorted(layout(chart).items()):
            one = tarfile.TarInfo(path)
            one.size = len(content)
            files.addfile(one, io.BytesIO(content))
    return target


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(write(Path(given)))
