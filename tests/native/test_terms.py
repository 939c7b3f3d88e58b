"""The table of terms: each row has a group, a language and words that the core can read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROWS = [
    line.split()
    for line in Path(__file__).parents[2].joinpath("services/nephila/native/terms.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_each_row_is_small_letters_and_comes_once() -> None:
    """Of a group and a language there is one row."""
    assert all(
        word == word.lower() and word.isalpha() and len(word.encode()) > 1 for _, _, *words in ROWS for word in words
    )
    assert Counter((group, language) for group, language, *_ in ROWS).most_common(1)[0][1] == 1


def test_twenty_languages_have_the_terms_of_articles() -> None:
    """English alone has words of shops and of buttons."""
    groups = {group for group, *_ in ROWS} - {"t_more", "t_buy", "t_boiler"}
    for group in groups:
        assert len({language for name, language, *_ in ROWS if name == group}) >= 20, group
