"""The page budget of one job: its limit, the share of one partition in it, and the claims on it. Pure."""

from __future__ import annotations

from nephila.kernel.messages import Outcome
from nephila.scheduler.jobs.url_counts import UrlCounts

# A name of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
STORED = Outcome.STORED


class PageBudget:
    """Pages are stored, outstanding or claimed. Requisites need no place."""

    def __init__(self, counts: UrlCounts, quota: int | None) -> None:
        self._counts = counts
        self.max_pages = 0
        """Pages that the job may store; 0: no limit."""
        self.quota = quota
        """Share of this partition in the budget; None: all of it."""
        self.is_spent_elsewhere = False
        """All partitions together have stored as many pages as the budget allows."""
        self.reserved: set[bytes] = set()
        """Stored pages that are queued for another fetch. Each has a reservation."""
        self.priority_refetch: set[bytes] = set()
        """Queued URLs that were in flight when a run was killed. Their rows may be in the table already, so they come
        before new URLs. They come after reserved ones, because their fetch may end without a page."""
        self.requisites: set[bytes] = set()
        """Requisites that are queued or outstanding."""

    def set_quota(self, pages: int, spent_elsewhere: bool) -> None:
        """Change the share of this partition."""
        self.quota, self.is_spent_elsewhere = pages, spent_elsewhere

    @property
    def left(self) -> int:
        """Pages that the job may still store, without those that are outstanding."""
        places = self.max_pages if self.quota is None else self.quota
        return places - self._counts.ended[STORED] - self._counts.leased

    @property
    def claimed(self) -> int:
        """Pages in use: stored, outstanding, reserved or with priority."""
        counts = self._counts
        return counts.ended[STORED] + counts.leased + len(self.reserved) + len(self.priority_refetch)

    @property
    def has_place(self) -> bool:
        """Whether it covers another page, or there are requisites."""
        return not self.max_pages or self.left > 0 or bool(self.requisites)

    @property
    def is_spent(self) -> bool:
        """Whether `max_pages` pages are stored, with their requisites."""
        if not self.max_pages or self.requisites:
            return False
        if self.quota is not None:
            return self.is_spent_elsewhere and not self.reserved and not self.priority_refetch
        return self._counts.ended[STORED] >= self.max_pages

    def covers(self, url_key: bytes) -> bool:
        """Whether it covers the page of this URL. The last places are for URLs with a reservation or priority."""
        if not self.max_pages or url_key in self.requisites:
            return True
        if url_key in self.reserved:
            return self.has_place
        before = len(self.reserved) + (len(self.priority_refetch) if url_key not in self.priority_refetch else 0)
        return self.left > before

    def reserve(self, url_key: bytes) -> None:
        """Reserve a place for a stored page that is queued again."""
        if self.max_pages:
            self.reserved.add(url_key)
            self.priority_refetch.discard(url_key)

    def free(self, url_key: bytes) -> None:
        """Free the reservation of a URL that is taken or has ended."""
        self.reserved.discard(url_key)
        self.priority_refetch.discard(url_key)
