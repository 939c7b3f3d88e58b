"""The difference of two texts shows the places that changed, in lines of any length and any script."""

from __future__ import annotations

import random

import pytest
from nephila.storage.text_diff import CONTEXT, DIFF_CHARACTERS, DIFF_LINE, changed_places, text_diff

WORDS = " ".join(f"word{n}" for n in range(2000))
CHINESE = "".join(chr(0x4E00 + n) for n in range(3000))


def difference(old: str, new: str) -> list[str]:
    """The lines of a difference."""
    return text_diff(old.encode(), new.encode()).split("\n")


@pytest.mark.parametrize("number", [0, 1, 700, 1998, 1999])
def test_a_word_of_a_long_line_is_shown_with_those_around_it(number: int) -> None:
    changed = WORDS.replace(f"word{number} ", "CHANGED ") if number < 1999 else WORDS.replace("word1999", "CHANGED")
    old, new = difference(WORDS, changed)
    assert (old[0], new[0]) == ("-", "+")
    assert f"word{number}" in old
    assert "CHANGED" in new
    assert old.replace(f"word{number}", "CHANGED")[1:] == new[1:]
    assert max(len(old), len(new)) < 3 * CONTEXT
    for neighbour in (number - 1, number + 1):
        assert not 0 <= neighbour < 2000 or f"word{neighbour}" in old


def test_all_places_of_a_line_are_shown() -> None:
    changed = WORDS.replace("word5 ", "FIRST ").replace("word1500 ", "SECOND more ").replace("word1800 ", "")
    old, new = difference(WORDS, changed)
    assert [word in old for word in ("word5 ", "word1500 ", "word1800 ", "word900 ")] == [True, True, True, False]
    assert [word in new for word in ("FIRST ", "SECOND more ", "word1800 ")] == [True, True, False]


def test_a_sign_of_a_text_without_spaces_is_shown() -> None:
    old, new = difference(CHINESE, CHINESE.replace(chr(0x4E00 + 1500), "新"))
    assert old.replace(chr(0x4E00 + 1500), "新")[1:] == new[1:]
    assert len(old) < 3 * CONTEXT


def test_a_repeated_word_and_white_space_are_places_too() -> None:
    same = "the same " * 500
    old, new = difference(same, f"{same[:2000]}else {same[2000:]}")
    assert "else" in new
    assert old[1:] != new[1:]
    old, new = difference(WORDS, WORDS.replace("word900 ", "word900  "))
    assert old[1:] != new[1:]


def test_a_long_line_is_compared_with_its_new_form() -> None:
    """Beside others that were added, removed or changed."""
    lines = [f"{n} {WORDS[n * 10 : n * 10 + 1000]}" for n in range(5)]
    changed = [lines[0], "a new line " * 40, lines[1].replace("word", "WORD", 1), lines[3], lines[4] + " end"]
    shown = difference("\n".join(lines), "\n".join(changed))
    assert sum(line.startswith("-") for line in shown) == 3
    assert sum(line.startswith("+") for line in shown) == 3
    at = next(number for number, line in enumerate(shown) if line.startswith("-") and line[1:].startswith("1 "))
    assert "WORD" in shown[at + 1]


def test_short_lines_are_shown_whole() -> None:
    assert difference("a\nprice 3\nz", "a\nprice 4\nz") == ["-price 3", "+price 4"]
    line = "x" * DIFF_LINE
    assert difference(line, "y") == [f"-{line}", "+y"]


def test_any_two_texts_differ_in_what_is_shown() -> None:
    rng = random.Random(1)
    for _ in range(300):
        words = [rng.choice("ab漢 \tż.") * rng.randrange(1, 60) for _ in range(rng.randrange(1, 60))]
        other = list(words)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(other) + 1)
            other[at : at + rng.randrange(3)] = [rng.choice("ab漢 c")] * rng.randrange(3)
        old, new = "".join(words), "".join(other)
        if old == new:
            continue
        assert changed_places(old, new)[0] != changed_places(old, new)[1]
        assert len(text_diff(old.encode(), new.encode())) < DIFF_CHARACTERS + 100
