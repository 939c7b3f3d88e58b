"""The page budget of a job over several groups: pages are granted to a group before it uses them. Pure.

Invariant: the pages granted are never more than the budget, and a group never uses more than its grant. A group returns
pages only when all that it has used is in its log, so a group that restarts from its log finds at most its grant in
use. The grants of a start are the pages that the logs have in use.
"""

from __future__ import annotations

import msgspec

AHEAD = 64
"""Pages that a group requests in advance."""


class Granted(msgspec.Struct):
    """One job in the main process."""

    max_pages: int = 0
    """0: no limit."""
    pages: dict[int, int] = msgspec.field(default_factory=dict)
    """Group → pages granted."""
    requested: dict[int, int] = msgspec.field(default_factory=dict)
    """Group → pages that it requests and has not been granted."""
    spent: bool = False
    """The groups have been told that the whole budget is stored."""

    @property
    def free(self) -> int:
        """Pages that no group has; below 0 after the budget was lowered."""
        return self.max_pages - sum(self.pages.values())

    def request(self, group: int, pages: int) -> None:
        """A group could use so many further pages now."""
        self.requested[group] = pages

    def return_pages(self, group: int, pages: int) -> None:
        """A group does not use these pages."""
        self.pages[group] -= pages

    def grant(self) -> dict[int, int]:
        """Group → further pages for it. A grant is at most half of what is free, so that others get some as well."""
        if not self.max_pages:
            return {}
        grants: dict[int, int] = {}
        for group, pages in self.requested.items():
            pages = min(pages, max(self.free // 2, 1), self.free)
            if pages > 0:
                grants[group] = pages
                self.requested[group] -= pages
                self.pages[group] = self.pages.get(group, 0) + pages
        return grants

    @property
    def short(self) -> bool:
        """A group requests pages, and none is free."""
        return bool(self.max_pages) and self.free <= 0 and any(pages > 0 for pages in self.requested.values())


class PagePool(msgspec.Struct):
    """The grant of one job in a group, which its partitions share."""

    pages: int = 0
    spent: bool = False
    """All groups have stored the whole budget."""

    def left(self, claimed: int) -> int:
        """Pages that are not in use."""
        return self.pages - claimed

    def take_back(self, claimed: int, queued: int) -> int:
        """The pages that are not in use are returned, half of them where URLs are queued, so that the last one stays
        where it can be used; how many."""
        left = max(self.left(claimed), 0)
        pages = left // 2 if queued else left
        self.pages -= pages
        return pages
