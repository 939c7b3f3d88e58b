"""Scripted servers and the client of the gateway serve these tests as well."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in ("contracts", "browser/gateway"):
    sys.path.insert(0, str(TESTS / folder))
