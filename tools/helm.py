"""Helm for tests and for `make chart`: a helm on the PATH, or one built from its Go module into the user's cache.

python tools/helm.py install [--optional]
python tools/helm.py path
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "v3.22.0"
MODULE = f"helm.sh/helm/v3/cmd/helm@{VERSION}"


def cached() -> Path:
    """Where `install` puts it."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nephila" / f"helm-{VERSION}" / "helm"


def find() -> Path | None:
    """A helm that can be run, if there is one."""
    found = shutil.which("helm")
    return Path(found) if found else cached() if cached().exists() else None


def install() -> Path:
    """The path of helm; builds it if there is none. Raises `OSError` or `CalledProcessError` if it cannot."""
    if (found := find()) is not None:
        return found
    target = cached().parent
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached().exists():
            environment = {**os.environ, "GOBIN": str(target), "CGO_ENABLED": "0"}
            subprocess.run(["go", "install", MODULE], env=environment, check=True)
    return cached()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install").add_argument(
        "--optional", action="store_true", help="exit 0 where it cannot be built"
    )
    commands.add_parser("path")
    options = parser.parse_args()
    if options.command == "path":
        print(find() or sys.exit("no helm: run `python tools/helm.py install`"))
        return
    try:
        print(f"helm: {install()}")
    except (OSError, subprocess.CalledProcessError) as error:
        line = f"helm was not built ({error}); tests of the chart need it: install helm 3, or Go and run this again"
        print(line, file=sys.stderr)
        sys.exit(0 if options.optional else 1)


if __name__ == "__main__":
    main()
