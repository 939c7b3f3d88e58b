"""Pages of 100 links for the bench of the frontier, as a crawl would meet them: three of five links lead to the page's
own host, the others to hosts of which few are named by many.

URL number i of a host is always the same text, so what was made before can be linked to again. One link in eight has a
query that the canonical form changes. Made before the clock runs; nothing here is measured.
"""

import random
from array import array
from collections.abc import Callable
from itertools import accumulate

LINKS = 100
OWN = 60
"""Links of a page to its own host."""
GROUP = 5
"""Links of a page to each other host."""
FRESH = 10
"""Links of an all-new page to hosts that no page has named before: ten URLs per host in the end."""
SKEW = 1.06
"""Exponent at which the first of 10^6 hosts is drawn for a tenth of all."""


def host(rank: int) -> str:
    """The name of a host."""
    return f"www.host-{rank}.test"


def path(number: int) -> str:
    """Path and query of a host's URL."""
    if number % 8:
        return f"/archive/2026/article-about-no-{number}"
    return f"/archive/2026/list?page={number}&b=2&a=1&utm_source=top"


class Web:
    """Hosts by rank with how many URLs of each are known; at most `hosts` of them."""

    def __init__(self, hosts: int, rng: random.Random) -> None:
        self.hosts = hosts
        self.rng = rng
        self.known = array("I")
        """Per rank, URLs made so far."""
        self._weights = array("d", accumulate((rank + 1) ** -SKEW for rank in range(hosts)))

    def drawn(self, count: int) -> list[int]:
        """Ranks of known hosts, the low ones more often."""
        known = len(self.known)
        ranks = self.rng.choices(range(self.hosts), cum_weights=self._weights, k=count)
        return [rank % known for rank in ranks]

    def make(self, rank: int) -> str:
        """A URL that was not there before, of a host that may be the next one."""
        if rank == len(self.known):
            self.known.append(0)
        number = self.known[rank]
        self.known[rank] = number + 1
        return path(number)

    def again(self, rank: int) -> str:
        """A URL that is known."""
        return path(self.rng.randrange(self.known[rank]))

    def mixed(self, new: int) -> tuple[str, bytes]:
        """A page of an ordinary web: URL and body, `new` of its links never seen before."""
        if not self.known:
            self.make(0)
        own, *others = self.drawn(1 + (LINKS - OWN) // GROUP)
        ranks = [own] * OWN + [rank for rank in others for _ in range(GROUP)]
        self.rng.shuffle(ranks)
        fresh = min(new * FRESH // LINKS, self.hosts - len(self.known))
        ranks[:fresh] = range(len(self.known), len(self.known) + fresh)
        links = [(rank, self.make(rank) if n < new else self.again(rank)) for n, rank in enumerate(ranks)]
        return body(own, self.again(own), links)

    def of_one_host(self, new: int) -> tuple[str, bytes]:
        """A page of a web of one host."""
        known = self.known[0] if self.known else 1
        links = [(0, self.make(0) if n < new else path(self.rng.randrange(known))) for n in range(LINKS)]
        return body(0, path(0), links)

    def of_all_hosts(self, new: int) -> tuple[str, bytes]:
        """A page whose new links lead to a host each."""
        if not self.known:
            self.make(0)
        first = len(self.known)
        ranks = [first + n if n < new else self.rng.randrange(first) for n in range(LINKS)]
        own = self.rng.randrange(first)
        return body(own, path(0), [(rank, self.make(rank) if rank >= first else self.again(rank)) for rank in ranks])


SHAPES: dict[str, Callable[[Web, int], tuple[str, bytes]]] = {
    "zipf": Web.mixed,
    "one-host": Web.of_one_host,
    "one-each": Web.of_all_hosts,
}


def body(own: int, place: str, links: list[tuple[int, str]]) -> tuple[str, bytes]:
    """URL and document of a page with these links; those to its own host are relative."""
    lines = [
        f'<a href="{where if rank == own else f"http://{host(rank)}{where}".replace("&", "&amp;")}">More of this</a>\n'
        for rank, where in links
    ]
    return f"http://{host(own)}{place}", "".join(lines).encode()
