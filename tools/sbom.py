"""Writes the bill of materials of each image as CycloneDX JSON: dist/sbom/<image>.cdx.json.

    python -m tools.sbom [--tag TAG] [--repository PREFIX] [--images[=local]]

Python libraries come from docker/lock and crates of the native core from its Cargo.lock, with versions and hashes;
crates that only build or test it are among them. `--images` adds the Debian packages, as dpkg lists them in the images
of this name and tag; `--images=local` only where this machine has the image.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tomllib
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tools.images import IMAGES, docker
from tools.release import version

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "docker" / "lock"
TARGET = ROOT / "dist" / "sbom"
CARGO = ROOT / "services" / "nephila" / "native" / "core" / "Cargo.lock"
LOCKS = {"cli": "cli", "operator": "operator", "browser": "browser"}
"""Image → its lock file; all others have that of the services."""


def locked(text: str) -> list[Component]:
    """The libraries of a lock file."""
    found = []
    for entry in re.split(r"\n(?=\S)", text):
        if head := re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", entry):
            purl = PackageURL("pypi", name=head[1].lower().replace("_", "-"), version=head[2])
            hashes = [HashType(alg=HashAlgorithm.SHA_256, content=one) for one in re.findall(r"sha256:(\w{64})", entry)]
            found.append(component(head[1], head[2], purl, hashes))
    return found


def crates(text: str) -> list[Component]:
    """The crates of a Cargo.lock, without those of this repository."""
    return [
        component(
            crate["name"],
            crate["version"],
            PackageURL("cargo", name=crate["name"], version=crate["version"]),
            [HashType(alg=HashAlgorithm.SHA_256, content=crate["checksum"])],
        )
        for crate in tomllib.loads(text)["package"]
        if "source" in crate
    ]


def installed(listing: str, distribution: str = "debian") -> list[Component]:
    """The packages of `dpkg-query -W`, one `name version architecture` a line."""
    found = []
    for line in listing.splitlines():
        name, version, architecture = line.split(" ")
        purl = PackageURL("deb", distribution, name, version, {"arch": architecture})
        found.append(component(name, version, purl))
    return found


def component(name: str, version: str, purl: PackageURL, hashes: list[HashType] | None = None) -> Component:
    """One library or package."""
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=purl.to_string(), hashes=hashes
    )


def bill(image: str, tag: str, packages: str = "") -> str:
    """The document of one image. `packages`: what dpkg lists in it."""
    bom = Bom()
    bom.metadata.component = Component(
        type=ComponentType.CONTAINER, name=f"nephila-{image}", version=tag, bom_ref=f"nephila-{image}:{tag}"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = component(project["name"], project["version"], PackageURL("pypi", name="nephila", version=project["version"]))
    libraries = locked((LOCK / f"{LOCKS.get(image, 'service')}.txt").read_text())
    for one in (own, *libraries, *crates(CARGO.read_text()), *installed(packages)):
        bom.components.add(one)
    bom.register_dependency(bom.metadata.component, bom.components)
    return str(JsonV1Dot6(bom).output_as_string(indent=1))


def packages_of(image: str, local: bool) -> str:
    """What dpkg lists in an image; `local`: nothing where this machine does not have it."""
    try:
        if local:
            docker("image", "inspect", "--format", "{{.Id}}", image)
    except (OSError, subprocess.CalledProcessError):
        print(f"{image} is not on this machine: its bill has no Debian packages")
        return ""
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\\n"]
    return docker("run", "--rm", "--network", "none", "--entrypoint", query[0], image, *query[1:])


def main() -> None:
    """Write all documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default=version())
    parser.add_argument("--repository", default="nephila", help="registry and prefix of the images")
    parser.add_argument("--images", nargs="?", const="all", choices=("all", "local"), help="with their Debian packages")
    options = parser.parse_args()
    TARGET.mkdir(parents=True, exist_ok=True)
    for image in (*IMAGES, "browser"):
        full = f"{options.repository}-{image}:{options.tag}"
        packages = packages_of(full, options.images == "local") if options.images else ""
        path = TARGET / f"{image}.cdx.json"
        path.write_text(bill(image, options.tag, packages) + "\n")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
