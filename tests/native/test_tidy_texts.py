"""Texts as values of rules: what has nothing to collapse, what is left of the others, and how JSON has them."""

from __future__ import annotations

import random
from types import ModuleType

import msgspec
import pytest


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


def _texts(chance: random.Random) -> list[str]:
    letters = "ab \n\t\r\x0b\x0c\x1c\x1f\x7f\x85\xa0\u2003\u2028\u3000éz-\U0001f577"
    return ["".join(chance.choice(letters) for _ in range(chance.randrange(0, 40))) for _ in range(50)]


def test_texts_are_trimmed_as_split_has_white_space(core: ModuleType) -> None:
    """Collapsed within lines, without empty lines and empty texts, each cut to so many characters before."""
    chance = random.Random(8)
    for most in (0, 1, 7, 30, 1000):
        for _ in range(20):
            texts = _texts(chance)
            lines = [[" ".join(line.split()) for line in text[:most].split("\n")] for text in texts]
            assert core.trimmed(texts, most) == [
                found for some in lines if (found := "\n".join(line for line in some if line))
            ]


def test_a_quoted_text_is_json(core: ModuleType) -> None:
    """As msgspec writes it, every control and every character that has to be escaped among them."""
    chance = random.Random(9)
    letters = [chr(code) for code in (*range(0x80), 0xA0, 0xE9, 0x2028, 0x1F577)]
    for size in (0, 1, 5, 70, 500):
        for _ in range(50):
            text = "".join(chance.choice(letters) for _ in range(size))
            assert core.quoted(text) == msgspec.json.encode(text)
    plain = "the quick brown spider " * 99
    assert core.quoted(plain) == msgspec.json.encode(plain)


def test_a_lone_surrogate_is_an_error(core: ModuleType) -> None:
    """Nobody can write it as UTF-8."""
    with pytest.raises(UnicodeEncodeError):
        core.quoted("\ud800")
    with pytest.raises(UnicodeEncodeError):
        core.trimmed(["a", "b \ud800"], 10)
