"""Helm for tests and for `make chart`: a helm on the PATH, or one built from its Go module into the user's cache.

python -m tools.helm install [--optional]
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.install import Missing, run

VERSION = "v3.22.0"
MODULE = f"helm.sh/helm/v3/cmd/helm@{VERSION}"


def cached() -> Path:
    """Where `install` puts it."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nephila" / f"helm-{VERSION}" / "helm"


def find() -> Path:
    """The path of helm. Raises `Missing`."""
    if found := shutil.which("helm"):
        return Path(found)
    if cached().exists():
        return cached()
    raise Missing("no helm: run `python -m tools.helm install`")


def install() -> Path:
    """The path of helm; builds it if there is none. Raises `OSError` or `CalledProcessError` if it cannot."""
    try:
        return find()
    except Missing:
        target = cached().parent
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached().exists():
            environment = {**os.environ, "GOBIN": str(target), "CGO_ENABLED": "0"}
            subprocess.run(["go", "install", MODULE], env=environment, check=True)
    return cached()


if __name__ == "__main__":
    sys.exit(run(__doc__, install, "helm", "tests of the chart need it: install helm 3, or Go and run this again"))
