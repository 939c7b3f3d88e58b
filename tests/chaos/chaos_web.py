"""The web of the chaos show: H hosts with P pages each, links within and across hosts, faults fixed per URL.

A page ends in one way however often it is asked for, so that the manifest can say how; what a page does the first time
only (an error, a lost connection) it does before it answers well. Each host has an address of its own on loopback:
the pace of addresses is not judged here. Same arguments, same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from benchmarks.web.site import DENIED, REDIRECTED, STORED, Action, Host, Page, Site

DOMAIN = "chaos.test"
ROBOTS = b"User-agent: *\nDisallow: /shut/\n"
SLOW_ROBOTS = b"User-agent: *\nCrawl-delay: %d\nDisallow: /shut/\n"
FAN_OUT = 6
AWAY = 0.25
"""Share of pages that lie on another host than the page which links to them."""


def _lasting(status: int) -> tuple[Action, tuple[str, ...]]:
    return {"do": "body", "status": status}, (f"failed(http_{status})",)


def _first(status: int, times: int) -> tuple[Action, tuple[str, ...]]:
    return {"do": "body", "first": {"status": status, "times": times}}, STORED


FAULTS: dict[str, tuple[float, Callable[[random.Random], tuple[Action, tuple[str, ...]]]]] = {
    "not there": (0.05, lambda rng: _lasting(rng.choice((404, 410, 403)))),
    "always an error": (0.01, lambda rng: _lasting(rng.choice((500, 502)))),
    "an error at first": (0.03, lambda rng: _first(500, 1)),
    "lost at first": (0.02, lambda rng: _first(0, 1)),
    "hangs up": (0.01, lambda rng: ({"do": "abort"}, ("failed(*)",))),
    "cut short": (0.01, lambda rng: ({"do": "truncate"}, ("failed(*)",))),
    "slow": (0.06, lambda rng: ({"do": "body", "latency_s": round(rng.uniform(0.3, 3.0), 2)}, STORED)),
    "slow body": (0.03, lambda rng: ({"do": "body", "pieces": 8, "pause_s": 0.4}, STORED)),
    "chunked": (0.03, lambda rng: ({"do": "body", "chunked": True}, STORED)),
    "gzip": (0.03, lambda rng: ({"do": "body", "coding": "gzip"}, STORED)),
    "closing": (0.03, lambda rng: ({"do": "body", "close": True}, STORED)),
    "redirect": (0.04, lambda rng: ({"do": "body", "status": 302}, REDIRECTED)),
    "shut": (0.02, lambda rng: ({"do": "body"}, DENIED)),
}
"""Share of the pages, and what the server does and what a right crawler makes of it."""


def build(seed: int, hosts: int, pages: int, *, crawl_delay_s: int, port: int, haste: float = 1.0) -> Site:
    """The site in memory: `pages` on each host, its home included; one host in twenty asks for `crawl_delay_s`. What is
    slow takes the `haste`-th part of its time."""
    site = Site(seed, port, 1000)
    rng = random.Random(seed)
    homes = _homes(site, hosts, crawl_delay_s)
    left = {host.name: pages - 1 for host in site.hosts.values()}
    level = homes
    while level:
        following = []
        for parent in level:
            for _ in range(FAN_OUT):
                if (host := _room(site, parent, left, rng)) is not None:
                    following.append(_page(site, parent, host, pages - left[host.name], rng))
                    left[host.name] -= 1
        level = [page for page in following if _leads_on(page)]
        if not level and any(left.values()):
            level = [home for home in homes if left[home.host]]
    for page in site.pages.values():
        page.action.update(
            {name: page.action[name] / haste for name in ("latency_s", "pause_s") if name in page.action}
        )
    return site


def _homes(site: Site, count: int, crawl_delay_s: int) -> list[Page]:
    homes: list[Page] = []
    for number in range(count):
        slow = number % 20 == 10
        text = SLOW_ROBOTS % crawl_delay_s if slow else ROBOTS
        robots = {"do": "body", "type": "text/plain"} if number % 3 or slow else {"do": "body", "status": 404}
        host = Host(
            f"c{number:03}.{DOMAIN}",
            f"127.0.2.{number + 1}",
            "chaos",
            robots=robots,
            robots_text=text if robots.get("status") != 404 else b"",
            crawl_delay_s=float(crawl_delay_s) if slow else 0.0,
        )
        site.add_host(host)
        host.home = site.add(homes[0] if homes else None, host, "/", "home", size=8000)
        homes.append(host.home)
    return homes


def _room(site: Site, parent: Page, left: dict[str, int], rng: random.Random) -> Host | None:
    """Where the next page lies: mostly on its parent's host."""
    names = [name for name, count in left.items() if count]
    if not names:
        return None
    here = parent.host if left[parent.host] and rng.random() >= AWAY else rng.choice(names)
    return site.hosts[here]


def _page(site: Site, parent: Page, host: Host, number: int, rng: random.Random) -> Page:
    kind = _kind(rng)
    if kind == "shut" and not host.robots_text:
        kind = "ordinary"
    changes: dict[str, Any] = {}
    if kind != "ordinary":
        action, accept = FAULTS[kind][1](rng)
        changes = {"action": action, "accept": accept, "disallowed": kind == "shut"}
    path = f"/shut/{number}.html" if kind == "shut" else f"/p/{number}.html"
    if kind == "redirect":
        return _redirect(site, parent, host, path, changes)
    page = site.add(parent, host, path, kind, size=int(3000 * 8 ** rng.random()), **changes)
    known = site.seen_by(page)
    page.hrefs += [other.url for other in rng.sample(known, min(len(known), 12))]
    return page


def _redirect(site: Site, parent: Page, host: Host, path: str, changes: dict[str, Any]) -> Page:
    """A hop and, on the same host, what it leads to, which is one page more."""
    target = path.replace("/p/", "/landed/")
    changes["action"] = {**changes["action"], "location": site.url(host.name, target)}
    hop = site.add(parent, host, path, "redirect", **changes)
    return site.add(hop, host, target, "redirect target", hop=True, size=5000)


def _kind(rng: random.Random) -> str:
    drawn = rng.random()
    for kind, (share, _) in FAULTS.items():
        drawn -= share
        if drawn < 0:
            return kind
    return "ordinary"


def _leads_on(page: Page) -> bool:
    """Whether a crawler reads its links."""
    return page.accept == STORED


def tries(page: dict[str, Any], attempts: int) -> int:
    """How often a page is asked for at most when nothing is killed; `attempts` = the scheduler's tries."""
    if page.get("disallowed"):
        return 0
    if page["kind"] in ("an error at first", "lost at first"):
        return 2
    if page["kind"] == "hangs up":
        return 2 * attempts  # on a connection that was kept it may be the connection's fault: once more on a new one
    return attempts if page["kind"] in ("always an error", "cut short") else 1
