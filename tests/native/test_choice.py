"""Which implementation runs: decided once at import, by what is built and by NEPHILA_NATIVE."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "from nephila import native as n; print(n.IMPLEMENTATION, n.page_pass(b'<title>t', 'http://a/', '').title)"


def run(wanted: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with NEPHILA_NATIVE set."""
    env = {**os.environ, "NEPHILA_NATIVE": wanted}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)


def test_the_fallback_can_be_forced() -> None:
    """NEPHILA_NATIVE=python takes the fallback."""
    assert run("python").stdout == "python t\n"


def test_rust_can_be_demanded() -> None:
    """NEPHILA_NATIVE=rust takes the core."""
    pytest.importorskip("nephila.native._core", reason="the Rust core is not built here: no cargo at install")
    assert run("rust").stdout == "rust t\n"


HIDE = "import sys; sys.modules['nephila.native._core'] = None; "


def test_without_the_core_the_fallback_runs() -> None:
    """A core that is not built is no error unless it was demanded."""
    assert run("", HIDE + PROGRAM).stdout == "python t\n"
    assert "NEPHILA_NATIVE=rust, but the native core is not built" in run("rust", HIDE + PROGRAM).stderr


def test_a_wrong_word_is_said() -> None:
    """Anything else in NEPHILA_NATIVE is an error that names the choices."""
    assert "must be 'python' or 'rust', not 'c'" in run("c").stderr
