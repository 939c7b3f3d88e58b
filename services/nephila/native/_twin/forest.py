"""The main-text model: a sum over small symmetric trees, read from maintext.txt (which the Rust build reads, too).

Each row is one tree: `name>threshold` for every level, a colon, and the leaves in thousandths of log-odds; the first
level is the lowest bit of a leaf's number. Trained by tools/train_maintext.py. Invariant: whole numbers only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from nephila.native._twin.features import NAMES


class Tree(NamedTuple):
    """Columns and thresholds by level, and a leaf for each combination of answers."""

    columns: tuple[int, ...]
    thresholds: tuple[int, ...]
    leaves: tuple[int, ...]


def _read() -> tuple[int, tuple[int, ...], list[Tree]]:
    bias, chances, trees = 0, (0,), []
    for row in Path(__file__).parent.with_name("maintext.txt").read_text("utf-8").splitlines():
        if not row or row.startswith("#"):
            continue
        head, _, tail = row.partition(":")
        if head == "features":
            if tuple(tail.split()) != NAMES:
                raise ValueError("maintext.txt was trained for other features than these: train it again")
        elif head == "bias":
            bias = int(tail)
        elif head == "chances":
            chances = tuple(map(int, tail.split()))
        else:
            levels = [level.split(">") for level in head.split()]
            columns = tuple(NAMES.index(name) for name, _ in levels)
            trees.append(Tree(columns, tuple(int(threshold) for _, threshold in levels), tuple(map(int, tail.split()))))
    return bias, chances, trees


BIAS, CHANCES, TREES = _read()
STEP: Final = 100
"""Thousandths of log-odds from one entry of `CHANCES` to the next; the middle one is even odds."""


def chances(columns: list[list[int]], count: int) -> list[int]:
    """For each of `count` lines an index into `CHANCES`, its chance of being main text in 1,024ths. O(lines · trees)."""
    scores = [BIAS] * count
    for tree in TREES:
        leaf = [0] * count
        for level, (column, threshold) in enumerate(zip(tree.columns, tree.thresholds, strict=True)):
            bit = 1 << level
            leaf = [have | bit if value > threshold else have for have, value in zip(leaf, columns[column], strict=True)]
        scores = [score + tree.leaves[at] for score, at in zip(scores, leaf, strict=True)]
    middle = len(CHANCES) // 2
    return [min(max(score // STEP + middle, 0), len(CHANCES) - 1) for score in scores]
