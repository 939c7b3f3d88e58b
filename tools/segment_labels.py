"""Labels of text lines for pages of which only some segments are marked: what the main-text model learns from them.

A line that holds a marked segment has its label, with the weight of `MARKED_WORDS` words. Any other line has the label
in which two teachers agree, the main-text model without these pages and trafilatura; a line about which they disagree
is no example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.maintext_truth import words
from benchmarks.segment_truth import SegmentPage, plain

MARKED_WORDS = 20
"""Words that a marked line weighs at least."""
LEAST_WORDS = 60
"""A shorter main text weighs as one of so many words."""
LONG = 25
"""Letters of a line that may be a part of a segment; a shorter one stands in too many."""


def labelled(
    page: SegmentPage, lines: list[str], first: Any, second: Any, weights: Any, answer: str
) -> tuple[Any, Any]:
    """Labels and weights of the lines of a page; `first` and `second` are the labels of the teachers."""
    labels = np.array(first, bool)
    weights = np.where(labels == np.array(second, bool), weights, 0.0)
    marked = MARKED_WORDS / max(len(words(answer)), LEAST_WORDS)
    for at, line in enumerate(map(plain, lines)):
        belongs = any(segment.strip() in line or (len(line) > LONG and line in segment) for segment in page.belongs)
        surplus = any(segment.strip() in line for segment in page.surplus)
        if belongs and surplus:
            weights[at] = 0.0
        elif belongs or surplus:
            labels[at], weights[at] = belongs, max(weights[at], marked)
    return labels, weights
