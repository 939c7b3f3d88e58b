"""What the log of the site says of a crawl. Pure."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SLACK_S = 0.02
"""A gap may be this much shorter: clocks of two processes, and the time from the socket to the handler."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Figures of a log; times in seconds."""

    pages: int
    """Different pages that were requested."""
    again: int
    """Requests of pages beyond the first of each."""
    early: int
    """Gaps below the delay."""
    shortest_gap_s: float
    """The shortest time from the first byte of a response to the next request to its host; infinite without two."""
    longest_pause_s: float
    """The longest time without any request."""
    starts: list[list[float]]
    """Starts of the requests to each host, in order."""


def judge(log: Iterable[Mapping[str, Any]], delay_s: float) -> Verdict:
    """A line has host, path, start, sent (first byte of the response). The thread of the site may wait for a core
    between its last byte and its look at the clock, so a gap counts from the first byte. robots.txt has no gap."""
    by_host: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for line in log:
        by_host[line["host"]].append(line)
        if line["path"] != "/robots.txt":
            seen[line["host"], line["path"]] += 1
    gaps: list[float] = []
    for found in by_host.values():
        found.sort(key=lambda line: line["start"])
        gaps += [
            after["start"] - before["sent"]
            for before, after in itertools.pairwise(found)
            if "/robots.txt" not in (before["path"], after["path"])
        ]
    hosts = [[line["start"] for line in found] for found in by_host.values()]
    starts = sorted(itertools.chain.from_iterable(hosts))
    return Verdict(
        pages=len(seen),
        again=sum(seen.values()) - len(seen),
        early=sum(gap < delay_s - SLACK_S for gap in gaps),
        shortest_gap_s=min(gaps, default=float("inf")),
        longest_pause_s=max((b - a for a, b in itertools.pairwise(starts)), default=0.0),
        starts=hosts,
    )
