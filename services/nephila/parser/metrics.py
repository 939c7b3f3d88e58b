"""Figures of the parser."""

from __future__ import annotations

from nephila.kernel.metrics import Figure
from nephila.parser.service import Parser

FIGURES: tuple[Figure[Parser], ...] = (
    Figure("pages_parsed_total", "Pages parsed.", lambda p: p.pages, rises=True),
    Figure(
        "pages_failed_total", "Pages that could not be parsed; any rise is a fault.", lambda p: p.failed, rises=True
    ),
)
