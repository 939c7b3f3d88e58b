"""Which failed tests CI runs again: those that were never unstable before, and at most three."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNSTABLE = """
from pathlib import Path

def test_once():
    mark = Path(__file__).with_name("mark")
    again = mark.exists()
    mark.touch()
    assert again
"""


def twice(folder: Path, known: str = "") -> subprocess.CompletedProcess[str]:
    """Run `.ci/pytest-twice` over a folder."""
    if not (ROOT / ".venv" / "bin" / "python").exists():
        pytest.skip("no .venv")
    names = folder / "unstable.txt"
    names.write_text(known)
    words = [str(ROOT / ".ci" / "pytest-twice"), str(folder), "--rootdir", str(folder), "-n", "0"]
    env = {**os.environ, "NEPHILA_UNSTABLE": str(names)}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_a_test_that_passes_then_is_listed(tmp_path):
    """With the file to add it to."""
    (tmp_path / "test_it.py").write_text(UNSTABLE)
    run = twice(tmp_path)
    assert run.returncode == 0, run.stdout
    assert "UNSTABLE test_it.py::test_once" in run.stdout


def test_a_test_that_was_unstable_before_is_red(tmp_path):
    """Without a second run."""
    (tmp_path / "test_it.py").write_text(UNSTABLE)
    run = twice(tmp_path, "# others\ntest_it.py::test_once  2026-11-23 a mark that is missing\n")
    assert run.returncode == 1, run.stdout
    assert "UNSTABLE before, no second run: test_it.py::test_once" in run.stdout
    assert "run again alone" not in run.stdout


@pytest.mark.parametrize("count", [1, 4])
def test_a_test_that_fails_twice_is_red(tmp_path, count):
    """And so are four that fail once: something is broken, nothing unstable."""
    bodies = "".join(f"def test_{n}():\n    assert False\n\n" for n in range(count))
    (tmp_path / "test_it.py").write_text(bodies)
    run = twice(tmp_path)
    assert run.returncode == 1
    assert ("run again alone" in run.stdout) is (count == 1)


def test_listed_tests_exist():
    """A repaired or deleted test leaves the list."""
    for line in (ROOT / "tests" / "unstable.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, name = line.split(" ")[0].partition("::")
            assert f"def {name.split('::')[-1]}(" in (ROOT / path).read_text(), line
