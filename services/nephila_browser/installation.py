"""What rendering needs on this machine: libraries and Chromium. What is missing, and the commands that install it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

LIBRARIES: Final = ("playwright", "cryptography", "h11")
"""Modules of the extra `browser`."""
EXECUTABLES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names searched in PATH; Debian installs /usr/bin/chromium."""
PLAYWRIGHTS: Final = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/Google Chrome for Testing",
)
"""Where `playwright install chromium` puts it, below its directory."""


class InstallStep(NamedTuple):
    """One step of an installation."""

    what: str
    """What is missing."""
    command: tuple[str, ...]


def find_executable(configured: str) -> str:
    """The path of Chromium: the configured one, of PATH, or that of Playwright; empty when there is none. `configured`:
    the setting, or empty."""
    if configured:
        return shutil.which(configured) or ""
    return next((path for name in EXECUTABLES if (path := shutil.which(name))), "") or _of_playwright()


def _of_playwright() -> str:
    """The newest Chromium that Playwright has installed."""
    paths = [path for pattern in PLAYWRIGHTS for path in _directory().glob(pattern) if os.access(path, os.X_OK)]
    return str(max(paths, key=lambda path: (_revision(path), str(path)))) if paths else ""


def _directory() -> Path:
    if directory := os.environ.get("PLAYWRIGHT_BROWSERS_PATH", ""):
        return Path(directory)
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ms-playwright"


def _revision(path: Path) -> int:
    name = path.relative_to(_directory()).parts[0].partition("-")[2]
    return int(name) if name.isdigit() else 0


def missing(configured: str) -> str:
    """Why this machine cannot render pages, in one line with the remedy; empty when it can."""
    if configured and not find_executable(configured) and not _missing_libraries():
        return f"browser.executable {configured}: no executable; correct the setting, or leave it out"
    steps = missing_steps(configured)
    if not steps:
        return ""
    commands = " && ".join(" ".join(step.command) for step in steps)
    names = " and ".join(dict.fromkeys(step.what for step in steps))
    return f"{names} not installed: run nephila browser install ({commands})"


def missing_steps(configured: str) -> list[InstallStep]:
    """What has to be installed on this system, in order; empty when nothing is missing."""
    steps = []
    if _missing_libraries():
        steps.append(InstallStep("Playwright", (sys.executable, "-m", "pip", "install", *_requirements())))
    if not find_executable(configured):
        steps += [InstallStep("Chromium", command) for command in _chromium()]
    return steps


def _missing_libraries() -> list[str]:
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is None]


def _requirements() -> list[str]:
    """The requirements of the extra, so that the versions fit this installation."""
    from importlib import metadata  # 25 ms, and only an installation needs it

    lines = [line.partition(";") for line in metadata.requires("nephila") or ()]
    names = [name.strip() for name, _, condition in lines if "extra ==" in condition and "browser" in condition]
    return names or ["nephila[browser]"]


def _chromium() -> list[tuple[str, ...]]:
    """The commands for Chromium: the package of Debian for root; else that of Playwright, which needs no root."""
    if is_debian() and os.geteuid() == 0 and shutil.which("apt-get"):
        return [("apt-get", "update"), ("apt-get", "install", "-y", "--no-install-recommends", "chromium")]
    return [(sys.executable, "-m", "playwright", "install", "chromium")]


def library_command() -> tuple[str, ...]:
    """Installs the system libraries that a Chromium of Playwright needs."""
    words = (sys.executable, "-m", "playwright", "install-deps", "chromium")
    return words if os.geteuid() == 0 else ("sudo", *words)


def is_debian() -> bool:
    """Whether the package chromium of this system is one that runs without snap."""
    try:
        return platform.freedesktop_os_release().get("ID") == "debian"
    except OSError:
        return False
