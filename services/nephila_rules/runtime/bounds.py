"""Whether a rule may run on the event loop: an upper bound of its cost, known beforehand. Pure.

lexbor examines an element in 10 to 100 ns. A selector with n descendant steps that finds nothing examines depth^n / n!
chains of ancestors for each element; :nth-child counts siblings at 4 ns each. Invariant: a rule within the bound took
less than 0.1 s on real pages, and about a second on the worst page made for it.
"""

from __future__ import annotations

from math import factorial
from typing import Final

from nephila.parser.page.html_tree import tree_fits

from nephila_rules.runtime.spec import Rule

MAX_STEPS: Final = 1_000_000
"""Steps of 100 ns."""
_SIBLINGS: Final = 30
"""Siblings counted in the time of one step."""


def fits(rule: Rule, body: bytes, depth: int) -> bool:
    """Whether a rule may run on the loop for a page of nesting depth `depth`. O(bytes), 5 µs for 80 KB."""
    if not rule.bounded or not tree_fits(len(body), depth):
        return False
    return steps(rule, body.count(b"<"), depth) <= MAX_STEPS


def steps(rule: Rule, tags: int, depth: int) -> int:
    """Upper bound of the steps of a rule's worst selector on `tags` tags."""
    up = rule.shape.up
    chains: int = tags * depth**up // factorial(up)
    return chains * max(1, tags // _SIBLINGS) if rule.shape.counts else chains
