"""The chart as an OCI artifact: what a registry reads, and the same bytes for the same chart."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.chart.test_chart import CHART, EXAMPLES, helm
from tools.chart_archive import CONFIG, CONTENT, PROVENANCE, write
from tools.site import LATEST, PAGES, Site, place_of, settings


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
        examples = {f"nephila/examples/{path.name}" for path in EXAMPLES}
        assert {"nephila/Chart.yaml", "nephila/charts/nephila-crds/files/crawljobs.yaml"} <= set(files.getnames())
        assert examples <= set(files.getnames())


def test_helm_installs_from_the_repeatable_package(tmp_path: Path) -> None:
    found = package(tmp_path / "a")
    write(found)
    command = [helm(), "template", "web", str(found), "--kube-version=1.34.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "kind: CustomResourceDefinition" in done.stdout


def test_a_signed_package_is_verified_by_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a changed one is not. The key is of this test."""
    if shutil.which("gpg") is None:
        pytest.skip("no gpg")
    home = Path(tempfile.mkdtemp(prefix="gpg"))  # the path of its socket has a limit
    monkeypatch.setenv("GNUPGHOME", str(home))
    try:
        make = ["--batch", "--passphrase", "", "--quick-generate-key", "release@example.org", "rsa2048", "sign", "1d"]
        subprocess.run(["gpg", *make], check=True, capture_output=True, timeout=60)
        keys = subprocess.run(["gpg", "--export"], check=True, capture_output=True, timeout=60).stdout
        (tmp_path / "keys.gpg").write_bytes(keys)
        signed = package(tmp_path / "a")
        archive = write(signed, "release@example.org")
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True, timeout=60)
        shutil.rmtree(home, ignore_errors=True)
    command = [helm(), "verify", str(signed), "--keyring", str(tmp_path / "keys.gpg")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "release@example.org" in done.stdout
    with tarfile.open(archive) as files:
        content = [found.read() for one in files.getnames() if (found := files.extractfile(one))]
    assert signed.with_name(f"{signed.name}.prov").read_bytes() in content
    assert any(PROVENANCE.encode() in one for one in content)
    signed.write_bytes(signed.read_bytes() + b" ")
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode != 0


@pytest.mark.parametrize("chart", [CHART, CHART / "charts" / "nephila-crds"], ids=lambda path: path.name)
def test_a_chart_names_its_home_and_its_people(chart: Path) -> None:
    facts = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert {"home", "sources", "maintainers", "icon", "keywords", "annotations"} <= facts.keys()
    assert all(isinstance(value, str) for value in facts["annotations"].values())
    lists = [value for value in facts["annotations"].values() if value.startswith("- ")]
    assert all(isinstance(yaml.safe_load(value), list) for value in lists)


def test_the_package_names_each_crd() -> None:
    """As a hub of packages shows them."""
    facts = yaml.safe_load((CHART / "Chart.yaml").read_text())
    listed = {one["name"]: one for one in yaml.safe_load(facts["annotations"]["artifacthub.io/crds"])}
    files = (CHART / "charts" / "nephila-crds" / "files").glob("*.yaml")
    crds = {crd["metadata"]["name"]: crd["spec"] for path in files for crd in [yaml.safe_load(path.read_text())]}
    assert {name: (one["kind"], one["version"]) for name, one in listed.items()} == {
        name: (spec["names"]["kind"], spec["versions"][0]["name"]) for name, spec in crds.items()
    }


def test_the_links_of_the_package_are_pages_of_the_site() -> None:
    facts = yaml.safe_load((CHART / "Chart.yaml").read_text())
    pages = {
        f"{facts['home']}/{LATEST}/{place_of(page).removesuffix('.md')}/"
        for page in [page for pages in PAGES.values() for page in pages.values() if page.endswith(".md")]
    }
    assert {link["url"] for link in yaml.safe_load(facts["annotations"]["artifacthub.io/links"])} <= pages
    assert facts["icon"] == f"{facts['home']}/{LATEST}/{settings(Site())['theme']['logo']}"
