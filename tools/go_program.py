"""A program for tests that is a Go module: the one on the PATH, or one built from a fixed version.

It is built into the user's cache, once for a version; a file lock keeps two processes from building it together.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tools.install import Missing


class GoProgram(NamedTuple):
    """One program."""

    name: str
    package: str
    """Package of its main function."""
    version: str
    tool: str
    """The tool of this repository that installs it."""
    known: bool = True
    """A program of this name on the PATH is this one."""

    def cached(self) -> Path:
        """Where `install` puts it."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return base / "nephila" / f"{self.name}-{self.version}" / self.package.rpartition("/")[2]

    def find(self) -> Path:
        """Its path. Raises `Missing`."""
        if self.known and (path := shutil.which(self.name)):
            return Path(path)
        if self.cached().exists():
            return self.cached()
        raise Missing(f"no {self.name}: run `python -m tools.{self.tool} install`")

    def install(self) -> Path:
        """Its path; builds it if there is none. Raises `OSError` or `CalledProcessError` if it cannot."""
        try:
            return self.find()
        except Missing:
            target = self.cached().parent
        target.mkdir(parents=True, exist_ok=True)
        with (target / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.cached().exists():
                environment = {**os.environ, "GOBIN": str(target), "CGO_ENABLED": "0"}
                subprocess.run(["go", "install", f"{self.package}@{self.version}"], env=environment, check=True)
        return self.cached()
