"""Counts of the URLs of one job, and the numbers of their fetches. Pure."""

from __future__ import annotations

from collections import Counter

from nephila.kernel.messages import Outcome


class UrlCounts:
    def __init__(self) -> None:
        self.ended: Counter[Outcome] = Counter()
        self.leased = 0
        """Fetches in flight, and fetched pages without a receipt."""
        self.dispatched = 0
        """URLs taken from their queues since this program started with the job."""
        self.forwarded = 0
        """URLs handed to other partitions since this program started with the job."""
        self.split_pages = 0
        """Pages in use that came with the partition when it was split from another (above 0), or went with those that
        were split from it (below 0)."""


class RunCounts:
    """Counts behind limits of one run. They are lost in a restart."""

    def __init__(self) -> None:
        self.sitemaps_listed: Counter[str] = Counter()
        """Host → sitemaps that sitemap indexes have listed."""
        self.taken_of_level: Counter[int] = Counter()
        """Depth → new links that were taken since the last change of the document."""
        self.odd_shapes: Counter[int] = Counter()
        """Number of a host → URLs with the shape of a trap that were fetched."""


class FetchNumbers:
    """The fetches of a URL are numbered, over all jobs of one name: an earlier one may have left rows."""

    def __init__(self, first: int) -> None:
        self.first = self.last = first
        """Number of the first fetch of every URL, and the highest number in use."""

    def note(self, fetch_no: int) -> None:
        """A fetch has this number."""
        self.last = max(self.last, fetch_no)

    def restore(self, first: int, last: int) -> None:
        """Set both from a snapshot."""
        self.first, self.last = first, last
