"""The order of domains by the ranks of an earlier crawl. Pure.

A crawl begins without the links that show which domains matter, and an earlier crawl has them. A level holds twice as
many domains as the level before. Within a level the order of the job's strategy counts, because the difference between
ranks 10,001 and 10,002 says less than the depth of a URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from nephila.kernel.documents.budget_schema import MOST_RANKS
from nephila.kernel.net.public_suffix import domain_of

LAST_LEVEL: Final = MOST_RANKS.bit_length()
"""Level of a domain without a rank."""


class DomainRanks:
    """Domain → rank. 50 bytes a domain, beside 75 for its name in the document. Operations are O(1)."""

    def __init__(self, domains: Sequence[str]) -> None:
        """`domains`: the highest rank first. A host in the list stands for its domain; the first of equal domains
        counts."""
        self._ranks: dict[str, int] = {}
        for rank, name in enumerate(domains, 1):
            self._ranks.setdefault(domain_of(name), rank)

    def __len__(self) -> int:
        return len(self._ranks)

    def rank(self, host_key: str) -> int:
        """Rank of the domain of a host, from 1; 0: none."""
        return self._ranks.get(domain_of(host_key), 0)

    def level(self, host_key: str) -> int:
        """0 for rank 1, 1 for ranks 2 and 3, 2 for 4 to 7, and so on; a lower level comes first."""
        rank = self.rank(host_key)
        return rank.bit_length() - 1 if rank else LAST_LEVEL


@lru_cache(8)
def ranks_of(domains: tuple[str, ...]) -> DomainRanks:
    """The ranks of a document, one object for all partitions of a program."""
    return DomainRanks(domains)
