"""A route to a server: the endpoint to dial, kept apart from the server whose pace counts. A value.

On a direct route both are the same. Through a proxy the dialled endpoint is the proxy and `pace_address` stays the
server's. The pipeline and the fetchers use only what is in the `Route`.
"""

from __future__ import annotations

import msgspec

from nephila.downloader.http.target import TargetUrl


class ProxyHop(msgspec.Struct, frozen=True, gc=False):
    """The proxy of a route, and what it receives about the server."""

    name: str
    """Scheme, host and port of the proxy, and its user: the identity of a connection through it. Without password."""
    scheme: str
    """\"http", "https" or "socks5"."""
    user: str
    password: str
    host: str
    """What the proxy connects to: an address that passed the egress guard, or the name of the server."""
    port: int
    """Port of the server."""
    tunnel: bool = True
    """CONNECT or SOCKS5. False: the request itself goes to the proxy, with the whole URL in its first line."""
    tls_name: str = ""
    """Name in the certificate of an https proxy; empty: no TLS to the proxy."""


class Route(msgspec.Struct, frozen=True, gc=False):
    """How to reach the server of one URL."""

    addresses: tuple[str, ...]
    """IP addresses to dial, in order of preference. Each one passed the egress guard."""
    port: int
    """TCP port to dial."""
    tls_name: str
    """Server name of the TLS handshake (SNI and certificate check); empty: no TLS."""
    pace_address: str
    """IP address of the server whose count and gap apply to this fetch."""
    proxy: ProxyHop | None = None
    """None: a direct route. Otherwise `addresses` and `port` are those of the proxy."""


NO_ROUTE = Route((), 0, "", "")
"""The route of a request whose name is not resolved yet."""


def direct_route(target: TargetUrl, addresses: tuple[str, ...], port: int) -> Route:
    """The route without a proxy. `addresses` is not empty."""
    tls_name = target.dial_host.rstrip(".") if target.scheme == "https" else ""
    return Route(addresses, port, tls_name, addresses[0])


def proxied(route: Route, addresses: tuple[str, ...], port: int, hop: ProxyHop) -> Route:
    """A direct route led through a proxy with these addresses and this port."""
    return Route(addresses, port, route.tls_name, route.pace_address, hop)


def prefer_counted_address(route: Route, counted: str) -> Route:
    """The same route with the address that the scheduler counted the fetch on first.

    The order of the addresses of a name carries no meaning, and the fetch has its turn on the counted one.
    """
    addresses = route.addresses
    if counted not in addresses[1:] or route.proxy is not None:
        return route
    reordered = (counted, *(address for address in addresses if address != counted))
    return msgspec.structs.replace(route, addresses=reordered, pace_address=counted)
