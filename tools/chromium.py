"""Chromium for tests and benches: the one of the system, installed by apt where it is missing and apt is there.

usage: python -m tools.chromium            says which Chromium is used; exit 1 when there is none
       python -m tools.chromium install    installs Debian's package first where there is none
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium found; python -m tools.chromium install, or apt-get install chromium"


class NoChromium(Exception):
    """There is none; the text says how to get one."""


def executable() -> str:
    """The path of Chromium. Raises `NoChromium`."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise NoChromium(MISSING)


def find() -> str | None:
    """The path of Chromium; None where there is none."""
    try:
        return executable()
    except NoChromium:
        return None


def install() -> None:
    """Install Debian's package, as root. Does nothing where there is a Chromium."""
    try:
        executable()
    except NoChromium:
        if not shutil.which("apt-get") or os.geteuid() != 0:
            return
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (("update", "-q"), ("install", "-y", "-q", "--no-install-recommends", "chromium")):
            subprocess.run(["apt-get", *words], check=True, env=environment, stdout=subprocess.DEVNULL)


def main() -> int:
    """Print the path; 1 when there is none."""
    if sys.argv[1:] == ["install"]:
        install()
    try:
        print(f"chromium: {executable()}")
    except NoChromium as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
