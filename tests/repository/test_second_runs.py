"""`.ci/pytest-twice`: at most three failed tests run again, if none was unstable before; every other failure is red."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNSTABLE = """
import pathlib
def test_unstable():
    flag = pathlib.Path(__file__).with_name("flag")
    if not flag.exists():
        flag.touch()
        raise AssertionError
"""


def twice(folder: Path, source: str, *options: str, known: str = "") -> tuple[int, str]:
    """Exit code and output of CI's run over one test file. `known`: what tests/unstable.txt names."""
    (folder / "test_x.py").write_text("def test_good():\n    pass\n" + source)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    names = folder / "unstable.txt"
    names.write_text(known)
    words = [str(ROOT / ".ci/pytest-twice"), *options, str(folder)]
    env = {**os.environ, "NEPHILA_UNSTABLE": str(names)}
    done = subprocess.run(
        words, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False
    )
    return done.returncode, done.stdout


def test_an_unstable_test_is_listed(tmp_path):
    """It passes alone. The last line names the file to add it to."""
    code, out = twice(tmp_path, UNSTABLE)
    assert (code, out.splitlines()[-2]) == (0, "UNSTABLE test_x.py::test_unstable")


def test_a_test_that_was_unstable_before_is_red(tmp_path):
    """Without a second run."""
    code, out = twice(tmp_path, UNSTABLE, known="# others\ntest_x.py::test_unstable  2026-11-23 a flag is missing\n")
    assert code == 1, out
    assert "UNSTABLE before, no second run: test_x.py::test_unstable" in out
    assert "run again alone" not in out


@pytest.mark.parametrize(
    ("source", "options", "again"),
    [
        ("def test_bad():\n    assert 0\n", (), True),
        (UNSTABLE + "".join(f"def test_{n}():\n    test_unstable()\n    assert 0\n" for n in range(3)), (), False),
        ("raise OSError\n", (), False),
        ("import os\ndef test_crash():\n    os._exit(0)\n", ("-n", "1"), False),
        ("import os\ndef test_crash():\n    os._exit(7)\n", (), False),
    ],
    ids=["fails twice", "four failed", "collection error", "crash of a worker", "crash"],
)
def test_the_rest_is_red(tmp_path, source, options, again):
    """Without a line that calls it unstable; only a single failure runs again."""
    code, out = twice(tmp_path, source, *options)
    assert code != 0
    assert "UNSTABLE" not in out
    assert ("run again alone" in out) is again


def test_listed_tests_exist():
    """A repaired or deleted test leaves the list."""
    for line in (ROOT / "tests" / "unstable.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, name = line.split(" ")[0].partition("::")
            assert f"def {name.split('::')[-1]}(" in (ROOT / path).read_text(), line
