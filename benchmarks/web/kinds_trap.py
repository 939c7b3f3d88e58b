"""Traps: URLs without end that look new. A crawl is bounded by its depth, and where that is deep by the cap it puts on
what brings nothing new; a crawler that sees through a trap earlier may say dropped(trap).
"""

from benchmarks.web.site import Action, Host, Open
from benchmarks.web.town import Town

CAP_FETCHES = 100
"""The default cap of a trap in a job; twice as many are borne, since some are on their way when it closes."""
_TRAP = ("stored", "dropped(trap)", "none")


def build(town: Town) -> None:
    """A calendar, paths that repeat themselves, session ids, a faceted search."""
    depth = town.site.max_depth
    kinds: dict[str, tuple[str, str, Action, int]] = {
        "calendar": ("/calendar/", "/calendar/2026/11", {"do": "calendar"}, 1),
        "repeating path": ("/a/", "/a/b/", {"do": "repeat"}, 1),
        "session ids": ("/shop/", "/shop/item?sid=0", {"do": "session", "links": 2}, 2),
        "facets": ("/find", "/find?page=1", {"do": "facets", "links": 2}, 2),
    }
    for kind, (prefix, start, action, fan_out) in kinds.items():
        host = town.host(f"trap: {kind}")
        _open(town, host, prefix, start, kind, action, _bound(fan_out, depth))


def _bound(fan_out: int, depth: int) -> int:
    """Pages of a tree whose root stands at depth 2 and whose leaves at *depth*, at most twice the cap."""
    levels = max(0, depth - 1)
    return min(sum(int(fan_out**level) for level in range(levels)), 2 * CAP_FETCHES)


def _open(town: Town, host: Host, prefix: str, start: str, kind: str, action: Action, bound: int) -> None:
    assert host.home is not None
    host.home.hrefs.append(town.site.url(host.name, start))
    town.site.opens.append(Open(host.name, prefix, f"trap: {kind}", _TRAP, bound, action))
