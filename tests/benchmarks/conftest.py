"""The bench is a package at the repository's root, which is not installed: put the root on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
