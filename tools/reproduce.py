"""Builds an image twice without a cache, and compares its layers.

    python -m tools.reproduce [SERVICE...] [--base IMAGE]

Prints the digest of each layer; exit code 1 and the number of the layer where two builds differ. What the base image
has is not compared. Labels are the commit's and its time, so equal layers are an equal image.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tools.images import BASE, IMAGES, build, docker, labels
from tools.release import version

ROOT = Path(__file__).parents[1]


def layers(image: str) -> list[str]:
    """Digests of the layers of an image that is there, the lowest first."""
    return list(json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", image)))


def difference(first: list[str], second: list[str]) -> int | None:
    """Number of the first layer that differs, the lowest is 0; None if all are equal."""
    if first == second:
        return None
    equal = [one == two for one, two in zip(first, second, strict=False)]
    return equal.index(False) if False in equal else len(equal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service", nargs="*", default=["scheduler"], choices=IMAGES)
    parser.add_argument("--base", default=BASE)
    options = parser.parse_args()
    broken = False
    for service in options.service:
        arguments = {"SERVICE": service, "BASE": options.base, "VERSION": version(), **labels(ROOT)}
        file = ROOT / "docker" / "Dockerfile"
        tags = [f"reproduce-{number}" for number in (1, 2)]
        found = [layers(build(f"nephila-{service}", tag, file, ROOT, arguments, cached=False)) for tag in tags]
        docker("image", "rm", *(f"nephila-{service}:{tag}" for tag in tags))
        number = difference(*found)
        broken |= number is not None
        verdict = "equal" if number is None else f"layer {number} differs"
        print(f"{service}: {len(found[0])} layers, {verdict}")
        for one in found[0]:
            print(f"  {one}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
