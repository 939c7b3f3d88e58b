"""The candidates of a srcset, by the HTML standard ("parse a srcset attribute")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_SRCSET: Final = 65_536
"""Characters of a srcset that are examined."""
_URL: Final = re.compile(r"[ \t\n\f\r,]*+([^ \t\n\f\r]++)")
_DESCRIPTORS: Final = re.compile(r"((?:[^,()]++|\([^)]*+\)?+|\))*+),?+")
"""A comma in parentheses ends no candidate."""
_SIZE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)[wx]")
_DESCRIPTOR: Final = re.compile(r"[0-9]+[wh]|[0-9]*\.?[0-9]+x")


def candidates_of_srcset(srcset: str) -> list[str]:
    """The URLs of the candidates but for those whose descriptors a browser refuses. O(length)."""
    return [url for url, descriptors in _candidates(srcset) if _is_valid(descriptors)]


def best_of_srcset(srcset: str) -> str:
    """The URL of a srcset's largest candidate, the first of equal ones; "" without one. O(length)."""
    best, best_size = "", 0.0
    for url, descriptors in _candidates(srcset):
        sizes = [float(match[1]) for word in descriptors if (match := _SIZE.fullmatch(word))]
        size = sizes[-1] if sizes else 1.0
        if size > best_size:
            best, best_size = url, size
    return best


def _is_valid(descriptors: list[str]) -> bool:
    kinds = "".join(word[-1] for word in descriptors)
    return kinds in ("", "w", "x", "wh", "hw") and all(map(_DESCRIPTOR.fullmatch, descriptors))


def _candidates(srcset: str) -> Iterator[tuple[str, list[str]]]:
    text, at = srcset[:MAX_SRCSET], 0
    while (match := _URL.match(text, at)) is not None:
        url, at = match[1], match.end()
        descriptors: list[str] = []
        if url[-1] == ",":
            url = url.rstrip(",")
        elif (rest := _DESCRIPTORS.match(text, at)) is not None:
            descriptors, at = rest[1].split(), rest.end()
        if url:
            yield url, descriptors
