"""A host as functions from path to page, and a breadth-first crawl that asks about traps as the scheduler does."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urljoin

from nephila.kernel.messages import Quarantine
from nephila.scheduler.traps.novelty import NoveltyTracker
from nephila.scheduler.traps.url_shape import shape

NOW = 1_795_000_000.0
"""November 2026."""
ROOT = "http://a.test"


@dataclass
class Page:
    """What a fetch finds: the text and the links, relative or not; `size` of the body, by default that of both."""

    text: str
    links: list[str] = field(default_factory=list)
    size: int = 0


Site = Callable[[str], Page | None]


@dataclass
class Crawl:
    """What came of a crawl of one host."""

    judge: NoveltyTracker
    fetched: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    quarantines: list[Quarantine] = field(default_factory=list)

    def count(self, prefix: str) -> int:
        """Fetches of paths that begin so."""
        return sum(url.startswith(ROOT + prefix) for url in self.fetched)


def crawl(site: Site, start: str = "/", limit: int = 20_000, judge: NoveltyTracker | None = None) -> Crawl:
    """Fetch everything that is not refused, breadth first, `limit` pages at most."""
    result = Crawl(judge or NoveltyTracker("j", "a.test"))
    traps = result.judge
    queue, seen = deque([ROOT + start]), {ROOT + start}
    while queue and len(result.fetched) < limit:
        url = queue.popleft()
        if (reason := traps.verdict(url)) and not traps.exempt(url):
            result.refused[reason] += 1
            continue
        page = site(url[len(ROOT) :])
        if page is None:
            continue
        result.fetched.append(url)
        new = []
        for href in page.links:
            link = urljoin(url, href)
            if link in seen:
                continue
            seen.add(link)
            if reason := shape(link, NOW) or traps.verdict(link) or traps.is_session_copy(link):
                result.refused[reason] += 1
            else:
                new.append(link)
        queue += [link for link in new if link.startswith(ROOT)]
        traps.linked(url, new)
        size = page.size or len(page.text) + sum(map(len, page.links))
        text_hash = hashlib.sha256(page.text.encode()).digest()[:8] if page.text else b""
        closed = traps.fetched(url, text_hash, size, NOW)
        if closed is not None:
            result.quarantines.append(closed)
    traps.check()
    return result
