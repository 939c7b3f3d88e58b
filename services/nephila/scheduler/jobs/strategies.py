"""The order of a job's URLs within a host: one row per strategy. Pure.

A row maps depth and priority (0-255; its meaning depends on the strategy) to an order from 1 to 2^24 - 1, smaller
first. URLs of one order come by arrival, oldest or newest first. Order 0 is the head of the queue, for redirect
targets, retries and returned leases; no strategy uses it. The last order is the tail, for retries of URLs that took the
time of their host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from nephila.kernel.pages.link_position import NAV, POSITIONS

HEAD: Final = 0
"""Order of URLs that come before all others of their host."""
MAX_ORDER: Final = (1 << 24) - 1
TAIL: Final = MAX_ORDER
"""Order of URLs that come behind all others of their host."""
MAX_PRIORITY: Final = 255
AVERAGE_PRIORITY: Final = 128
"""Priority of a page that is fetched again: between new URLs of high and of low priority."""
SEED_PRIORITY: Final = MAX_PRIORITY
"""Seeds go first."""
DECAY: Final = 0.5
"""Share of its parent's priority that a link inherits (shark-search, Hersovici et al. 1998)."""
DECAY_IN_NAV: Final = 0.25
"""The same for a link in navigation, which belongs to the site rather than to the page."""


class StrategyRow(NamedTuple):
    """A strategy: its order, and which of equal URLs comes first."""

    order: Callable[[int, int], int]
    newest_first: bool = False
    relevance: bool = False
    """Priorities come from the parser (`Outlinks.priorities`) and are inherited."""


def _by_depth(depth: int, priority: int) -> int:
    return min(depth + 1, MAX_ORDER)


def _deepest(depth: int, priority: int) -> int:
    return max(MAX_ORDER - depth, 1)


def _by_priority(depth: int, priority: int) -> int:
    return MAX_PRIORITY + 1 - min(max(priority, 0), MAX_PRIORITY)


STRATEGIES: Final[dict[str, StrategyRow]] = {
    "bfs": StrategyRow(_by_depth),
    "dfs": StrategyRow(_deepest, newest_first=True),
    "best-first": StrategyRow(_by_priority, relevance=True),
}


def inherited(priority: int, parent_priority: int, flag: int = 0) -> int:
    """Priority of a link under best-first: its own, or a share of its parent's. So a path through pages without
    relevance stays open for a few steps. `flag` is the link's byte in `Outlinks.flags`."""
    return max(priority, int(parent_priority * (DECAY_IN_NAV if POSITIONS[flag] == NAV else DECAY)))
