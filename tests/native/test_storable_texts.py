"""Bytes that every database takes as a text: UTF-8 without NUL."""

from __future__ import annotations

import random
from types import ModuleType


def test_storable_is_what_decodes_and_has_no_nul(core: ModuleType) -> None:
    """The verdict is that of Python's strict decoder and a search for NUL, whatever stands at whichever place."""
    chance = random.Random(11)
    pieces = [
        b"text ",
        "naïve ".encode(),
        "漢字".encode(),
        "😀".encode(),
        b"\0",
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf5",
    ]
    for _ in range(3000):
        weights = [30, 30, 10, 10, *[chance.choice((0, 0, 1))] * 5]
        data = b"".join(chance.choices(pieces, weights, k=chance.randrange(0, 60)))
        data = data[: chance.randrange(0, len(data) + 1)]
        try:
            data.decode()
            valid = True
        except UnicodeDecodeError:
            valid = False
        assert core.is_storable(data) is (valid and b"\0" not in data), data
