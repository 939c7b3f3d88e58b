"""Writes a packaged chart as an OCI image layout in one tar file, as registries take it, and signs it on request.

    python -m tools.chart_archive dist/nephila-1.2.3.tgz [--key USER]    → dist/nephila-1.2.3.oci.tar [and .tgz.prov]

`--key` names a secret key of gpg. The signature is a provenance file of Helm (`helm verify`, `helm install --verify`):
`helm package --sign` cannot make it, since the package is made repeatable after it. Publish with
`oras copy --from-oci-layout FILE:1.2.3 REGISTRY/nephila:1.2.3` or `skopeo copy oci-archive:FILE …`; install with
`helm install nephila oci://REGISTRY/nephila --version 1.2.3`. The same chart gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import yaml

CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
PROVENANCE = "application/vnd.cncf.helm.chart.provenance.v1.prov"
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


def facts_of(chart: bytes) -> dict[str, Any]:
    """Chart.yaml of a packaged chart."""
    with tarfile.open(fileobj=io.BytesIO(chart)) as package:
        name = next(one for one in package.getnames() if one.count("/") == 1 and one.endswith("/Chart.yaml"))
        content = package.extractfile(name)
        assert content is not None
        facts: dict[str, Any] = yaml.safe_load(content.read())
        return facts


def sign(package: Path, key: str) -> Path:
    """Write the provenance file of a package beside it. Raises `CalledProcessError` when gpg has no such secret key."""
    chart = package.read_bytes()
    sums = {"files": {package.name: f"sha256:{hashlib.sha256(chart).hexdigest()}"}}
    text = f"{yaml.safe_dump(facts_of(chart))}\n...\n{yaml.safe_dump(sums)}"
    command = ["gpg", "--batch", "--yes", "--local-user", key, "--digest-algo", "SHA512", "--clearsign"]
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    target = package.with_name(f"{package.name}.prov")
    target.write_bytes(done.stdout)
    return target


def layout(chart: bytes, provenance: bytes = b"") -> dict[str, bytes]:
    """Path → content of the layout for a packaged chart, and its provenance file if it is signed."""
    facts = facts_of(chart)
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(json.dumps(facts, sort_keys=True).encode(), CONFIG),
        "layers": [blob(chart, CONTENT), *([blob(provenance, PROVENANCE)] if provenance else [])],
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


def write(package: Path, key: str = "") -> Path:
    """Make the package repeatable, sign it if a key is named, and write the archive beside it; its path."""
    chart = repeatable(package.read_bytes())
    package.write_bytes(chart)
    provenance = sign(package, key).read_bytes() if key else b""
    target = package.with_name(f"{package.stem}.oci.tar")
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as files:
        for path, content in sorted(layout(chart, provenance).items()):
            one = tarfile.TarInfo(path)
            one.size = len(content)
            files.addfile(one, io.BytesIO(content))
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--key", default="", help="user id of a secret key of gpg")
    options = parser.parse_args()
    for package in options.packages:
        print(write(package, options.key))


if __name__ == "__main__":
    main()
