"""axe-core, which looks for what keeps people from using a page, from npm into the user's cache.

python -m tools.axe install [--optional]
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.install import Missing, run

VERSION = "4.14.1"
SHA512 = (
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5"
)
"""Of the package, as the registry names it for this version."""
REMEDY = "needs npm: apt-get install npm"


def cached() -> Path:
    """Where `install` puts it."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nephila" / f"axe-core-{VERSION}" / "axe.min.js"


def find() -> Path:
    """The path of its script. Raises `Missing`."""
    if cached().exists():
        return cached()
    raise Missing("no axe-core: run `python -m tools.axe install`")


def install() -> Path:
    """The path of its script; fetches it where it is missing. Raises `Missing`, `OSError` or `CalledProcessError`."""
    if not shutil.which("npm") and not cached().exists():
        raise Missing(f"axe-core {REMEDY}")
    target = cached().parent
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached().exists():
            _fetch()
    return cached()


def _fetch() -> None:
    with tempfile.TemporaryDirectory() as work:
        words = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
        subprocess.run(words, cwd=work, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        (package,) = Path(work).glob("*.tgz")
        found = hashlib.sha512(package.read_bytes()).hexdigest()
        if found != SHA512:
            raise Missing(f"axe-core {VERSION} is not the package that was tested: its SHA-512 is {found}")
        with tarfile.open(package) as files:
            script = files.extractfile("package/axe.min.js")
            if script is None:
                raise Missing(f"axe-core {VERSION} has no axe.min.js")
            part = cached().with_suffix(".part")
            part.write_bytes(script.read())
            part.replace(cached())


if __name__ == "__main__":
    sys.exit(run(__doc__, install, "axe-core", REMEDY))
