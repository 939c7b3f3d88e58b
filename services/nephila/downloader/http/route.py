"""A route to a server: the endpoint to dial, kept apart from the server whose pace counts. A value.

Today every route is direct: both are the same. Behind a proxy the dialled endpoint is the proxy and `pace_address`
stays the server's. The pipeline and the fetchers use only what is in the `Route`.
"""

from __future__ import annotations

import msgspec

from nephila.downloader.http.target import Target


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
    tunnel: bool = False
    """Whether the connection leads through a proxy by CONNECT. A direct route has none."""


NO_ROUTE = Route((), 0, "", "")
"""The route of a request whose name is not resolved yet."""


def direct_route(target: Target, addresses: tuple[str, ...], port: int) -> Route:
    """The route without a proxy. `addresses` is not empty."""
    tls_name = target.dial_host.rstrip(".") if target.scheme == "https" else ""
    return Route(addresses, port, tls_name, addresses[0])


def prefer_counted_address(route: Route, counted: str) -> Route:
    """The same route with the address that the scheduler counted the fetch on first.

    The order of the addresses of a name carries no meaning, and the fetch has its turn on the counted one.
    """
    addresses = route.addresses
    if counted not in addresses[1:] or route.tunnel:
        return route
    reordered = (counted, *(address for address in addresses if address != counted))
    return msgspec.structs.replace(route, addresses=reordered, pace_address=counted)
