"""axe-core, which looks for what keeps people from using a page, from npm into the user's cache.

python -m tools.axe install [--optional]
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.install import run
from tools.npm_package import REMEDY, NpmPackage

PACKAGE = NpmPackage(
    "axe-core",
    "4.14.1",
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5",
    ("axe.min.js",),
    "axe",
)


def find() -> Path:
    """The path of its script. Raises `Missing`."""
    return PACKAGE.find() / "axe.min.js"


if __name__ == "__main__":
    sys.exit(run(__doc__, PACKAGE.install, PACKAGE.name, REMEDY))
