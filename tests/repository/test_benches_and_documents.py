"""Documents and benches name each other: no command that is gone, no raw result that nobody reads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("*.md", "*.py", "*.yml", "*.yaml", "*.toml", "Makefile")
MAKEFILE = (ROOT / "Makefile").read_text()


def tracked(*patterns: str) -> list[str]:
    """Files that git has, from the root."""
    words = ["git", "ls-files", *patterns]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Name → text of all documents and programs, but of these tests."""
    kept = [name for name in tracked(*KINDS) if not name.startswith("tests/repository/") and (ROOT / name).is_file()]
    return {name: (ROOT / name).read_text() for name in kept}


def test_make_targets_that_documents_name_exist(texts):
    """`make bench-...` and the others, in back quotes or code."""
    gone = {
        (name, target)
        for name, text in texts.items()
        if name.endswith(".md")
        for target in re.findall(r"(?:`|^)make ([a-z][a-z-]*)(?=[`\s])", text, re.MULTILINE)
        if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)
    }
    assert gone == set()


def test_benches_that_documents_and_targets_name_exist(texts):
    """By module or file; a decision may name one that it says was removed."""
    gone = {
        (name, bench)
        for name, text in texts.items()
        for bench in re.findall(r"benchmarks[./](bench_\w+)", text)
        if not (ROOT / "benchmarks" / f"{bench}.py").exists()
    }
    assert gone == set()


def test_each_raw_result_is_named(texts):
    """The others are deleted; git keeps them."""
    everything = "\n".join(texts.values())
    results = [Path(name).name for name in tracked("benchmarks/results")]
    assert [name for name in results if name not in everything] == []


def test_results_that_documents_name_exist(texts):
    """With their full name."""
    named = set(re.findall(r"\d{8}T\d{6}Z-[a-z-]+\.(?:json|txt)", "\n".join(texts.values())))
    assert named - {path.name for path in (ROOT / "benchmarks" / "results").iterdir()} == set()


def test_each_bench_stands_in_the_list_of_files(texts):
    """Files of benchmarks/ itself."""
    listed = texts["benchmarks/README.md"].split("## Files")[1]
    files = {path.name for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__.py"}
    assert {name for name in files if f"`{name}`" not in listed} == set()
    assert set(re.findall(r"`(\w+\.py)`", listed)) - files == set()
