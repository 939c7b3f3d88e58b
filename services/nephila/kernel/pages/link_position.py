"""The position of a link on its page, as two bits of its byte in `Outlinks.flags`.

The parser sets them where it computes the main text. For documents other than HTML both are 0, which means `OTHER`.
"""

from __future__ import annotations

from typing import Final

IN_MAIN: Final = 1 << 4
"""At least one occurrence is in a line of the main text."""
IN_NAV: Final = 1 << 5
"""In nav, header, footer or aside."""
MAIN: Final = "main"
NAV: Final = "nav"
OTHER: Final = "other"


def position_of(flag: int) -> str:
    """`MAIN` if the main text contains the link; else `NAV` or `OTHER`. O(1)."""
    if flag & IN_MAIN:
        return MAIN
    return NAV if flag & IN_NAV else OTHER


POSITIONS: Final = tuple(map(position_of, range(256)))
"""The position of each value of the flags."""
