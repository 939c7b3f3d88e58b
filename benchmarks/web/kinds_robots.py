"""Hosts by their robots.txt: every kind that RFC 9309 speaks of, and the ones people really serve."""

from typing import Any

from benchmarks.web.site import DENIED, NO_ROW, STORED, Host, Site
from benchmarks.web.town import Town, text_answer

_DENIED_HOST = ("denied(robots)", "denied(robots_*)")
_STRICTER = (*STORED, *DENIED)

# (name, robots.txt, [(path, allowed)]): True = stored, False = denied and never requested, None = both are right.
_TEXTS: list[tuple[str, bytes, list[tuple[str, bool | None]]]] = [
    ("prefix", b"User-agent: *\nDisallow: /private/\n", [("/private/a", False), ("/privately", True), ("/open", True)]),
    ("longest match", b"User-agent: *\nDisallow: /p/\nAllow: /p/open\n", [("/p/open/1", True), ("/p/shut", False)]),
    (
        "wildcards",
        b"User-agent: *\nDisallow: /*.cgi$\nDisallow: /*?secret=\nDisallow: /a*z\n",
        [
            ("/run.cgi", False),
            ("/run.cgi/more", True),
            ("/x?secret=1", False),
            ("/x?open=1", True),
            ("/a-to-z", False),
            ("/a-to-y", True),
        ],
    ),
    (
        "own group",
        b"User-agent: *\nDisallow: /\n\nUser-agent: nephila\nDisallow: /not-nephila/\n",
        [("/not-nephila/1", False), ("/everybody-else-is-shut-out", True)],
    ),
    (
        "several groups",
        b"User-agent: a\nUser-agent: *\nDisallow: /one/\n\nUser-agent: *\nDisallow: /two/\n",
        [("/one/1", False), ("/two/1", False)],
    ),
    ("BOM", b"\xef\xbb\xbfUser-agent: *\nDisallow: /after-bom/\n", [("/after-bom/1", False), ("/fine", True)]),
    (
        "carriage returns",
        b"USER-AGENT: *\rdisallow : /cr/ # why\r\n\r\nAllow: /\r",
        [("/cr/1", False), ("/fine", True)],
    ),
    (
        "percent",
        b"User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /b%7Cc\n",
        [("/caf%C3%A9/menu", False), ("/cafe", True)],
    ),
    ("allow nothing", b"User-agent: *\nDisallow: /\nAllow: /$\n", [("/shut", False), ("/shut/too", False)]),
    ("bad delay", b"User-agent: *\nCrawl-delay: soon\nDisallow: /x\n", [("/x1", False), ("/fine", True)]),
    (
        "a page instead",
        b"<!DOCTYPE html><html><title>Not here</title><p>User-agent of the year</p></html>",
        [("/fine", True)],
    ),
    (
        "NUL bytes",
        b"User-agent: *\x00\nUser-agent: *\nDisallow: /nul/\n\x00\x00\n",
        [("/nul/1", False), ("/fine", True)],
    ),
    (
        "huge",
        b"User-agent: *\nDisallow: /early/\n" + b"# filler, filler, filler\n" * 25_000 + b"Disallow: /late/\n",
        [("/early/1", False), ("/late/1", None), ("/fine", True)],
    ),
]


def build(town: Town) -> None:
    """One host per kind of robots.txt."""
    for name, text, paths in _TEXTS:
        host = town.host(f"robots: {name}", robots=text)
        for path, allowed in paths:
            _page(town, host, path, allowed)
    for delay in (2, 3):
        _delayed(town, delay)
    for status in (401, 403, 404, 410):
        town.page(_with_robots(town, f"robots: {status}", {"do": "body", "status": status}), "/fine", "robots absent")
    for status in (500, 503):
        _shut(town, f"robots: {status}", {"do": "body", "status": status})
    _shut(town, "robots: no answer", {"do": "never"})
    _shut(town, "robots: closed", {"do": "abort"})
    _redirected(town)


def _page(town: Town, host: Host, path: str, allowed: bool | None) -> None:
    accept = {True: STORED, False: DENIED, None: _STRICTER}[allowed]
    town.page(host, path, host.kind, accept=accept, disallowed=allowed is False)


def _delayed(town: Town, delay: int) -> None:
    host = town.host(
        "robots: crawl-delay", robots=f"User-agent: *\nCrawl-delay: {delay}\n".encode(), crawl_delay_s=float(delay)
    )
    for i in range(4):
        town.page(host, f"/delayed/{i}", "crawl-delay")


def _with_robots(town: Town, kind: str, action: dict[str, Any], **changes: Any) -> Host:
    host = town.host(kind, robots=None, **changes)
    host.robots = action
    return host


def _shut(town: Town, kind: str, action: dict[str, Any]) -> None:
    """A host whose rules cannot be learned: nothing of it may be requested."""
    host = _with_robots(town, kind, action, disallow_all=True, home={"accept": _DENIED_HOST, "disallowed": True})
    # Its home is never read, so its other page hangs on the seed.
    town.page(host, "/also", kind, parent=town.root, accept=_DENIED_HOST, disallowed=True)


def _redirected(town: Town) -> None:
    rules = b"User-agent: *\nDisallow: /shut/\n"
    near = _with_robots(town, "robots: redirect", {"do": "body", "status": 301, "location": "/rules/robots.txt"})
    _rules_page(town.site, near, "/rules/robots.txt", rules)
    far = _with_robots(town, "robots: redirect to another host", {})
    store = town.site.add_host(Host("rules.web.test", "127.0.1.49", "robots store"))
    far.robots = {"do": "body", "status": 302, "location": town.site.url(store.name, "/for-others.txt")}
    _rules_page(town.site, store, "/for-others.txt", rules)
    for host in (near, far):
        _page(town, host, "/shut/1", False)
        _page(town, host, "/open", True)


def _rules_page(site: Site, host: Host, path: str, text: bytes) -> None:
    """A file that is fetched as rules only: no link leads to it, so no row is due."""
    host.robots_paths.append(path)
    page = site.add(None, host, path, "rules", accept=NO_ROW, action=text_answer(), render=lambda _p, _s: text)
    site.seeds.remove(page.url)
