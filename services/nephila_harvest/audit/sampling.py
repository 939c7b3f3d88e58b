"""Draws a stratified sample: strata get places in proportion to their size, at least one each. Pure.

A page's rank in its stratum is a hash of the seed and its key. So a sample depends on the seed and the pages alone, not
on their order, and the sample of a later crawl with the same seed has the same pages as far as they still exist.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urlsplit

STRATA = ("directory", "rule", "job", "reason")
LINK = -2
"""`Candidate.ordinal` of a link that is not stored."""


class Candidate(NamedTuple):
    """A page, or an item of a page."""

    job: str
    url_key: str
    rule: str
    """Rule of the item; empty for a page."""
    ordinal: int
    """Number of the item on its page; -1 for a page, LINK for a link."""
    version: str
    """Hash of the text or of the item: a label counts for this version."""
    url: str
    page_rule: str
    """Rule that read the page; empty: none. Of a link: why it is not stored."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was drawn."""

    sizes: dict[str, int]
    """Stratum → candidates in it."""
    drawn: dict[str, list[Candidate]]
    """Stratum → its candidates in the sample, in the order of their rank."""

    def scaled(self, factor: float) -> Sample:
        """The sample with strata that are larger by this factor."""
        return Sample({name: round(size * factor) for name, size in self.sizes.items()}, self.drawn)


def directory_of(url: str) -> str:
    """Host and first directory of a URL: `a.example/news`; pages beside it: `a.example/`."""
    parts = urlsplit(url)
    head, slash, _ = parts.path.lstrip("/").partition("/")
    return f"{parts.netloc}/{head}" if slash else f"{parts.netloc}/"


def stratum_of(by: str, candidate: Candidate) -> str:
    """The stratum of a candidate; `by` is one of STRATA."""
    if by == "directory":
        return directory_of(candidate.url)
    if by == "reason":
        return candidate.page_rule or "stored"
    return candidate.job if by == "job" else candidate.rule or candidate.page_rule or "(no rule)"


def allocate(sizes: Mapping[str, int], places: int) -> dict[str, int]:
    """Places per stratum: one each, the others in proportion to the sizes by largest remainder, never more than there
    are candidates. With fewer places than strata the largest strata get one each. O(strata log strata)."""
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    seats = dict.fromkeys(order[:places], 1)
    while (left := min(places, sum(sizes[name] for name in seats)) - sum(seats.values())) > 0:
        room = {name: sizes[name] - seats[name] for name in seats if sizes[name] > seats[name]}
        total = sum(room.values())
        shares = {name: left * free / total for name, free in room.items()}
        added = sum(int(share) for share in shares.values())
        for name, share in shares.items():
            seats[name] += int(share)
        for name in sorted(shares, key=lambda name: (int(shares[name]) - shares[name], name))[: left - added]:
            seats[name] += 1
    return seats


def draw(candidates: Callable[[], Iterator[Candidate]], by: str, places: int, seed: str) -> Sample:
    """Draw a sample. `candidates` is called twice: for the sizes, then for the sample. O(n log places) time and
    O(strata + places) memory."""
    sizes = Counter(stratum_of(by, candidate) for candidate in candidates())
    seats = allocate(sizes, places)
    heaps: dict[str, list[tuple[int, Candidate]]] = {name: [] for name in seats}
    for candidate in candidates():
        name = stratum_of(by, candidate)
        if name not in heaps:
            continue
        # The largest rank leaves first. heapq is a min-heap, so ranks are negative.
        entry = (-rank(seed, candidate), candidate)
        heap = heaps[name]
        if len(heap) < seats[name]:
            heapq.heappush(heap, entry)
        elif entry > heap[0]:
            heapq.heapreplace(heap, entry)
    return Sample(
        dict(sizes), {name: [candidate for _, candidate in sorted(heap, reverse=True)] for name, heap in heaps.items()}
    )


def rank(seed: str, candidate: Candidate) -> int:
    """Pseudo-random number of a candidate, 64 bits."""
    key = "\0".join((seed, candidate.job, candidate.url_key, candidate.rule, str(candidate.ordinal)))
    return int.from_bytes(blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest())
