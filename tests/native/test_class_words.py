"""Scores of class words: the core computes the columns as the training tool does."""

from __future__ import annotations

import importlib.util
import struct

import pytest
from nephila.native import IMPLEMENTATION

pytestmark = [
    pytest.mark.skipif(IMPLEMENTATION != "rust", reason="of the core"),
    pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="of the training tool"),
]

PAGE = b"""<body><nav class="siteNav menu-item"><p>a</p></nav><div id=productGrid class="col2 HTMLcard card__title">
<p itemprop=description>b</p><section role=complementary><p class="price price">c</p></section></div><p>d</p>"""


def test_words_are_cut_as_in_the_core() -> None:
    """Runs of letters, cut where a capital follows a small one, of 2 to 16."""
    from tools.class_words import words_of

    assert words_of(b"siteNav menu-item x HTMLcard col2 " + b"a" * 17) == {
        *(b"site", b"nav", b"menu", b"item", b"htmlcard", b"col")
    }


def test_the_core_and_the_tool_have_the_same_columns() -> None:
    """With the scores that the core is built with."""
    from nephila.native._core import MODEL_FEATURES, training_table

    from tools.class_words import COLUMNS, TARGET, Boxes, columns, words_of

    rows = (line.split() for line in TARGET.read_text("utf-8").splitlines() if not line.startswith("#"))
    scores = {word.encode(): int(score) for word, score in rows}
    _, packed, boxes, data, attributes = training_table(PAGE, "utf-8")
    lines = [line[5] for line in struct.iter_unpack("<IIIHHII", packed)]
    parents = [box[0] for box in struct.iter_unpack("<IIIIIQ", boxes)]
    found = columns(Boxes(parents, list(map(words_of, attributes)), lines), lambda word: scores.get(word, 0))
    size = len(lines)
    table = [
        list(struct.unpack(f"<{size}h", data[2 * size * at : 2 * size * (at + 1)])) for at in range(len(MODEL_FEATURES))
    ]
    assert tuple(MODEL_FEATURES[-len(COLUMNS) :]) == COLUMNS
    assert [list(map(int, column)) for column in found.T] == table[-len(COLUMNS) :]
    assert any(map(any, table[-len(COLUMNS) :]))


def test_a_score_is_the_mean_of_sites_drawn_to_none() -> None:
    """A word of many pages of one site has none; a site's own share can be left out."""
    from tools.class_words import LEAST_SITES, SHRINK, by_site, scorer, total

    many = by_site([("one", {b"card": 0.5})] * 50)
    assert scorer(total(many), {})(b"card") == 0
    sites = by_site([(f"site{at}", {b"card": 0.5}) for at in range(2 * LEAST_SITES)])
    full = round(1000 * LEAST_SITES / (2 * LEAST_SITES + SHRINK))
    assert scorer(total(sites), {})(b"card") == full
    assert scorer(total(sites), sites["site0"])(b"card") < full
    assert scorer(total(sites), {})(b"other") == 0


def test_a_word_holds_what_its_outermost_boxes_hold() -> None:
    """The share of main text less that of the page."""
    import numpy as np

    from tools.class_words import Boxes, shares

    card, none = frozenset((b"card",)), frozenset[bytes]()
    page = Boxes([0, 0, 1, 0], [none, card, card, none], [2, 1, 3, 3])
    found = shares(page, np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    assert found == {b"card": 0.5}
