"""The scripted server of the fetcher contract serves these tests as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "contracts"))
