"""What the images are built from: Dockerfiles, compose file, skaffold file, bill of materials, seccomp profile."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools.images import IMAGES
from tools.lock import MARKERS, marked
from tools.reproduce import difference
from tools.sbom import bill, locked

ROOT = Path(__file__).parents[2]
DOCKERFILE, BROWSER = ROOT / "docker" / "Dockerfile", ROOT / "docker" / "Dockerfile.browser"
LABELS = ("title", "description", "version", "revision")


@pytest.mark.parametrize("path", [DOCKERFILE, BROWSER], ids=lambda path: path.name)
def test_an_image_has_labels_a_user_and_no_volume(path: Path) -> None:
    """The user is a number, so that a cluster can verify that it is not root."""
    text = path.read_text()
    assert all(f"org.opencontainers.image.{name}=" in text for name in LABELS)
    assert int(re.findall(r"^USER (\d+)$", text, re.MULTILINE)[-1]) > 10_000
    assert not re.search(r"^VOLUME", text, re.MULTILINE)


def test_the_services_are_the_same_layers() -> None:
    """A node loads them once; only labels differ, and these are set above all layers."""
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE.read_text(), re.MULTILINE)
    parents = {name: parent for parent, name in stages}
    assert {parents[name] for name in ("scheduler", "downloader", "parser", "storage", "cli")} == {"services"}
    assert set(IMAGES) <= parents.keys()
    assert stages[-1] == ("${SERVICE}", "")
    last = DOCKERFILE.read_text().rpartition("FROM ${SERVICE}")[2]
    assert not re.search(r"^(RUN|COPY|ADD)\b", last, re.MULTILINE)


@pytest.mark.parametrize(
    ("first", "second", "number"),
    [(["a", "b"], ["a", "b"], None), (["a", "b"], ["a", "c"], 1), (["a"], ["a", "b"], 1), (["a"], ["b"], 0)],
)
def test_the_lowest_layer_that_differs_is_named(first: list[str], second: list[str], number: int | None) -> None:
    """A layer that is missing differs."""
    assert difference(first, second) == number


def test_a_service_image_has_a_health_check_and_a_stop_signal() -> None:
    """The image with a browser inherits both."""
    text = DOCKERFILE.read_text()
    assert re.search(r"^HEALTHCHECK .*\n.*/healthz", text, re.MULTILINE)
    assert "STOPSIGNAL SIGTERM" in text
    assert re.search(r"^FROM \$\{DOWNLOADER\}", BROWSER.read_text(), re.MULTILINE)


def test_compose_has_the_images_and_no_anonymous_volume() -> None:
    """`docker compose down` leaves only named volumes."""
    file = yaml.safe_load((ROOT / "compose.yaml").read_text())
    ours = {one["image"] for one in file["services"].values() if one["image"].startswith("nephila-")}
    names = {image.partition(":")[0].removeprefix("nephila-") for image in ours}
    assert names == {*IMAGES, "browser"} - {"operator"}
    for name, one in file["services"].items():
        for volume in one.get("volumes", []):
            assert volume.partition(":")[0] in file["volumes"], (name, volume)
    profile = file["services"]["browser"]["security_opt"][0].removeprefix("seccomp=")
    assert (ROOT / profile).exists()


SKAFFOLD: dict[str, Any] = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "build": {
        "local": {"push": bool, "useBuildkit": bool},
        "artifacts": [
            {
                "image": str,
                "context": str,
                "docker": {"dockerfile": str, "buildArgs": dict},
                "hooks": {"before": [{"command": list}]},
                "requires": [{"image": str, "alias": str}],
            }
        ],
        "tagPolicy": {"envTemplate": {"template": str}},
    },
    "deploy": {
        "helm": {
            "releases": [
                {
                    "name": str,
                    "chartPath": str,
                    "namespace": str,
                    "createNamespace": bool,
                    "wait": bool,
                    "valuesFiles": list,
                    "setValues": dict,
                }
            ]
        }
    },
    "portForward": [{"resourceType": str, "resourceName": str, "namespace": str, "port": int, "localPort": int}],
    "profiles": [{"name": str, "build": dict}],
}
"""The keys of skaffold's schema v4beta11 that skaffold.yaml may use, with their types."""


