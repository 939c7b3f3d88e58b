"""Ordinary hosts: most of the web. Pages of 10-200 KB, links within and across hosts, slow ones, validators, near-
duplicates.
"""

from benchmarks.web.prose import Prose
from benchmarks.web.site import Host, Page, ordinary
from benchmarks.web.town import Town

_FAN_OUT = 6


def build(town: Town, pages: int, hosts: int) -> None:
    """*pages* ordinary pages on *hosts* hosts, then the special ordinary ones."""
    _tree(town, pages, hosts)
    _slow(town)
    _validators(town)
    _duplicates(town)
    _connections(town)


def _tree(town: Town, pages: int, hosts: int) -> None:
    """Breadth first, so the tree is as shallow as its fan-out allows; each page links to some more (see Site)."""
    homes = [
        town.host("ordinary", robots=None if i % 3 == 0 else b"User-agent: *\nDisallow: /admin/\n")
        for i in range(hosts)
    ]
    level: list[Page] = [h.home for h in homes if h.home]
    made = 0
    while made < pages:
        following: list[Page] = []
        for parent in level:
            for _ in range(min(_FAN_OUT, pages - made)):
                host = town.site.hosts[parent.host] if town.rng.random() < 0.7 else town.rng.choice(homes)
                following.append(_child(town, parent, host, made))
                made += 1
        level = following


def _child(town: Town, parent: Page, host: Host, number: int) -> Page:
    page = town.site.add(parent, host, f"/{town.rng.choice(_SECTIONS)}/{number}.html", "ordinary", size=town.size())
    known = town.site.seen_by(page)
    page.hrefs += [p.url for p in town.rng.sample(known, min(len(known), town.rng.randint(5, 60)))]
    return page


_SECTIONS = ("news", "blog", "docs", "shop/items", "2026/11")


def _slow(town: Town) -> None:
    for latency in (0.3, 1.0, 2.5):
        host = town.host("slow", latency_s=latency)
        for i in range(4):
            town.page(host, f"/slow/{i}", "slow")
    host = town.host("slow-body")
    town.page(host, "/pieces", "slow-body", action={"do": "body", "pieces": 12, "pause_s": 0.25}, size=60_000)


def _validators(town: Town) -> None:
    host = town.host("validators")
    for i in range(3):
        town.page(host, f"/etag/{i}", "etag", action={"do": "body", "etag": f'"v{i}"'})
    town.page(host, "/etag/weak", "etag", action={"do": "body", "etag": 'W/"w1"'})
    modified = {"do": "body", "last_modified": "Sat, 01 Nov 2025 08:00:00 GMT"}
    town.page(host, "/modified", "last-modified", action=modified)


def _duplicates(town: Town) -> None:
    """Equal and nearly equal bodies under different URLs: each URL is a page of its own."""
    host = town.host("duplicates")
    text = town.site.prose.page("The same article", [], 20_000)

    def same(page: Page, prose: Prose) -> bytes:
        return text

    def nearly(page: Page, prose: Prose) -> bytes:
        return text.replace(b"</article>", f"<p>Printed {page.path}</p></article>".encode())

    for i in range(3):
        town.page(host, f"/same/{i}", "duplicate", render=same, title="The same article")
        town.page(host, f"/nearly/{i}", "near-duplicate", render=nearly, title="The same article")
    home = host.home
    assert home is not None
    home.hrefs += [f"{home.url}same/0#part-{i}" for i in range(3)] + [f"{home.url}same/1?utm_source=mail&utm_medium=x"]


def _connections(town: Town) -> None:
    """Servers with habits: close after each answer, chunked, compressed, HTTP/1.0, an interim answer first."""
    closing = town.host("closing", close=True)
    for i in range(3):
        town.page(closing, f"/closing/{i}", "closing")
    coded = town.host("codings")
    for name, changes in _CODINGS.items():
        town.page(coded, f"/coded/{name}", name, action={"do": "body", **changes}, size=30_000, render=ordinary)


_CODINGS: dict[str, dict[str, object]] = {
    "chunked": {"chunked": True},
    "gzip": {"coding": "gzip"},
    "gzip-chunked": {"coding": "gzip", "chunked": True},
    "deflate": {"coding": "deflate"},
    "http-1.0": {"version": "HTTP/1.0", "close": True, "length": False},
    "until-close": {"close": True, "length": False},
    "early-hints": {"interim": "103 Early Hints"},
}
