"""`nephila browser install`: one step, or the command to run, and a browser that starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from nephila_browser import installation
from nephila_browser.installation import InstallStep
from nephila_tools import doctor


def program(path: Path, text: str) -> str:
    """A script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No browser but the one at `browser` of the directory."""
    monkeypatch.setattr(
        installation, "find_executable", lambda configured: str(tmp_path / "browser") * (tmp_path / "browser").exists()
    )
    monkeypatch.setattr(installation, "_missing_libraries", list)
    return tmp_path


def test_what_is_missing_is_installed_and_started(nephila, machine, monkeypatch):
    """The command is shown before it runs; a second call installs nothing."""
    install = program(machine / "install", f"printf '#!/bin/sh\\n' > {machine}/browser; chmod +x {machine}/browser")
    monkeypatch.setattr(installation, "_chromium", lambda: [(install,)])
    ran = nephila("browser", "install")
    assert ran.code == 0, ran.err
    assert f"Chromium is missing: {install}" in ran.err
    assert ran.out == f"Pages can be rendered: {machine}/browser\n"
    again = nephila("browser", "install")
    assert (again.code, again.err) == (0, "")


def test_a_command_that_fails_is_named(nephila, machine, monkeypatch):
    """With its exit code; a person can run it."""
    monkeypatch.setattr(installation, "missing_steps", lambda configured: [InstallStep("Chromium", ("/bin/false",))])
    ran = nephila("browser", "install")
    assert ran.code == 1
    assert "Chromium is not installed, exit code 1 of: /bin/false" in ran.err


def test_a_browser_without_its_system_libraries_is_no_success(nephila, machine):
    """The cause is its own line, the remedy the command of Playwright; doctor says the same."""
    program(machine / "browser", "echo error while loading shared libraries: libnss3.so >&2; exit 127")
    ran = nephila("browser", "install")
    assert ran.code == 1
    assert "libnss3.so" in ran.err
    assert f"{sys.executable} -m playwright install-deps chromium" in ran.err
    (check,) = doctor.check_browser()
    assert check.state == "warn"
    assert "libnss3.so" in check.found
    assert "install-deps" in check.remedy


@pytest.mark.parametrize(("user", "state"), [(0, "warn"), (1000, "ok")])
def test_doctor_names_a_browser_without_a_sandbox(machine, monkeypatch, user, state):
    """As root Chromium has none."""
    program(machine / "browser", "exit 0")
    monkeypatch.setattr("os.geteuid", lambda: user)
    (check,) = doctor.check_browser()
    assert check.state == state
    assert ("no sandbox" in check.found, check.remedy) == (
        (True, "run it as another user") if not user else (False, "")
    )


def test_doctor_names_what_is_missing_and_the_command(machine):
    """As a crawl does that needs a browser."""
    (check,) = doctor.check_browser()
    assert check.found.startswith("Chromium not installed")
    assert check.remedy.startswith("run nephila browser install (")
