"""Requisites: what a page needs to be shown (styles, pictures, scripts, fonts, icons), fetched for archives only.

A requisite is a URL of its job whose context says so. Scope and page budget do not apply to it; exclude patterns,
robots.txt, pace, budgets of hosts and the egress guard do. It ends as dropped(requisite): its answer is in the archive,
and it has no text.
"""

from __future__ import annotations

import re
from typing import Final

from nephila.kernel.messages import Context

_KEY: Final = "requisite"
PER_PAGE: Final = 200
"""Requisites of one page where the job gives no number."""
MAX_REQUISITES: Final = 500
"""Largest number that a job may give."""
MAX_LEVEL: Final = 3
"""A page names level 1. Styles of a lower level than this are read for further requisites: a style of the page, and one
that it imports."""


_NOTE: Final = re.compile(rf'{{"{_KEY}":"([1-9])"}}')


def level_of(context: Context | None) -> int:
    """The level is 0 for a page."""
    return context.requisite if context is not None else 0


def note_of(context: Context | None) -> str:
    """Metadata of the row of a requisite, by which a later fetch of it is one as well; empty for a page."""
    level = level_of(context)
    return f'{{"{_KEY}":"{level}"}}' if level else ""


def context_of(note: str) -> Context | None:
    """The context of a row with this metadata; None for a page."""
    match = _NOTE.fullmatch(note)
    return Context(requisite=int(match[1])) if match else None
