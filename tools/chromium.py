"""Chromium for tests and benches: the one of the system, installed by apt where it is missing and apt is there.

python -m tools.chromium install [--optional]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tools.install import Missing, run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str:
    """The path of Chromium. Raises `Missing`."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise Missing("no Chromium found; python -m tools.chromium install, or apt-get install chromium")


def install() -> str:
    """The path of Chromium; installs Debian's package, as root, where there is none. Raises `Missing`."""
    try:
        return find()
    except Missing:
        if not shutil.which("apt-get") or os.geteuid() != 0:
            raise
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update", "-q"), ("install", "-y", "-q", "--no-install-recommends", "chromium")):
        subprocess.run(["apt-get", *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    return find()


if __name__ == "__main__":
    sys.exit(run(__doc__, install, "chromium", "tests of the browser need it"))
