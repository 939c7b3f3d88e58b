"""The line that installs an extra works as it is: in a clone and out of one, for the Python that runs."""

from __future__ import annotations

import shlex
import sys

import pytest
from nephila.kernel.runtime.extras import install_line


@pytest.fixture
def clone(tmp_path):
    root = tmp_path / "my clone"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    return root


def test_a_clone_is_installed_from_its_directory(clone, monkeypatch):
    assert shlex.split(install_line("mcp", clone))[-4:] == ["pip", "install", "-e", f"{clone}[mcp]"]
    monkeypatch.chdir(clone)
    assert install_line("mcp", clone).endswith("pip install -e '.[mcp]'")


def test_an_installed_program_names_the_distribution(tmp_path):
    assert install_line("mcp", tmp_path).endswith("pip install 'nephila[mcp]'")


def test_pip_is_that_of_the_python_that_runs(tmp_path, monkeypatch):
    program = tmp_path / "pip"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install_line("mcp", tmp_path) == f"{shlex.quote(sys.executable)} -m pip install 'nephila[mcp]'"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert install_line("mcp", tmp_path) == "pip install 'nephila[mcp]'"
