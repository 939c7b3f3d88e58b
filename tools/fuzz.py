"""Fuzzes the native core with libFuzzer: heads, chunks and decoders of responses, and the page pass.

usage: python -m tools.fuzz [response] [page] [--seconds 1800] [--jobs 1] [--keep]

Builds the targets of services/nephila/native/core/fuzz with the address sanitizer, and runs each for that long from its
stored corpus. A failing input is written to fuzz/target/ and printed with the command that repeats it; the exit code is
1 then. `--keep` stores the corpus again, reduced to the inputs that add coverage. Needs a nightly Rust and cargo-fuzz:
`rustup toolchain install nightly`, `cargo install cargo-fuzz --locked`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "services/nephila/native/core/fuzz"
WORK = FUZZ / "target"
TARGETS = {"response": ["-max_len=4096"], "page": ["-max_len=2048", f"-dict={FUZZ / 'page.dict'}"]}
"""Options of libFuzzer for each target. Short inputs are quick, and pages need no long ones."""
LONGEST_KEPT = 1024
"""Bytes of an input of the stored corpus at most, so that the corpus stays small."""


def build() -> Path:
    """Build the targets; returns the folder of the programs."""
    if shutil.which("cargo-fuzz") is None:
        raise SystemExit("cargo-fuzz is missing: cargo install cargo-fuzz --locked")
    environment = os.environ | {"PYO3_PYTHON": sys.executable}
    command = ["cargo", "+nightly", "fuzz", "build", "--fuzz-dir", str(FUZZ), "--target-dir", str(WORK)]
    subprocess.run(command, cwd=FUZZ.parent, env=environment, check=True)
    return next(WORK.glob("*/release/page")).parent


def run(program: Path, words: list[str]) -> int:
    """One run of a target; the page pass is linked to the library of Python. Returns the exit code."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR"))}
    return subprocess.run([str(program), *words], env=environment, cwd=WORK).returncode


def unpack(name: str) -> Path:
    """The stored corpus of a target as a folder, beside what earlier runs have found."""
    folder = WORK / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(FUZZ / "corpus" / f"{name}.tar.gz") as tar:
        for member in tar:
            if member.isfile():
                data = tar.extractfile(member)
                assert data is not None
                (folder / Path(member.name).name).write_bytes(data.read())
    return folder


def keep(name: str, program: Path, folder: Path) -> None:
    """Store the corpus again: the inputs that add coverage, without long ones."""
    least = WORK / "least" / name
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir(parents=True)
    if run(program, ["-merge=1", str(least), str(folder)]):
        raise SystemExit(f"the corpus of {name} cannot be reduced")
    with tarfile.open(FUZZ / "corpus" / f"{name}.tar.gz", "w:gz") as tar:
        for path in sorted(least.iterdir()):
            if path.stat().st_size <= LONGEST_KEPT:
                info = tarfile.TarInfo(f"corpus/{path.name}")
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    tar.addfile(info, file)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(prog="tools.fuzz", description="Fuzz the native core with libFuzzer.")
    options.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all by default")
    options.add_argument("--seconds", type=int, default=1800, help="of each target")
    options.add_argument("--jobs", type=int, default=1, help="processes of a target")
    options.add_argument("--keep", action="store_true", help="store the reduced corpus")
    args = options.parse_args(argv)
    WORK.mkdir(parents=True, exist_ok=True)
    programs = build()
    failed = []
    for name in args.targets or TARGETS:
        folder = unpack(name)
        words = [*TARGETS[name], f"-max_total_time={args.seconds}", f"-artifact_prefix={WORK}/{name}-"]
        words += [f"-fork={args.jobs}"] if args.jobs > 1 else []
        if run(programs / name, [*words, "-print_final_stats=1", str(folder)]):
            failed.append(name)
        elif args.keep:
            keep(name, programs / name, folder)
    for name in failed:
        print(f"{name} failed; repeat it with {programs / name} {WORK}/{name}-KIND-HASH")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
