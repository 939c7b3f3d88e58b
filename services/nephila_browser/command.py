"""`nephila browser install`: Playwright and Chromium in one step, or the commands that a person has to run."""

from __future__ import annotations

import os
import subprocess
from typing import NamedTuple

import typer
from nephila.cli.output import note
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError

STDERR = 2
"""Its output is no result of this command."""
START_S = 30.0
"""Longest time for the version of a browser."""
app = typer.Typer(no_args_is_help=True, help="Install what rendered pages need: Playwright and Chromium.")


class BrowserFault(NamedTuple):
    """Why a browser does not start."""

    cause: str
    remedy: str


@app.callback()
def browser() -> None:
    """Install what rendered pages need: Playwright and Chromium."""


@app.command()
def install() -> None:
    """Install Playwright and Chromium where they are missing, and check that Chromium starts."""
    from nephila_browser.installation import find_executable, missing_steps

    configured = os.environ.get("NEPHILA_DOWNLOADER__BROWSER__EXECUTABLE", "")
    for step in missing_steps(configured):
        command = " ".join(step.command)
        note(f"{step.what} is missing: {command}")
        try:
            code = subprocess.run(step.command, check=False, stdout=STDERR).returncode
        except OSError as error:
            raise UserError(f"{command}: {error.strerror}") from None
        if code:
            raise UserError(f"{step.what} is not installed, exit code {code} of: {command}")
    path = find_executable(configured)
    if not path:
        raise UserError("Chromium is not found after its installation; set NEPHILA_DOWNLOADER__BROWSER__EXECUTABLE")
    if fault := start_fault(path):
        raise UserError(f"{path} does not start: {fault.cause}; {fault.remedy}")
    typer.echo(f"Pages can be rendered: {sanitize(path)}")


def start_fault(path: str) -> BrowserFault | None:
    """Why an executable of Chromium does not start; None: it does."""
    from nephila_browser.installation import library_command

    try:
        done = subprocess.run(
            [path, "--version"], check=False, capture_output=True, timeout=START_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return BrowserFault(f"no answer in {START_S:g} s", "see the system's log")
    except OSError as error:
        return BrowserFault(error.strerror or str(error), "set browser.executable to a Chromium of this system")
    if not done.returncode:
        return None
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    cause = sanitize(lines[-1][-300:]) if lines else f"exit code {done.returncode}"
    return BrowserFault(cause, " ".join(library_command()))
