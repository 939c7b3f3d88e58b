"""What is missing for rendered pages, and the command for this system."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from nephila_browser import installation
from nephila_browser.installation import find_executable, missing, missing_steps


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a browser; libraries are there."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    (tmp_path / "bin").mkdir()
    return tmp_path


def program(path: Path) -> str:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_newest_browser_of_playwright_is_found_after_those_of_the_path(bare: Path) -> None:
    """Most users have it by `playwright install chromium`."""
    cache = bare / ".cache" / "ms-playwright"
    program(cache / "chromium-999" / "chrome-linux" / "chrome")
    newest = program(cache / "chromium-1217" / "chrome-linux64" / "chrome")
    program(cache / "chromium_headless_shell-1300" / "chrome-linux" / "headless_shell")
    (cache / "chromium-1301" / "chrome-linux").mkdir(parents=True)
    assert find_executable("") == newest
    assert missing("") == ""
    own = program(bare / "bin" / "chromium")
    assert find_executable("") == own
    assert find_executable("none") == ""


def test_another_directory_of_playwright_counts(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(bare / "shared"))
    path = program(bare / "shared" / "chromium-7" / "chrome-linux" / "chrome")
    assert find_executable("") == path


@pytest.mark.parametrize(
    ("debian", "user", "command"),
    [
        (True, 0, "apt-get update && apt-get install -y --no-install-recommends chromium"),
        (True, 1000, f"{sys.executable} -m playwright install chromium"),
        (False, 0, f"{sys.executable} -m playwright install chromium"),
    ],
)
def test_one_line_says_what_is_missing_and_the_command_of_this_system(
    bare: Path, monkeypatch: pytest.MonkeyPatch, debian: bool, user: int, command: str
) -> None:
    """Root of Debian: its package; others: the download of Playwright, which needs no root."""
    program(bare / "bin" / "apt-get")
    monkeypatch.setattr(installation, "is_debian", lambda: debian)
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert missing("") == f"Chromium not installed: run nephila browser install ({command})"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "h11" else object())
    first, *others = missing_steps("")
    assert first.command[:4] == (sys.executable, "-m", "pip", "install")
    assert {word.split(">")[0] for word in first.command[4:]} == {"playwright", "cryptography", "h11"}
    assert " && ".join(" ".join(step.command) for step in others) == command
    assert missing("").startswith("Playwright and Chromium not installed: run nephila browser install (")
    assert "\n" not in missing("")


def test_a_setting_that_names_no_executable_is_the_fault(bare: Path) -> None:
    program(bare / "bin" / "chromium")
    assert missing("/none/chrome").startswith("browser.executable /none/chrome: no executable")
