"""`.ci/pytest-twice`: an unstable test is listed and green; everything else that fails is red."""

from __future__ import annotations

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


def run(folder: Path, source: str, *options: str) -> tuple[int, str]:
    """Exit code and output of CI's run over one test file."""
    (folder / "test_x.py").write_text("def test_good():\n    pass\n" + source)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    words = [str(ROOT / ".ci/pytest-twice"), *options, str(folder)]
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False)
    return done.returncode, done.stdout


def test_an_unstable_test_is_listed(tmp_path):
    """It passes alone."""
    code, out = run(tmp_path, UNSTABLE)
    assert (code, out.splitlines()[-2]) == (0, "UNSTABLE test_x.py::test_unstable")


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("def test_bad():\n    assert 0\n", ()),
        (UNSTABLE + "".join(f"def test_{n}():\n    test_unstable()\n    assert 0\n" for n in range(3)), ()),
        ("raise OSError\n", ()),
        ("import os\ndef test_crash():\n    os._exit(0)\n", ("-n", "1")),
        ("import os\ndef test_crash():\n    os._exit(7)\n", ()),
    ],
    ids=["fails twice", "four failed", "collection error", "crash of a worker", "crash"],
)
def test_the_rest_is_red(tmp_path, source, options):
    """Without a line that calls it unstable."""
    code, out = run(tmp_path, source, *options)
    assert code != 0
    assert "UNSTABLE" not in out
