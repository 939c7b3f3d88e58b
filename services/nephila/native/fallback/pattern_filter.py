"""The quick first search of the core; the fallback has none, so RE2 searches each time."""

from __future__ import annotations


class PatternFilter:
    """The filter is as the core's: it may say that a pattern matches where it does not, never the reverse."""

    def __init__(self, pattern: str) -> None:
        pass

    def may_match(self, data: bytes) -> bool:
        """False: the pattern does not match anywhere."""
        return True
