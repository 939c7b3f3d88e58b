"""Settings of proxies. The core reads a few of them, `nephila_proxies` the others."""

import msgspec

from nephila.kernel.runtime.config import Positive


class ProxyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Proxies, their checks and their choice. Needs the package nephila_proxies."""

    sources: tuple[str, ...] = ()
    """Sources of proxies: "http://user:password@host:port class=datacenter country=de" (or https://, socks5://),
    "file PATH", "list URL", "json URL path=data.items token=FILE"; see docs/proxies.md. Empty: requests are direct."""

    default: str = "any"
    """Proxies of jobs that name none: any, direct (none), a class as residential, a country as /de, or residential/de.
    Also of robots.txt, which belongs to no job."""

    no_proxy: tuple[str, ...] = ()
    """Hosts that never use a proxy: exact names, and *.example.org for hosts below a name."""

    slots: Positive = 4
    """Simultaneous requests through one proxy."""

    names: str = "local"
    """Where names are resolved: "local" (here; the proxy receives the checked address), "proxy" (there; here as well,
    for the egress guard and the pace), "proxy_only" (names that are unknown here are allowed; see docs/proxies.md)."""

    check_url: str = ""
    """A page that echoes the request, for checks: reachability, response time, anonymity, lies. Empty: only the
    connection to a proxy is tested."""

    check_https_url: str = ""
    """The same over https; a proxy that fails it serves only http. Empty: not tested."""

    check_s: float = 300.0
    """Time between two checks of a proxy that works; an evicted one is checked after 60 s, then after twice as long."""

    checks: Positive = 20
    """Simultaneous checks: they share the connection of the crawl."""

    collect_s: float = 60.0
    """Time between two reads of a source. Files are read only when they have changed."""

    pool: str = ""
    """File that stores proxies and their scores over a restart, readable for its owner only. Empty: none."""

    anonymous: bool = False
    """Use no proxy that shows this program's address to the server. Needs `check_url`."""

    second_share: float = 0.05
    """Share of the plain http pages of a proxy that are fetched once more through another proxy and compared: proxies
    that lie are found, and their pages fetched again. The first two pages of each proxy always are. 0: none."""

    country_header: str = ""
    """Header of the check's response with the country of the proxy, such as cf-ipcountry."""

    countries: str = ""
    """File of address ranges with their country: "first,last,DE" or "network,DE"."""

    give_up_s: float = 600.0
    """Time without a working proxy after which requests fail with the reason proxy; before, their hosts wait."""
