"""Orders of a job's URLs within a host, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from nephila.kernel import messages as m

ORDERS = 1 << 24


@dataclass(frozen=True, slots=True)
class Strategy:
    """placeholder until merged"""

    name: str
    newest_first: bool

    def order(self, depth: int, priority: int) -> int:
        return min(depth + 1, ORDERS - 1)


def strategy_of(number: m.Strategy) -> Strategy:
    return Strategy("bfs", False)
