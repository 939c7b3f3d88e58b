"""Trains the native core: a profile of a crawl with which the compiler arranges its code (profile-guided optimisation).

usage: python -m tools.profile_core OUT.profdata [--pages DIR] [--crawled 600] [--optional]

Builds the core with counters, crawls the HTML files below DIR from a server on loopback, and merges the counts. DIR is
by default the documentation that comes with Rust: pages that no bench uses; where it is not installed, pages of
benchmarks/web/prose.py are written. A profile belongs to one compiler and one state of the sources; `make wheels PGO=1`
makes one for each wheel. Needs `rustup component add llvm-tools`. `--optional`: without it, say so and write no file.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.web.prose import Prose

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "services/nephila/native/core"
NAME = "_core.abi3.so"
SEED = 78


def sysroot() -> Path:
    """The folder of the Rust toolchain."""
    return Path(subprocess.check_output(["rustc", "--print", "sysroot"], cwd=CORE, text=True).strip())


def build(counts: Path, target: Path) -> Path:
    """The core with counters, which it writes to `counts` when its process ends."""
    environment = os.environ | {"RUSTFLAGS": f"-Cprofile-generate={counts}"}
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(target)]
    subprocess.run(command, cwd=CORE, env=environment, check=True)
    return target / "release" / "lib_core.so"


def crawl(core: Path, pages: Path, crawled: int, folder: Path) -> None:
    """Crawl `pages` with that core."""
    services = folder / "services"
    shutil.copytree(ROOT / "services", services, ignore=shutil.ignore_patterns("core", "_core*", "__pycache__"))
    shutil.copy(core, services / "nephila/native" / NAME)
    words = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(pages)]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        start = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
        if start is None:
            raise SystemExit("the server of the pages did not start")
        seeds = [start[0] + str(path.relative_to(pages)) for path in sorted(pages.glob("**/index.html"))[:50]]
        command = [
            sys.executable,
            "-m",
            "nephila",
            "crawl",
            *seeds,
            "--allow-private",
            "--delay",
            "0",
            "--ignore-robots",
        ]
        command += ["--workers", "0", "--max-pages", str(crawled), "--quiet", "--out", str(folder / "out")]
        environment = os.environ | {"PYTHONPATH": str(services)}
        for service in ("SCHEDULER", "DOWNLOADER__LIMITS"):
            environment |= {f"NEPHILA_{service}__PER_ADDRESS": "0", f"NEPHILA_{service}__ADDRESS_GAP_S": "0"}
        subprocess.run(command, env=environment, cwd=folder, check=True)
    finally:
        server.kill()
        server.wait()


def merger() -> Path | None:
    """The program that merges counts, of the same LLVM as the compiler; None where it is not installed."""
    return next(iter(sorted((sysroot() / "lib/rustlib").glob("*/bin/llvm-profdata"))), None)


def merge(program: Path, counts: Path, profile: Path) -> None:
    """One profile of all counts."""
    profile.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(program), "merge", "-o", str(profile), str(counts)], check=True)


def write_pages(folder: Path, count: int) -> Path:
    """Pages of 2 to 130 KB that link to each other, of another seed than those of the benches; returns their folder."""
    prose, rng = Prose(SEED), random.Random(SEED)
    for number in range(count):
        hrefs = [f"../{rng.randrange(count)}/index.html" for _ in range(rng.randrange(5, 120))]
        (folder / str(number)).mkdir(parents=True)
        page = prose.page(prose.title(), hrefs, rng.randrange(2_000, 130_000))
        (folder / str(number) / "index.html").write_bytes(page)
    return folder


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(prog="tools.profile_core", description="Train the native core on a crawl.")
    options.add_argument("profile", type=Path)
    options.add_argument("--pages", type=Path, help="HTML files; by default the documentation of Rust")
    options.add_argument("--crawled", type=int, default=600)
    options.add_argument("--optional", action="store_true", help="no error where llvm-profdata is missing")
    args = options.parse_args(argv)
    if (program := merger()) is None:
        what = "llvm-profdata is missing: rustup component add llvm-tools"
        if not args.optional:
            raise SystemExit(what)
        print(f"WARNING: no profile for the native core, which is some 10 % slower then; {what}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pages = (args.pages or sysroot() / "share/doc/rust/html").resolve()
        if not any(pages.glob("**/index.html")):
            if args.pages:
                raise SystemExit(f"{pages} has no index.html")
            pages = write_pages(folder / "pages", args.crawled)
        core = build(folder / "counts", ROOT / "build/profile")
        crawl(core, pages, args.crawled, folder)
        merge(program, folder / "counts", args.profile.resolve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
