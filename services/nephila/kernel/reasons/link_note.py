"""The metadata of the row of a recorded link: the page on which the link stands. Its text is the title of the row."""

from __future__ import annotations

import json
from typing import Final

from nephila.kernel.messages import Context

FOUND_ON: Final = "found_on"


def link_note(context: Context | None) -> str:
    """Metadata of the row; empty for a URL that is not a recorded link."""
    return json.dumps({FOUND_ON: context.found_on}) if context is not None and context.found_on else ""
