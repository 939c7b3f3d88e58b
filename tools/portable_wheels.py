"""Linux wheels for other machines than this one: `python -m tools.portable_wheels aarch64 [x86_64]`.

The native core is linked by zig, which has the C library of every architecture, so neither a container nor a foreign
compiler is needed: `rustup target add aarch64-unknown-linux-gnu`, and ziglang and cargo-zigbuild from PyPI, which are
installed in a virtual environment in the cache. A wheel is for glibc 2.28 and later (Debian 10, RHEL 8) and for CPython
3.11 and later. `--run` installs its libraries beside it and runs `nephila doctor` and a crawl by qemu-user in ROOT, a
directory with Python 3.11 and libstdc++ of that architecture.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from tools.first_page import OWN, site
from tools.kafka_broker import cache

ROOT: Final = Path(__file__).resolve().parents[1]
WHEELS: Final = ROOT / "dist" / "portable"
"""Not beside the wheel of this machine, which the images take."""
GLIBC: Final = (2, 28)
TOOLS: Final = ("ziglang", "cargo-zigbuild", "auditwheel", "uv")
ARCHITECTURES: Final = ("aarch64", "x86_64")
CARGO: Final = """#!/bin/sh
# setuptools-rust asks cargo for the target without a version of glibc.
if [ "$1" != rustc ]; then exec cargo "$@"; fi
left=$#
while [ $left -gt 0 ]; do
    word=$1; shift; left=$((left - 1))
    case $word in *-unknown-linux-gnu) word=$word.GLIBC ;; esac
    set -- "$@" "$word"
done
exec cargo-zigbuild "$@"
"""


def toolchain() -> Path:
    """The directory of the programs, installed on first use."""
    place = cache().parent / "portable-wheels"
    programs = place / "venv" / "bin"
    if not (programs / "auditwheel").exists():
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
        pip = [programs / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *TOOLS], check=True)
    wrapper = programs / "cargo-for-glibc"
    wrapper.write_text(CARGO.replace("GLIBC", ".".join(map(str, GLIBC))))
    wrapper.chmod(0o755)
    return programs


def build(architecture: str, programs: Path) -> Path:
    """The wheel. Raises `CalledProcessError`, or `SystemExit` in one line for a wheel without its core."""
    platform = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{architecture}"
    # What another architecture left there would be taken.
    for left in ("lib", f"lib.{platform}"):
        shutil.rmtree(ROOT / "build" / left, ignore_errors=True)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CARGO": str(programs / "cargo-for-glibc"),
        "CARGO_BUILD_TARGET": f"{architecture}-unknown-linux-gnu",
    }
    options = [f"--config-settings=--build-option=--{one}" for one in ("py-limited-api=cp311", f"plat-name={platform}")]
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", *options]
    subprocess.run([*command, "--wheel-dir", str(WHEELS), "."], cwd=ROOT, env=environment, check=True)
    wheel = next(WHEELS.glob(f"nephila-*-cp311-abi3-{platform}.whl"))
    if "nephila/native/_core.abi3.so" not in zipfile.ZipFile(wheel).namelist():
        wheel.unlink()
        sys.exit(f"the native core was not built: rustup target add {architecture}-unknown-linux-gnu")
    audited = subprocess.run(
        [programs / "auditwheel", "show", wheel], capture_output=True, text=True, check=True
    ).stdout
    if f'"{platform}"' not in " ".join(audited.split()):
        sys.exit(f"the wheel needs more than its name says: {audited}")
    return wheel


def run(architecture: str, wheel: Path, root: Path, programs: Path) -> int:
    """Exit code of `nephila doctor` and of a crawl to Markdown, by qemu-user."""
    libraries = cache().parent / "portable-wheels" / architecture
    shutil.rmtree(libraries, ignore_errors=True)
    glibc = f"{architecture}-manylinux_{GLIBC[0]}_{GLIBC[1]}"
    install = [programs / "uv", "pip", "install", "-q", "--python", sys.executable, "--python-version", "3.11"]
    install += ["--python-platform", glibc, "--only-binary", ":all:", "--target", libraries, wheel]
    subprocess.run(install, check=True)
    python = [f"qemu-{architecture}-static", "-L", str(root), str(root / "usr/bin/python3.11"), "-m", "nephila"]
    environment = {**os.environ, "PYTHONPATH": str(libraries)}
    out = libraries / "site"
    with site() as url:
        crawl = ["crawl", url, OWN, "--delay", "0", "--quiet", "--workers", "0", "--format", "sqlite,markdown"]
        for words in (["doctor"], [*crawl, "--out", str(out)]):
            code = subprocess.run([*python, *words], env=environment, check=False).returncode
            if code:
                return code
    pages = sorted(out.rglob("*.md"))
    print(f"{len(pages)} pages by {architecture}:\n{pages[0].read_text()}" if pages else "no page")
    return 0 if len(pages) == 3 else 1


def main() -> int:
    """The first exit code that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architecture", nargs="+", choices=ARCHITECTURES)
    parser.add_argument("--run", type=Path, metavar="ROOT", help="root of that architecture for qemu-user")
    given = parser.parse_args()
    programs = toolchain()
    for architecture in given.architecture:
        wheel = build(architecture, programs)
        size = f"{wheel.stat().st_size / 1e6:.1f} MB"
        print(f"{wheel.relative_to(ROOT)}: {size}, glibc {'.'.join(map(str, GLIBC))} or newer", flush=True)
        if given.run is not None and (code := run(architecture, wheel, given.run, programs)):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
