"""The chart as an OCI artifact: what a registry reads, and the same bytes for the same chart."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

from tests.chart.test_chart import CHART, helm
from tools.chart_archive import CONFIG, CONTENT, write


def package(folder: Path) -> Path:
    folder.mkdir()
    command = [helm(), "package", str(CHART), "--destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (found,) = folder.glob("*.tgz")
    return found


def test_the_archive_has_the_chart_by_its_digests_and_is_repeatable(tmp_path: Path) -> None:
    first, second = package(tmp_path / "a"), package(tmp_path / "b")
    os.utime(second, (1, 1))
    archive = write(first)
    assert archive.read_bytes() == write(second).read_bytes()
    with tarfile.open(archive) as files:
        content = {one: found.read() for one in files.getnames() if (found := files.extractfile(one))}
    (entry,) = json.loads(content["index.json"])["manifests"]
    manifest = json.loads(content[f"blobs/sha256/{entry['digest'].removeprefix('sha256:')}"])
    assert manifest["config"]["mediaType"] == CONFIG
    (layer,) = manifest["layers"]
    chart = content[f"blobs/sha256/{layer['digest'].removeprefix('sha256:')}"]
    assert (layer["mediaType"], layer["size"], chart) == (CONTENT, len(chart), first.read_bytes())
    assert all(path.endswith(hashlib.sha256(one).hexdigest()) for path, one in content.items() if "blobs/" in path)
    with tarfile.open(fileobj=io.BytesIO(chart)) as files:
        assert {"nephila/Chart.yaml", "nephila/charts/nephila-crds/files/crawljobs.yaml"} <= set(files.getnames())


def test_helm_installs_from_the_repeatable_package(tmp_path: Path) -> None:
    found = package(tmp_path / "a")
    write(found)
    command = [helm(), "template", "web", str(found), "--kube-version=1.34.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "kind: CustomResourceDefinition" in done.stdout
