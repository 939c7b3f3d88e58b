"""Whether a tree may be built, and a rule run, beside everything else: what it may cost is known beforehand. Pure.

An element of lexbor's tree is asked in 10 to 100 ns; a selector with n steps up asks each for depth^n / n! chains of
ancestors where it finds nothing, :nth-child counts siblings at 4 ns each. Building the tree walks up some of the open
elements for every tag, 4 ns each, as long as the page pass names a depth; where it names none the time grows with the
square of the page. Invariant: a rule that fits took under 0.1 s on real pages, and about a second on the worst that was
made for it; a tree that fits the loop took 0.05 s at most.
"""

from __future__ import annotations

from math import factorial
from typing import Final

from nephila.parser.page.html_tree import tree_fits
from nephila.parser.rules.spec import Rule

MAX_STEPS: Final = 1_000_000
"""Of 100 ns."""
_SIBLINGS: Final = 30
"""Counted in the time of a step."""


def fits(rule: Rule, body: bytes, depth: int) -> bool:
    """Whether a rule fits a page of these bytes, nested `depth` deep at most. O(bytes), 5 µs for 80 KB."""
    if not rule.bounded or not tree_fits(len(body), depth):
        return False
    return steps(rule, body.count(b"<"), depth) <= MAX_STEPS


def steps(rule: Rule, tags: int, depth: int) -> int:
    """What the worst selector of a rule may take on so many tags, in steps."""
    up = rule.shape.up
    chains: int = tags * depth**up // factorial(up)
    return chains * max(1, tags // _SIBLINGS) if rule.shape.counts else chains
