"""Builds the images from dist/*.whl: services, the downloader with a browser, the command line; on request dev images.

    python -m tools.images [--tag TAG] [--base IMAGE] [--dev] [--push] [--load COMMAND]

`--load` runs a command for each image, with the path of its archive as last word: `kind load image-archive`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.kafka_broker import cache
from tools.release import version

ROOT = Path(__file__).parents[1]
IMAGES = ("scheduler", "downloader", "parser", "storage", "operator", "cli")
BASE = "python:3.11-slim-bookworm"
DEV = {"nephila-dev-kafka": "kafka", "nephila-dev-postgres": "postgres"}


def docker(*words: str) -> str:
    """Run docker, or the program that DOCKER names, with BuildKit; its output."""
    command = [os.environ.get("DOCKER", "docker"), *words]
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def labels(root: Path) -> dict[str, str]:
    """Build arguments for the labels of an image: the commit and its time, so that two builds have the same."""
    words = ["git", "show", "--no-patch", "--format=%H %cI", "HEAD"]
    found = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stdout.split()
    return dict(zip(("REVISION", "CREATED"), found, strict=False))


def build(name: str, tag: str, file: Path, context: Path, arguments: dict[str, str], *, cached: bool = True) -> str:
    """Build one image; its full name."""
    image = f"{name}:{tag}"
    words = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    network = ["--network", os.environ["NEPHILA_BUILD_NETWORK"]] if "NEPHILA_BUILD_NETWORK" in os.environ else []
    cache = [] if cached else ["--no-cache"]
    docker("build", "--quiet", *cache, *network, "-f", str(file), *words, "-t", image, str(context))
    return image


def size_mb(image: str) -> float:
    """Its size in megabytes."""
    return int(docker("image", "inspect", "--format", "{{.Size}}", image)) / 1e6


def dev_image(name: str, kind: str, tag: str, base: str) -> str:
    """A broker or a database for a cluster without a registry."""
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        for path in (ROOT / "docker" / "dev").iterdir():
            shutil.copy(path, context)
        if kind == "kafka":
            shutil.copytree(cache() / "lib", context / "lib")
        return build(name, tag, context / f"{kind}.Dockerfile", context, {"BASE": base})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default=version())
    parser.add_argument("--base", default=BASE, help="a Debian image with Python >= 3.11 and pip")
    parser.add_argument("--repository", default="nephila")
    parser.add_argument(
        "--dev", action="store_true", help="also a broker and a database for clusters without a registry"
    )
    parser.add_argument("--push", action="store_true", help="push the images to the registry in their names")
    parser.add_argument("--load", default="", help="command that loads an image archive into the cluster")
    options = parser.parse_args()
    wheels = list((ROOT / "dist").glob("nephila-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"dist/ holds {len(wheels)} wheels of nephila, one is needed: run `make wheels`")
    revision = labels(ROOT)
    built = []
    for service in IMAGES:
        arguments = {"SERVICE": service, "BASE": options.base, "VERSION": options.tag, **revision}
        built.append(
            build(f"{options.repository}-{service}", options.tag, ROOT / "docker" / "Dockerfile", ROOT, arguments)
        )
    arguments = {"DOWNLOADER": f"{options.repository}-downloader:{options.tag}", "VERSION": options.tag, **revision}
    file = ROOT / "docker" / "Dockerfile.browser"
    built.append(build(f"{options.repository}-browser", options.tag, file, ROOT, arguments))
    if options.dev:
        built += [dev_image(name, kind, options.tag, options.base) for name, kind in DEV.items()]
    base_mb = size_mb(options.base)
    print(f"{'image':<40} {'MB':>6} {'over base':>10}")
    for image in built:
        print(f"{image:<40} {size_mb(image):>6.0f} {size_mb(image) - base_mb:>10.0f}")
    for image in built if options.push else []:
        docker("push", "--quiet", image)
    if options.load:
        for image in built:
            with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
                docker("save", "-o", archive.name, image)
                subprocess.run([*shlex.split(options.load), archive.name], check=True)


if __name__ == "__main__":
    main()
