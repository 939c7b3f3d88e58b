"""The command line of the tools that install a program for tests: `python -m tools.NAME install [--optional]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable


class Missing(Exception):
    """A program is not on this machine and cannot be installed; the text names the remedy."""


def run(doc: str | None, install: Callable[[], object], name: str, remedy: str) -> int:
    """Install and print the path. Returns the exit code: 1 where the program cannot be had, 0 with --optional.

    `remedy`: how a person gets the program."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["install"])
    parser.add_argument("--optional", action="store_true", help="exit 0 where it cannot be had")
    options = parser.parse_args()
    try:
        print(f"{name}: {install()}")
    except (OSError, subprocess.CalledProcessError, Missing) as error:
        print(f"{name} was not installed ({error}); {remedy}", file=sys.stderr)
        return 0 if options.optional else 1
    return 0
