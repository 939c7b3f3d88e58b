"""Makes a wheel of the core alone from the wheel of the distribution, installs it in a fresh environment and crawls.

    python -m tools.core_wheel WHEEL

The wheel of the distribution holds all packages; this one shows that the core needs none of them, and no library of an
extra. Libraries come from the package index.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

from tools.first_page import site


def core_wheel(wheel: Path, folder: Path) -> Path:
    """A copy of the wheel without the packages beside the core."""
    core = folder / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(core, "w", zipfile.ZIP_DEFLATED) as part:
        for member in whole.infolist():
            if member.filename.startswith("nephila_"):
                continue
            content = whole.read(member)
            if member.filename.endswith("/RECORD"):
                content = b"".join(line for line in content.splitlines(True) if not line.startswith(b"nephila_"))
            part.writestr(member, content)
    return core


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, site() as url:
        place = Path(folder)
        core = core_wheel(options.wheel, place)
        venv.create(place / "venv", with_pip=True)
        python = str(place / "venv" / "bin" / "python")
        began = time.monotonic()
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(core)], check=True)
        print(f"installed in {time.monotonic() - began:.1f} s: {core.stat().st_size / 1e6:.1f} MB")
        subprocess.run([python, "-m", "pip", "list", "--disable-pip-version-check", "--not-required"], check=True)
        out = str(place / "out")
        crawl = [python, "-m", "nephila", "crawl", url, "--allow-private", "--delay", "0", "--out", out]
        subprocess.run([*crawl, "--max-pages", "2"], check=True)
        subprocess.run([*crawl, "--resume", "--max-pages", "0"], check=True)
        export = [python, "-m", "nephila", "export", "--out", out, "--format", "jsonl"]
        rows = subprocess.run(export, check=True, capture_output=True, text=True).stdout
        print(f"exported {len(rows.splitlines())} pages")
        if not rows:
            sys.exit("no page was exported")


if __name__ == "__main__":
    main()
