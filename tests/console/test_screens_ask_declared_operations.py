"""A screen leaves out what a session may not do: an operation with a misspelt name would be left out for everybody."""

from __future__ import annotations

import re
from pathlib import Path

from nephila_control.api import OPERATIONS

CONSOLE = Path(__file__).parents[2] / "services" / "nephila_console"


def test_screens_ask_for_declared_operations():
    texts = [path.read_text("utf-8") for kind in ("*.html", "*.py") for path in CONSOLE.rglob(kind)]
    names = {name for text in texts for name in re.findall(r'\bmay\("(\w+)"\)', text)}
    assert "apply_job" in names
    assert names <= OPERATIONS.keys()
