"""Texts with nothing to collapse: single spaces and no other white space."""

from __future__ import annotations

import random
from types import ModuleType


def test_a_tidy_text_is_what_collapsing_leaves(core: ModuleType) -> None:
    """Whatever is called tidy is, but for its ends, what collapsing makes of it; ASCII words with single spaces are."""
    chance = random.Random(7)
    for _ in range(2000):
        text = "".join(chance.choice("ab \n\t\r\x0b\x1c\x7f\xa0éz-") for _ in range(chance.randrange(0, 40)))
        if core.is_tidy(text):
            assert text.strip() == " ".join(text.split())
    for size in range(200):
        text = " ".join(["word"] * size)
        assert core.is_tidy(text)
        assert size == 0 or not core.is_tidy(text + "  ")
        assert size == 0 or not core.is_tidy("\n" + text)
