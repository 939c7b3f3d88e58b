"""Redirects: every status, chains, across hosts, to forbidden and foreign places, loops and ones without end.

Each hop is a URL of its own that ends as dropped(redirect); the last target is a page like any other, at the depth of
the first.
"""

from benchmarks.web.site import DENIED, REDIRECTED, Host, Open, Page
from benchmarks.web.town import Town

_ENDLESS = (*REDIRECTED, "failed(too_many_redirects)")
_LOOPS = (*REDIRECTED, "failed(too_many_redirects)", "failed(redirect*)")


def build(town: Town) -> None:
    """All redirects; chains may cross hosts."""
    host, other = town.host("redirects"), town.host("redirect targets", robots=b"User-agent: *\nDisallow: /shut/\n")
    for status in (301, 302, 303, 307, 308):
        hop = _hop(town, host, f"/{status}", town.site.url(other.name, f"/landed/{status}"), status=status)
        town.site.add(hop, other, f"/landed/{status}", "redirect target", hop=True)
    _chain(town, host, other)
    _ends(town, host, other)
    _loops(town, host, other)
    _endless(town)


def _hop(
    town: Town,
    host: Host,
    path: str,
    target: str,
    *,
    status: int = 302,
    parent: Page | None = None,
    accept: tuple[str, ...] = REDIRECTED,
) -> Page:
    """A page that redirects; the home page links to it unless *parent* redirects to it."""
    action = {"do": "body", "status": status, "location": target}
    return town.site.add(
        parent or host.home, host, path, "redirect", hop=parent is not None, accept=accept, action=action
    )


def _chain(town: Town, host: Host, other: Host) -> None:
    """Five hops from host to host, by relative and absolute targets."""
    hosts = [host, other, host, other, host]
    hop: Page | None = None
    for i, at in enumerate(hosts):
        following = hosts[i + 1] if i + 1 < len(hosts) else other
        path = f"/chain/{i + 1}"
        hop = _hop(town, at, f"/chain/{i}", town.site.url(following.name, path), status=301, parent=hop)
    town.site.add(hop, other, "/chain/5", "redirect target", hop=True)
    relative = _hop(town, host, "/relative/from", "to?x=1#part")
    town.site.add(relative, host, "/relative/to?x=1", "redirect target", hop=True)


def _ends(town: Town, host: Host, other: Host) -> None:
    """Targets that may not or cannot be fetched."""
    to_shut = _hop(town, host, "/to-shut", town.site.url(other.name, "/shut/1"))
    town.site.add(to_shut, other, "/shut/1", "redirect to a disallowed path", hop=True, accept=DENIED, disallowed=True)
    _hop(town, host, "/to-outside", town.site.url("outside.example.test", "/from-redirect"))
    failed = (*REDIRECTED, "failed(*)")
    for name, target in (
        ("mail", "mailto:web@web.test"),
        ("ftp", "ftp://s00.web.test/x"),
        ("file", "file:///etc/hostname"),
        ("bad", "http://[::1/"),
    ):
        _hop(town, host, f"/to-{name}", target, accept=failed)
    # Without a target it is a page, as in browsers.
    _hop(town, host, "/to-nowhere", "", accept=(*failed, "stored"))


def _loops(town: Town, host: Host, other: Host) -> None:
    first = _hop(town, host, "/loop/a", town.site.url(other.name, "/loop/b"), accept=_LOOPS)
    _hop(town, other, "/loop/b", town.site.url(host.name, "/loop/a"), parent=first, accept=_LOOPS)
    _hop(town, host, "/loop/self", town.site.url(host.name, "/loop/self"), accept=_LOOPS)


def _endless(town: Town) -> None:
    """Ever new targets, on one host and back and forth between two. The contract allows ten hops; two more are left
    for how they are counted.
    """
    one, two = town.host("endless redirect"), town.host("endless redirect over hosts")
    for host, prefix, following in ((one, "/endless/", one), (one, "/ping/", two), (two, "/ping/", one)):
        action = {"do": "next_redirect", "to": town.site.url(following.name, prefix)}
        town.site.opens.append(Open(host.name, prefix, "endless redirect", _ENDLESS, 12, action))
    assert one.home is not None
    one.home.hrefs += [town.site.url(one.name, "/endless/0"), town.site.url(one.name, "/ping/0")]
