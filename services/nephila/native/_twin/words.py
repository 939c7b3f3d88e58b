"""Words of class, id, role and of short lines as bits of groups, from words.txt (which the Rust build reads, too)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

MAX_WORD: Final = 16
_WORD: Final = re.compile(rb"[A-Z]*[a-z]+|[A-Z]+")
_TEXT: Final = "t_"


def _read() -> tuple[list[str], dict[bytes, int], dict[bytes, int]]:
    names: list[str] = []
    attribute: dict[bytes, int] = {}
    text: dict[bytes, int] = {}
    for line in Path(__file__).parent.with_name("words.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, *words = line.split()
            table = text if name.startswith(_TEXT) else attribute
            for word in words:
                table[word.encode()] = table.get(word.encode(), 0) | 1 << len(names)
            names.append(name)
    return names, attribute, text


GROUPS, _ATTRIBUTE, _TEXT_WORDS = _read()
GROUP: Final = {name: number for number, name in enumerate(GROUPS)}
TEXT_GROUPS: Final = [name for name in GROUPS if name.startswith(_TEXT)]


def of_attribute(value: bytes) -> int:
    """Groups that a class, id, role or itemprop speaks of. O(bytes)."""
    found = 0
    for word in _WORD.findall(value):
        found |= _ATTRIBUTE.get(word.lower(), 0)
    return found


def of_text(text: bytes) -> list[int]:
    """How many words of each text group stand in `text`. O(bytes)."""
    counts = [0] * len(TEXT_GROUPS)
    first = len(GROUPS) - len(TEXT_GROUPS)
    for word in _WORD.findall(text):
        bits = _TEXT_WORDS.get(word.lower(), 0) >> first
        while bits:
            counts[(bits & -bits).bit_length() - 1] += 1
            bits &= bits - 1
    return counts
