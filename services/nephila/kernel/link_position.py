"""Where on its page a link stands, as two bits of its byte in `Outlinks.flags` say.

The page pass sets them where it computes main text; in what was written before they were, and of documents that are no
HTML, both are 0, which is read as `OTHER`. Invariant: nothing is lost by not knowing a place.
"""

from __future__ import annotations

from typing import Final

IN_MAIN: Final = 1 << 4
"""In a line of the main text, once at least."""
IN_CHROME: Final = 1 << 5
"""In nav, header, footer or aside, wherever it stands."""
MAIN: Final = "main"
NAV: Final = "nav"
OTHER: Final = "other"


def position_of(flag: int) -> str:
    """`MAIN` where the main text has the link, whatever is around it; else `NAV` or `OTHER`. O(1)."""
    if flag & IN_MAIN:
        return MAIN
    return NAV if flag & IN_CHROME else OTHER


POSITIONS: Final = tuple(map(position_of, range(256)))
"""The place of each flag."""
