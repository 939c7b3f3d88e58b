"""From a bare container to the first Markdown page, timed: `python -m tools.first_page WHEEL` (needs a Docker engine).

The container has Python and nothing else: no compiler, no Rust, no make. It installs the wheel with pip, crawls one
page into a mounted folder, and the time of each step is printed. `--image` names another Python, `--url` another page.
With `--here` the steps run in a fresh virtual environment of this machine instead, where there is no engine. A page of
this machine needs `--own`: the container then shares its network, and the egress guard allows it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMAGE = "python:3.12-slim"
URL = "https://example.org/"
OWN = "--allow-private"
STEPS = """
set -e
began=$(date +%s%N)
step() { now=$(date +%s%N); echo "step $1 $(( (now - began) / 1000000 )) ms"; }
"$PYTHON" -m pip install -q --disable-pip-version-check --root-user-action ignore "$WHEEL"
step installed
"$NEPHILA" --version
"$NEPHILA" crawl "$URL" --max-pages 1 --format sqlite,markdown --quiet --out "$OUT" $MORE
step crawled
page=$(find "$OUT" -name '*.md' | head -1)
test -s "$page"
head -3 "$page"
step read
"""


def in_container(image: str, wheel: Path, out: Path, url: str, *, own: bool) -> list[str]:
    """The command of a container that is removed at its end."""
    settings = {
        "PYTHON": "python",
        "NEPHILA": "nephila",
        "WHEEL": f"/wheel/{wheel.name}",
        "OUT": "/out/site",
        "URL": url,
        "MORE": OWN if own else "",
    }
    given = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]
    mounts = ["-v", f"{wheel.parent.resolve()}:/wheel:ro", "-v", f"{out}:/out"]
    network = ["--network", "host"] if own else []
    return ["docker", "run", "--rm", *network, *mounts, *given, image, "sh", "-c", STEPS]


def main() -> int:
    """The exit code of the steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path, help="dist/nephila-*.whl, of make wheels")
    parser.add_argument("--image", default=IMAGE)
    parser.add_argument("--url", default=URL)
    parser.add_argument("--here", action="store_true", help="in a virtual environment, without a container")
    parser.add_argument("--own", action="store_true", help="the page is of this machine")
    given = parser.parse_args()
    out = Path(tempfile.mkdtemp(prefix="first-page-"))
    began = time.monotonic()
    try:
        if given.here:
            subprocess.run([sys.executable, "-m", "venv", out / "venv"], check=True)
            bin_ = out / "venv" / "bin"
            settings = {"PYTHON": bin_ / "python", "NEPHILA": bin_ / "nephila", "WHEEL": given.wheel.resolve()}
            steps = {name: str(value) for name, value in settings.items()} | {
                "OUT": str(out / "site"),
                "URL": given.url,
                "MORE": OWN if given.own else "",
            }
            code = subprocess.run(["sh", "-c", STEPS], env={**os.environ, **steps}, check=False).returncode
        else:
            if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
                print("no Docker engine answers here; --here measures a virtual environment", file=sys.stderr)
                return 2
            code = subprocess.run(
                in_container(given.image, given.wheel, out, given.url, own=given.own), check=False
            ).returncode
        print(f"all {time.monotonic() - began:.1f} s, exit {code}")
        return code
    finally:
        shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
