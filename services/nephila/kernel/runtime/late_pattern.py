"""Regular expressions that are compiled when they are first used. A start compiles 170 of them otherwise, a tenth of
its CPU, and a crawl uses a third."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LatePattern:
    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Kept as an attribute of the object, so that it is found without this method from now on.
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value


def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but a mistake in the pattern is an error of its first use. Not for patterns that are given to
    functions of `re` or compared."""
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))
