"""The finer reason of a URL without a page, in the metadata of its row. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

CAUSE: Final = "cause"
DETAIL: Final = "detail"
MAX_DETAIL: Final = 200


def fault_note(cause: str, detail: str) -> str:
    """Metadata of the row: the cause as a word of the table of reasons, and what was received; empty without one."""
    return json.dumps({CAUSE: cause, DETAIL: detail[:MAX_DETAIL]} if detail else {CAUSE: cause}) if cause else ""


def cause_of(meta: Any) -> str:
    """The cause in the metadata of a row, a text or read from JSON; empty without one."""
    if isinstance(meta, str):
        try:
            meta = json.loads(meta) if CAUSE in meta else None
        except ValueError:
            return ""
    cause = meta.get(CAUSE, "") if isinstance(meta, dict) else ""
    return cause if isinstance(cause, str) else ""
