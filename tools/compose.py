"""Reads Compose files as `docker compose config` does, by the library of Compose itself; no Docker is needed.

python -m tools.compose install [--optional]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tools.go_program import GoProgram
from tools.install import run

COMPOSE: Final = GoProgram("compose-go", "github.com/compose-spec/compose-go/v2/cmd", "v2.4.7", "compose")


def config(files: Sequence[Path]) -> dict[str, Any]:
    """The project of these files, merged. Raises `Missing`, and `ValueError` for a mistake."""
    command = [str(COMPOSE.find()), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    project: dict[str, Any] = yaml.safe_load(done.stdout)
    return project


if __name__ == "__main__":
    sys.exit(
        run(__doc__, COMPOSE.install, "compose-go", "tests of compose.yaml need it: install Go and run this again")
    )
