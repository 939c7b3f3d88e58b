"""Chromium for tests, benches and the browser lane: where it is, and its installation on Debian.

usage: python -m tools.chromium [install]
"""

from __future__ import annotations

import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium: python -m tools.chromium install, or apt-get install chromium"


def find() -> str | None:
    """The path of an installed Chromium; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def install() -> str:
    """Install the package of the system where none is found; returns its path."""
    found = find()
    if found is None and shutil.which("apt-get"):
        sudo = ["sudo", "-n"] if shutil.which("sudo") else []
        for words in (["update", "-q"], ["install", "-qy", "--no-install-recommends", "chromium", "iproute2"]):
            subprocess.run([*sudo, "apt-get", *words], check=True)
        found = find()
    if found is None:
        sys.exit(MISSING)
    return found


if __name__ == "__main__":
    print(install() if sys.argv[1:] == ["install"] else find() or MISSING)
