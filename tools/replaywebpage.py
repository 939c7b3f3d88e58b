"""ReplayWeb.page, which shows a WACZ package in a browser, from npm into the user's cache.

python -m tools.replaywebpage install [--optional]
"""

from __future__ import annotations

import sys

from tools.install import run
from tools.npm_package import REMEDY, NpmPackage

PACKAGE = NpmPackage(
    "replaywebpage",
    "2.5.3",
    "9c28f63d238ddc1c5e489284f00b183f250bbf45cf64a2567f2e25f4fc90adef"
    "52ab02d9f9629956cfec7cba8f390e06ac7fb46248dbc0e86bf1c4931f4f20b1",
    ("ui.js", "sw.js"),
    "replaywebpage",
)

if __name__ == "__main__":
    sys.exit(run(__doc__, PACKAGE.install, PACKAGE.name, REMEDY))