def fits(value: Any, shape: Any, where: str = "skaffold") -> None:
    """Compare a document with its shape."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert value.keys() <= shape.keys(), f"{where}: {value.keys() - shape.keys()}"
        for key, one in value.items():
            fits(one, shape[key], f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for one in value:
            fits(one, shape[0], where)
    else:
        assert isinstance(value, shape), where


def test_skaffold_builds_every_image_and_installs_the_chart() -> None:
    """With files that exist and arguments that the Dockerfile knows."""
    file = yaml.safe_load((ROOT / "skaffold.yaml").read_text())
    fits(file, SKAFFOLD)
    (profile,) = file["profiles"]
    fits(profile["build"], SKAFFOLD["build"])
    artifacts = [*file["build"]["artifacts"], *profile["build"]["artifacts"]]
    assert {one["image"].removeprefix("nephila-") for one in artifacts} == {*IMAGES, "browser"}
    for one in artifacts:
        assert (ROOT / one["docker"]["dockerfile"]).exists()
        if service := one["docker"].get("buildArgs", {}).get("SERVICE"):
            assert one["image"] == f"nephila-{service}"
    (release,) = file["deploy"]["helm"]["releases"]
    assert all((ROOT / path).exists() for path in (release["chartPath"], *release["valuesFiles"]))


@pytest.mark.parametrize("image", [*IMAGES, "browser"])
def test_a_bill_of_materials_is_valid_and_complete(image: str) -> None:
    """CycloneDX 1.6; every library of the lock file, every Debian package, with their identities."""
    document = bill(image, "9.8.7", "libc6 2.36-9+deb12u10 amd64")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    found = json.loads(document)
    assert found["metadata"]["component"]["name"] == f"nephila-{image}"
    purls = {one["purl"] for one in found["components"]}
    assert "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64" in purls
    assert any(purl.startswith("pkg:pypi/nephila@") for purl in purls)
    assert any(purl.startswith("pkg:cargo/ring@") for purl in purls)
    assert not any(purl.startswith("pkg:cargo/nephila") for purl in purls)
    hashed = [one for one in found["components"] if one.get("hashes")]
    assert len(hashed) == len(purls) - 2


def test_every_locked_library_has_a_hash() -> None:
    """Of all lock files; the browser's holds Playwright, and the same versions as the service's."""
    versions = {}
    for path in sorted((ROOT / "docker" / "lock").glob("*.txt")):
        text = path.read_text()
        libraries = locked(text)
        assert len(libraries) == len(re.findall(r"^[a-z].*==", text, re.MULTILINE)), path.name
        assert all(one.hashes for one in libraries), path.name
        versions[path.stem] = {one.name: one.version for one in libraries}
    assert "playwright" in versions["browser"]
    assert versions["service"].items() <= versions["browser"].items()


def test_a_library_without_wheels_for_arm_is_locked_for_the_others() -> None:
    """The images have no compiler: one of such libraries would end the build of all images for ARM."""
    entry = "quickjs==1.19.4 \\\n    --hash=sha256:00\n"
    assert marked(entry) == "quickjs==1.19.4 ; platform_machine == 'x86_64' \\\n    --hash=sha256:00\n"
    for path in sorted((ROOT / "docker" / "lock").glob("*.txt")):
        text = path.read_text()
        assert marked(text) == text, path.name
        assert all(re.search(rf"^{name}==", text, re.MULTILINE) for name in MARKERS), path.name


def test_the_seccomp_profile_allows_a_sandbox_and_little_else() -> None:
    """User namespaces for Chromium; no mounts, modules, tracing of the kernel, keys or io_uring."""
    profile = json.loads((ROOT / "docker" / "seccomp-browser.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = [name for one in profile["syscalls"] if one["action"] == "SCMP_ACT_ALLOW" for name in one["names"]]
    assert len(allowed) == len(set(allowed))
    assert {"clone", "unshare", "chroot", "execve", "seccomp"} <= set(allowed)
    refused = "mount umount2 bpf init_module finit_module kexec_load perf_event_open keyctl add_key reboot swapon"
    assert not {*refused.split(), "io_uring_setup", "userfaultfd", "open_by_handle_at"} & set(allowed)
