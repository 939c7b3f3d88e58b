"""The archive of sources has what builds the native core; without it an installation would be the slow fallback."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def included(path: str) -> bool:
    """Whether MANIFEST.in adds the file: the last line that concerns it decides."""
    found = False
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        kind, *words = line.split() or ["#"]
        of_folder = kind.startswith("recursive-") and path.startswith(f"{words[0]}/")
        if of_folder and any(fnmatch.fnmatch(path.rpartition("/")[2], pattern) for pattern in words[1:]):
            found = kind == "recursive-include"
    return found


def test_each_source_of_the_core_is_in_the_archive():
    """Tests and fuzz targets of the core are not needed for a build."""
    words = ["git", "ls-files", "services/nephila/native/core"]
    files = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    needed = [one for one in files if "/fuzz/" not in one and "/fetch/tests/" not in one]
    assert len(needed) > 50
    assert [one for one in needed if not included(one)] == []


@pytest.mark.full
def test_the_archive_is_made_without_git_and_has_what_a_build_needs(tmp_path):
    """From a copy of the files of git, without its directory."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    copy = tmp_path / "copy"
    for name in names:
        if name and not name.startswith(("tests/", "benchmarks/")) and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    build = [sys.executable, "-m", "uv", "build", "--sdist", "--quiet", "--python", sys.executable, "--out-dir", "out"]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path), "PATH": "/nonexistent"}
    built = subprocess.run(build, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    archive = next((copy / "out").glob("nephila-*.tar.gz"))
    with tarfile.open(archive) as found:
        inside = {one.name.partition("/")[2] for one in found.getmembers()}
    needed = {"Cargo.lock", "Cargo.toml", "build.rs", "src/lib.rs", "src/entities.txt", "fetch/Cargo.toml"}
    assert {f"services/nephila/native/core/{name}" for name in needed} <= inside
    assert {
        "docs/nephila.1",
        "services/nephila/native/maintext.txt",
        "services/nephila_tools/report/style.css",
    } <= inside
    assert [name for name in inside if "/fuzz/" in name] == []


def test_an_installation_without_rust_says_what_it_loses_and_how_to_get_it(tmp_path):
    """`make install` with a Python that does nothing, before the long part."""
    path = "/usr/bin:/bin"
    if shutil.which("cargo", path=path):
        pytest.skip("Rust is where every program is")
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi\n')
    fake.chmod(0o755)
    words = ["make", "install", f"PYTHON={fake}", f"VENV={tmp_path / 'venv'}"]
    told = subprocess.run(words, cwd=ROOT, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "no Rust here" in told.stdout
    assert "https://rustup.rs" in told.stdout
