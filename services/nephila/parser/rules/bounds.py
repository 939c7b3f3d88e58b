"""Whether a rule may be run on a page beside everything else: what it may cost at most is known beforehand. Pure.

An element of lexbor's tree is asked in 10 to 100 ns; a selector with n steps up asks each for depth^n / n! chains of
ancestors where it finds nothing, :nth-child counts siblings at 4 ns each. Invariant: what fits took under 0.1 s on real
pages, and about a second on the worst that was made for it.
"""

from __future__ import annotations

from math import factorial
from typing import Final

from nephila.parser.rules.spec import Rule

MAX_BYTES: Final = 256 << 10
"""A larger page is looked at in the child: its trees alone take milliseconds."""
MAX_DEPTH: Final = 120
"""Elements within each other; real pages have under 60."""
MAX_STEPS: Final = 1_000_000
"""Of 100 ns."""
_SIBLINGS: Final = 30
"""Counted in the time of a step."""


def fits(rule: Rule, body: bytes, depth: int) -> bool:
    """Whether a rule fits a page of these bytes, nested `depth` deep at most. O(bytes), 5 µs for 80 KB."""
    if not rule.bounded or len(body) > MAX_BYTES or depth > MAX_DEPTH:
        return False
    return steps(rule, body.count(b"<"), depth) <= MAX_STEPS


def steps(rule: Rule, tags: int, depth: int) -> int:
    """What the worst selector of a rule may take on so many tags, in steps."""
    up = rule.shape.up
    chains: int = tags * depth**up // factorial(up)
    return chains * max(1, tags // _SIBLINGS) if rule.shape.counts else chains
