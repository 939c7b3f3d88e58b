"""Writes docker/lock/*.txt: the libraries of the images with versions and hashes, resolved by uv.

    python -m tools.lock [--upgrade]

Without --upgrade versions stay as they are locked; only what pyproject.toml asks for now is added or removed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "docker" / "lock"
EXTRAS = {
    "service": ("cluster", "s3", "tracing"),
    "cli": ("all", "s3"),
    "operator": ("operator",),
    "browser": ("cluster", "s3", "browser", "tracing"),
}
"""Lock file → extras of the distribution. pyarrow (130 MB) is only in the image of the command line."""

MARKERS = {"quickjs": "platform_machine == 'x86_64'"}
"""Library → where it has a wheel; the images have no compiler."""


def marked(text: str) -> str:
    """A lock file whose libraries without a wheel for every architecture have their condition."""
    for name, marker in MARKERS.items():
        text = re.sub(rf"^({name}==[\w.]+)( ;.*)? \\$", rf"\1 ; {marker} \\", text, flags=re.MULTILINE)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    options = parser.parse_args()
    LOCK.mkdir(parents=True, exist_ok=True)
    for name, extras in EXTRAS.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--quiet", "--generate-hashes"]
        command += ["--python-version", "3.11", "--python-platform", "linux", "--no-emit-index-url", "--no-header"]
        command += ["--no-annotate", "--only-binary", ":all:", "--output-file", str(LOCK / f"{name}.txt")]
        command += [word for extra in extras for word in ("--extra", extra)]
        if name == "browser":  # it is installed over the libraries of the service
            command += ["--constraint", str(LOCK / "service.txt")]
        subprocess.run(command + (["--upgrade"] if options.upgrade else []), cwd=ROOT, check=True)
        path = LOCK / f"{name}.txt"
        path.write_text(marked(path.read_text()))


if __name__ == "__main__":
    main()
