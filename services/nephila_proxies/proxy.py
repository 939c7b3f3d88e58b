"""One proxy of the pool: its state, its score, and the requests that use it now. Only the pool changes it."""

from __future__ import annotations

from enum import Enum

from nephila_proxies.endpoint import Endpoint


class ProxyState(Enum):
    """Whether a proxy may be used."""

    CANDIDATE = "candidate"
    """Collected and not checked yet."""
    ALIVE = "alive"
    """In the ring."""
    EVICTED = "evicted"
    """Out of the ring until a check at `check_at` succeeds."""
    REFUSED = "refused"
    """It does not accept the credentials. Out until a list gives it others."""
    LIAR = "liar"
    """It has lied for several hosts. Out until `check_at`, regardless of the checks; then its trust starts as
    a new proxy's."""


CANDIDATE, ALIVE, EVICTED, REFUSED, LIAR = ProxyState

TRANSITIONS: dict[ProxyState, frozenset[ProxyState]] = {
    CANDIDATE: frozenset((ALIVE, EVICTED, REFUSED, LIAR)),
    ALIVE: frozenset((EVICTED, REFUSED, CANDIDATE, LIAR)),
    EVICTED: frozenset((ALIVE, REFUSED, CANDIDATE, LIAR)),
    REFUSED: frozenset((CANDIDATE, LIAR)),
    LIAR: frozenset((CANDIDATE,)),
}
"""A proxy with other credentials or another address is a candidate again."""


class ProxyFault(Enum):
    """Why a request through a proxy failed."""

    DEAD = "dead"
    """No connection to it, or it broke or refused the handshake."""
    SLOW = "slow"
    """A time limit passed while the response was awaited."""
    BROKEN = "broken"
    """The connection broke within the response."""
    TAMPERED = "tampered"
    """The certificate is not the server's, the answer is not HTTP, or a check returns another page."""
    BANNED = "banned"
    """The server blocks this proxy: 403, 429 or a block page."""
    REFUSED = "refused"
    """It does not accept the credentials (407)."""
    LIED = "lied"
    """Other proxies return another page."""
    NO_TUNNEL = "no_tunnel"
    """It refuses CONNECT to the port of the server; other ports and plain requests may work."""
    UNREACHABLE = "unreachable"
    """It reports that it cannot reach the server, or opens no tunnel in time; most often the server is the cause."""


PENALTY = {
    ProxyFault.DEAD: 0.4,
    ProxyFault.SLOW: 0.2,
    ProxyFault.BROKEN: 0.15,
    ProxyFault.TAMPERED: 1.0,
    ProxyFault.BANNED: 0.1,
    ProxyFault.REFUSED: 1.0,
    ProxyFault.LIED: 0.2,
    ProxyFault.NO_TUNNEL: 0.0,
    ProxyFault.UNREACHABLE: 0.02,
}
"""Part of the success rate that a fault takes."""
REWARD = 0.1
"""Part of what is missing to 1 that a success adds."""
NEW_SUCCESS = 0.8
EVICT_BELOW = 0.4
"""Two dead connections in a row, or six bans, evict a proxy that starts at `NEW_SUCCESS`."""
WEIGHT_OF_LAST = 0.2
"""Weight of the last response time in their mean."""
FORGIVE_AFTER = 50
"""Successes after which earlier evictions no longer lengthen the wait for a check."""
LIAR_HOSTS = 2
"""Hosts for which a proxy has lied from which none of its pages is trusted. Content that differs by country or session
makes single hosts look like lies."""
MAX_BANS = 100
"""Hosts that block a proxy; the oldest ban is forgotten first."""


class Proxy:
    """A proxy with what is known about it."""

    __slots__ = (
        "addresses",
        "agreed",
        "anonymity",
        "bans",
        "check_at",
        "country",
        "endpoint",
        "evictions",
        "https",
        "kind",
        "lies",
        "name",
        "no_tunnel",
        "provider",
        "response_s",
        "sources",
        "state",
        "success",
        "successes",
        "trusted_sources",
        "used",
    )

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.kind = endpoint.kind
        self.country = endpoint.country
        """Of its list, or found by the check."""
        self.provider = endpoint.provider
        """The operator of its network, as its list names it; empty: unknown."""
        self.sources: set[str] = set()
        """Lists that have it; a proxy without one leaves the pool."""
        self.trusted_sources: set[str] = set()
        """Those of them that the operator wrote. While there is one, no downloaded list describes the proxy."""
        self.state = CANDIDATE
        self.addresses: tuple[str, ...] = ()
        """Addresses to dial, checked by the egress guard."""
        self.anonymity = ""
        """transparent, anonymous or elite; empty: not known."""
        self.https = True
        """False: a check found that it opens no tunnels to port 443."""
        self.response_s = 1.0
        """Mean response time in seconds."""
        self.success = NEW_SUCCESS
        """Weighted share of requests that succeeded, from 0 to 1."""
        self.successes = 0
        """Since the last eviction."""
        self.evictions = 0
        self.check_at = 0.0
        """Monotonic instant of the next check."""
        self.agreed = 0
        """Pages that another proxy has confirmed, since the last lie."""
        self.lies: dict[str, float] = {}
        """Host → monotonic instant until which a lie for this host counts."""
        self.no_tunnel: dict[int, tuple[int, float]] = {}
        """Port → status by which it refuses CONNECT to this port, and the instant until which that counts."""
        self.used = 0
        """Requests that use it now."""
        self.bans: dict[str, float] = {}
        """Host → monotonic instant until which it blocks this proxy."""

    @property
    def quality(self) -> float:
        """Seconds per success; the ring begins with the lowest."""
        return self.response_s / max(self.success, 0.01) ** 2

    def is_banned(self, host: str, now: float) -> bool:
        """Whether a host blocks it, or it has lied for the host."""
        return (bool(self.bans) and self.bans.get(host, 0.0) > now) or (
            bool(self.lies) and self.lies.get(host, 0.0) > now
        )

    def refuses_tunnel(self, port: int, now: float) -> int:
        """Status by which it refuses CONNECT to a port; 0: it does not."""
        status, until = self.no_tunnel.get(port, (0, 0.0)) if self.no_tunnel else (0, 0.0)
        return status if until > now else 0
