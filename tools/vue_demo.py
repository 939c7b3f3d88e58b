"""The demo application of Vue with Vue Router, built from npm into the user's cache: a public single-page application.

python -m tools.vue_demo install [--optional]

The scaffold of `npm create vue` with the option for the router. Its versions are those that the pinned scaffold needs
for; they run on Node 18, the one of Debian 12.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.install import Missing, run

SCAFFOLD = "vue@3.10.4"
REMEDY = "needs npm: apt-get install npm"


def folder() -> Path:
    """Where `install` puts the built application."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nephila" / f"npm-create-{SCAFFOLD}" / "dist"


def find() -> Path:
    """The folder of the built application. Raises `Missing`."""
    if (folder() / "index.html").exists():
        return folder()
    raise Missing("no Vue demo: run `python -m tools.vue_demo install`")


def install() -> Path:
    """The folder of the built application; builds it, and installs Debian's npm as root, where they are missing. Raises
    `Missing`, `OSError` or `CalledProcessError`."""
    target = folder().parent
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder() / "index.html").exists():
            _install_npm()
            with tempfile.TemporaryDirectory() as work:
                _run(work, "npm", "create", "--yes", SCAFFOLD, "demo", "--", "--router")
                demo = str(Path(work, "demo"))
                _run(demo, "npm", "install", "--no-audit", "--no-fund")
                _run(demo, "npm", "run", "build")
                shutil.copytree(Path(demo, "dist"), folder(), dirs_exist_ok=True)
    return folder()


def _install_npm() -> None:
    if shutil.which("npm"):
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise Missing(f"the Vue demo {REMEDY}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update", "-q"), ("install", "-y", "-q", "--no-install-recommends", "npm")):
        subprocess.run(["apt-get", *words], check=True, env=environment, stdout=subprocess.DEVNULL)


def _run(cwd: str, *words: str) -> None:
    subprocess.run(words, cwd=cwd, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(run(__doc__, install, "vue demo", REMEDY))
