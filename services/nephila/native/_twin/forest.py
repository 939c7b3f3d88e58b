"""The main-text model: a sum over small symmetric trees, read from maintext.txt (which the Rust build reads, too).

Each row is one tree: `name>threshold` for every level, a colon, and the leaves in thousandths of log-odds; the first
level is the lowest bit of a leaf's number. Trained by tools/train_maintext.py. Invariant: whole numbers only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from nephila.native._twin.features import NAMES


class Tree(NamedTuple):
    """Columns and thresholds by level, and a leaf for each combination of answers."""

    columns: tuple[int, ...]
    thresholds: tuple[int, ...]
    leaves: tuple[int, ...]


class Model(NamedTuple):
    """`chances` are in 1,024ths, from improbable to certain in steps of STEP; the middle one is even odds."""

    bias: int
    chances: tuple[int, ...]
    trees: tuple[Tree, ...]


@cache
def model() -> Model:
    """The model in maintext.txt, read when it is asked for first: training it needs the features alone."""
    bias = 0
    chances: tuple[int, ...] = (0,)
    trees: list[Tree] = []
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
            thresholds = tuple(int(threshold) for _, threshold in levels)
            trees.append(Tree(columns, thresholds, tuple(map(int, tail.split()))))
    return Model(bias, chances, tuple(trees))


STEP: Final = 100
"""Thousandths of log-odds from one entry of the chances to the next."""


def chances(columns: list[list[int]], count: int) -> list[int]:
    """For each of `count` lines an index into the model's chances of being main text. O(lines · trees)."""
    bias, known, trees = model()
    scores = [bias] * count
    for tree in trees:
        leaf = [0] * count
        for level, (column, threshold) in enumerate(zip(tree.columns, tree.thresholds, strict=True)):
            bit = 1 << level
            leaf = [
                have | bit if value > threshold else have for have, value in zip(leaf, columns[column], strict=True)
            ]
        scores = [score + tree.leaves[at] for score, at in zip(scores, leaf, strict=True)]
    middle = len(known) // 2
    return [min(max(score // STEP + middle, 0), len(known) - 1) for score in scores]
