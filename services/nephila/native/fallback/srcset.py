"""The largest picture of a srcset."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_SRCSET: Final = 65_536
"""Characters of a srcset that are examined."""
_SIZE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)[wx]")


def best_of_srcset(srcset: str) -> str:
    """The URL of a srcset's largest candidate, the first of equal ones; "" without one. O(length)."""
    text = srcset[:MAX_SRCSET]
    words = text.split()
    if len(words) == 1 and "," not in (words[0][0], words[0][-1]):
        return words[0]
    if len(words) % 2 == 0 and words:
        sizes = list(map(_stated, (*words[1:-1:2], words[-1].rstrip(",") + ",")))
        only_behind = text.count(",") == len(sizes) - 1
        if -1.0 not in sizes and (only_behind or not any("," in (url[0], url[-1]) for url in words[::2])):
            # The common form: URLs and sizes alternate.
            largest = max(sizes)
            return words[2 * sizes.index(largest)] if largest else ""
    return _best_of_words([*words, ","])


@lru_cache(maxsize=1024)
def _stated(word: str) -> float:
    """Size in the last word of a candidate; -1 if it is no size, or no comma follows."""
    found = _SIZE.fullmatch(word[:-1]) if word.endswith(",") else None
    return float(found[1]) if found else -1.0


def _best_of_words(words: list[str]) -> str:
    best, best_size = "", 0.0
    url, size, rest = "", 1.0, ""
    for word in words:
        if not url:
            rest = ""
            url = word.lstrip(",")
            closed = url.endswith(",")
            url = url.rstrip(",")
        else:
            word, comma, rest = word.partition(",")
            found = _SIZE.fullmatch(word)
            size = float(found[1]) if found else size
            closed = bool(comma)
        if closed:
            if url and size > best_size:
                best, best_size = url, size
            url, size = rest, 1.0
    return best
