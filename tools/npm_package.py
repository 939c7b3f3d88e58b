"""A package of npm at a fixed version, in the user's cache: tests load its files into a browser."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from tools.install import Missing

REMEDY = "needs npm: apt-get install npm"


class NpmPackage(NamedTuple):
    """A package, and its files that are needed."""

    name: str
    version: str
    sha512: str
    """SHA-512 of the package in hex, as the registry names it for this version."""
    files: tuple[str, ...]
    """Names in the package."""
    tool: str
    """The module of tools/ that installs it."""

    @property
    def folder(self) -> Path:
        """The folder where `install` puts the files."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return base / "nephila" / f"{self.name}-{self.version}"

    def find(self) -> Path:
        """The folder with the files. Raises `Missing`."""
        if self._is_complete():
            return self.folder
        raise Missing(f"no {self.name}: run `python -m tools.{self.tool} install`")

    def install(self) -> Path:
        """The folder with the files; fetches them where they are missing. Raises `Missing`, `OSError` or
        `CalledProcessError`."""
        if not self._is_complete() and not shutil.which("npm"):
            raise Missing(f"{self.name} {REMEDY}")
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._is_complete():
                self._fetch()
        return self.folder

    def _is_complete(self) -> bool:
        return all((self.folder / name).exists() for name in self.files)

    def _fetch(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            words = ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
            subprocess.run(words, cwd=work, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            (package,) = Path(work).glob("*.tgz")
            digest = hashlib.sha512(package.read_bytes()).hexdigest()
            if digest != self.sha512:
                raise Missing(f"{self.name} {self.version} is not the package that was tested: its SHA-512 is {digest}")
            with tarfile.open(package) as files:
                for name in self.files:
                    file = files.extractfile(f"package/{name}")
                    if file is None:
                        raise Missing(f"{self.name} {self.version} has no {name}")
                    part = self.folder / f"{name}.part"
                    part.write_bytes(file.read())
                    part.replace(self.folder / name)
