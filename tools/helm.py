"""Helm for tests and for `make chart`: a helm on the PATH, or one built from its Go module into the user's cache.

python -m tools.helm install [--optional]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tools.go_program import GoProgram
from tools.install import run

HELM: Final = GoProgram("helm", "helm.sh/helm/v3/cmd/helm", "v3.22.0", "helm")


def find() -> Path:
    """The path of helm. Raises `Missing`."""
    return HELM.find()


if __name__ == "__main__":
    sys.exit(run(__doc__, HELM.install, "helm", "tests of the chart need it: install helm 3, or Go and run this again"))
