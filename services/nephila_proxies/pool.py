"""The pool of proxies: merges lists, keeps scores, evicts and admits, and picks from the ring of a selector. Pure.

            collected          check passed            too many faults, check failed
    (list) ----------> candidate ----------> alive ---------------------------------> evicted
                                               ^-------- check at check_at passed -------|

A proxy that refuses the credentials is out until a list has others, a liar for `LIE_S`. Instants are monotonic seconds.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec
from nephila.kernel.runtime.waits import Backoff

from nephila_proxies.endpoint import Endpoint
from nephila_proxies.proxy import (
    ALIVE,
    CANDIDATE,
    EVICT_BELOW,
    EVICTED,
    FORGIVE_AFTER,
    LIAR,
    LIAR_HOSTS,
    MAX_BANS,
    NEW_SUCCESS,
    PENALTY,
    REFUSED,
    REWARD,
    TRANSITIONS,
    WEIGHT_OF_LAST,
    Proxy,
    ProxyFault,
    ProxyState,
)
from nephila_proxies.ring import Ring
from nephila_proxies.selector import Selector

RECHECK = Backoff(60.0, 3600.0)
"""Wait of an evicted proxy for its check; it doubles with each eviction."""
BAN_S = 900.0
"""Time for which a proxy is not used for a host that has blocked it."""
LIE_S = 86_400.0
"""Time for which a lie counts, and for which a liar is out."""
NO_TUNNEL_S = 3600.0
"""Time for which a refused CONNECT counts; then the port is tried once more."""
MAX_PORTS = 50
"""Ports of refused CONNECTs per proxy; the oldest is forgotten first."""
SORT_S = 5.0
"""Between two sorts of a ring: sorting 10^4 proxies takes some milliseconds."""
MAX_SELECTORS = 64
"""Rings at a time; the one used first is dropped first."""
MAX_PROXIES = 20_000
"""Over all lists: the ring is sorted and each proxy is checked, so more cost more than they give."""


class ProxyNeed(NamedTuple):
    """What a request needs of a proxy."""

    host: str
    is_https: bool
    port: int = 0
    """Port of the server."""
    by_tunnel: bool = True
    """CONNECT also through an http proxy, which could receive the whole URL."""

    def tunnel_port(self, proxy: Proxy) -> int:
        """The port that the proxy has to open by CONNECT; 0: none."""
        if proxy.endpoint.scheme == "socks5":
            return 0
        return self.port if self.by_tunnel or self.is_https or proxy.endpoint.scheme == "https" else 0


class ProxyPool:
    """All proxies by name. `pick` is O(1 + proxies passed over), and O(n log n) every `SORT_S` after a change."""

    def __init__(self, slots: int = 4, check_s: float = 300.0, anonymous_only: bool = False) -> None:
        """`slots`: requests at once per proxy. `check_s`: between two checks of a proxy that works."""
        self._slots = slots
        self._check_s = check_s
        self._anonymous_only = anonymous_only
        self._proxies: dict[str, Proxy] = {}
        self._rings: dict[Selector, Ring[Proxy]] = {}
        self._sorted_at: dict[Selector, float] = {}
        self._version = 0
        self._sorted_version: dict[Selector, int] = {}
        self._admitted = 0
        """Number of times that a proxy came alive; an empty ring is sorted again only after another one."""
        self._sorted_admitted: dict[Selector, int] = {}
        self.evicted = 0
        """Evictions so far."""
        self.readmitted = 0
        self.liars = 0
        """Proxies that became liars so far."""

    def __len__(self) -> int:
        return len(self._proxies)

    def proxies(self) -> Collection[Proxy]:
        return self._proxies.values()

    def counts(self) -> Counter[ProxyState]:
        """Number of proxies by state. O(n)."""
        return Counter(proxy.state for proxy in self._proxies.values())

    # ---- lists

    def replace(self, source: str, endpoints: Iterable[Endpoint]) -> int:
        """Set the proxies that a source has now. Those that no source has any more leave the pool. Returns how many
        are not taken, because the pool has `MAX_PROXIES`. O(n)."""
        by_name: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            by_name[endpoint.name] = endpoint
        refused = 0
        for proxy in [proxy for proxy in self._proxies.values() if source in proxy.sources]:
            if proxy.name not in by_name:
                proxy.sources.discard(source)
                self._distrust(proxy, source)
                if not proxy.sources:
                    del self._proxies[proxy.name]
                    self._move(proxy, CANDIDATE)
        for name, endpoint in by_name.items():
            pooled = self._proxies.get(name)
            if pooled is None:
                if len(self._proxies) >= MAX_PROXIES:
                    refused += 1
                    continue
                pooled = self._proxies[name] = Proxy(endpoint)
            elif pooled.endpoint != endpoint and (endpoint.trusted or not pooled.trusted_sources - {source}):
                self._renew(pooled, endpoint)
            pooled.sources.add(source)
            if endpoint.trusted:
                pooled.trusted_sources.add(source)
        self._version += 1
        return refused

    def _distrust(self, proxy: Proxy, source: str) -> None:
        """A list of the operator has a proxy no longer: it is checked again, and a private address is refused."""
        proxy.trusted_sources.discard(source)
        if proxy.endpoint.trusted and not proxy.trusted_sources:
            proxy.endpoint = msgspec.structs.replace(proxy.endpoint, trusted=False)
            self._check_again(proxy)

    def _renew(self, proxy: Proxy, endpoint: Endpoint) -> None:
        """A list describes a known proxy in another way."""
        has_other_password = proxy.endpoint.password != endpoint.password
        proxy.endpoint = endpoint
        proxy.kind = endpoint.kind or proxy.kind
        proxy.country = endpoint.country or proxy.country
        proxy.provider = endpoint.provider or proxy.provider
        if has_other_password:
            self._check_again(proxy)

    def _check_again(self, proxy: Proxy) -> None:
        """A check comes before the next use. Other credentials make no liar honest."""
        if proxy.state is not LIAR:
            self._move(proxy, CANDIDATE)
            proxy.check_at = 0.0

    def restore(self, proxy: Proxy) -> None:
        """Add a proxy of a stored pool."""
        self._proxies.setdefault(proxy.name, proxy)
        self._admitted += proxy.state is ALIVE
        self._version += 1

    def restore_trust(self, stored: Proxy) -> None:
        """Take over what a stored pool knows about the honesty of a proxy."""
        proxy = self._proxies.get(stored.name)
        if proxy is None or proxy is stored:
            return
        proxy.agreed, proxy.lies = stored.agreed, stored.lies
        if stored.state is LIAR:
            self._move(proxy, LIAR)
            proxy.check_at = stored.check_at

    # ---- use

    def pick(self, selector: Selector, need: ProxyNeed, avoid: Collection[str], now: float) -> Proxy | None:
        """The next proxy for a request with a free slot; None when there is none. `start_use` takes the slot."""
        return self._ring(selector, now).pick(need.host, lambda proxy: self._serves(proxy, need, avoid, now))

    def has_alive(self, selector: Selector, need: ProxyNeed, avoid: Collection[str], now: float) -> bool:
        """Whether a proxy could serve a request if all slots were free. O(n)."""
        return any(self.serves(proxy, selector, need, avoid, now) for proxy in self._proxies.values())

    def serves(self, proxy: Proxy, selector: Selector, need: ProxyNeed, avoid: Collection[str], now: float) -> bool:
        """Whether a proxy could serve a request if it had a free slot."""
        return self._serves(proxy, need, avoid, now) and self.is_in_ring(proxy, selector)

    def refusals(self, selector: Selector, need: ProxyNeed, now: float) -> Counter[int]:
        """Statuses by which the working proxies of a selector refuse CONNECT to the port of a request, with 0 for
        those that do not. O(n)."""
        return Counter(
            proxy.refuses_tunnel(need.tunnel_port(proxy), now)
            for proxy in self._proxies.values()
            if self.is_in_ring(proxy, selector)
        )

    def has_candidate(self, selector: Selector) -> bool:
        """Whether a proxy of a selector has not been checked yet. O(n)."""
        return any(
            proxy.state is CANDIDATE and selector.accepts(proxy.kind, proxy.country) for proxy in self._proxies.values()
        )

    @staticmethod
    def _serves(proxy: Proxy, need: ProxyNeed, avoid: Collection[str], now: float) -> bool:
        return (
            proxy.state is ALIVE
            and (proxy.https or not need.is_https)
            and not (proxy.no_tunnel and proxy.refuses_tunnel(need.tunnel_port(proxy), now))
            and not proxy.is_banned(need.host, now)
            and proxy.name not in avoid
        )

    def find(self, name: str) -> Proxy | None:
        """The proxy of a name."""
        return self._proxies.get(name)

    def start_use(self, proxy: Proxy) -> None:
        """Take a slot of a proxy."""
        proxy.used += 1
        if proxy.used == self._slots:
            for ring in self._rings.values():
                ring.set_free(proxy, False)

    def end_use(self, proxy: Proxy) -> None:
        """Free a slot."""
        proxy.used -= 1
        if proxy.used == self._slots - 1:
            for ring in self._rings.values():
                ring.set_free(proxy, True)

    def has_slot(self, proxy: Proxy) -> bool:
        """Whether a request may start through it."""
        return proxy.used < self._slots

    def _ring(self, selector: Selector, now: float) -> Ring[Proxy]:
        ring = self._rings.get(selector)
        if ring is None:
            if len(self._rings) >= MAX_SELECTORS:
                oldest = next(iter(self._rings))
                del self._rings[oldest], self._sorted_at[oldest]
                del self._sorted_version[oldest], self._sorted_admitted[oldest]
            ring = self._rings[selector] = Ring()
            self._sorted_version[selector] = self._sorted_admitted[selector] = -1
            self._sorted_at[selector] = -SORT_S
        version, at = self._sorted_version[selector], self._sorted_at[selector]
        may_fill = not len(ring) and self._sorted_admitted[selector] != self._admitted
        if version != self._version and (may_fill or now - at >= SORT_S):
            members = [proxy for proxy in self._proxies.values() if self.is_in_ring(proxy, selector)]
            ring.replace(ordered(members), self.has_slot)
            self._sorted_version[selector], self._sorted_at[selector] = self._version, now
            self._sorted_admitted[selector] = self._admitted
        return ring

    def is_in_ring(self, proxy: Proxy, selector: Selector) -> bool:
        """Whether a proxy works and a selector means it."""
        if proxy.state is not ALIVE or not selector.accepts(proxy.kind, proxy.country):
            return False
        return not self._anonymous_only or proxy.anonymity != "transparent"

    # ---- results

    def succeeded(self, proxy: Proxy, took_s: float) -> None:
        """A request through a proxy got its answer."""
        proxy.success += REWARD * (1.0 - proxy.success)
        proxy.response_s += WEIGHT_OF_LAST * (took_s - proxy.response_s)
        proxy.successes += 1
        if proxy.successes >= FORGIVE_AFTER:
            proxy.evictions = 0
        self._version += 1

    def failed(self, proxy: Proxy, fault: ProxyFault, host: str, now: float) -> None:
        """A request through a proxy failed; too many failures evict it."""
        proxy.success *= 1.0 - PENALTY[fault]
        self._version += 1
        if fault is ProxyFault.BANNED:
            proxy.bans[host] = now + BAN_S
            if len(proxy.bans) > MAX_BANS:
                del proxy.bans[next(iter(proxy.bans))]
        if fault is ProxyFault.REFUSED:
            if proxy.state is not LIAR:
                self._move(proxy, REFUSED)
        elif proxy.state is ALIVE and proxy.success < EVICT_BELOW:
            self._evict(proxy, now)

    def refused_tunnel(self, proxy: Proxy, port: int, status: int, now: float) -> None:
        """A proxy refuses CONNECT to a port: it is not used for this port until `NO_TUNNEL_S` later."""
        proxy.no_tunnel.pop(port, None)
        proxy.no_tunnel[port] = status, now + NO_TUNNEL_S
        if len(proxy.no_tunnel) > MAX_PORTS:
            del proxy.no_tunnel[next(iter(proxy.no_tunnel))]

    def confirmed(self, proxy: Proxy) -> None:
        """Another proxy has returned the same page."""
        proxy.agreed += 1

    def lied(self, proxy: Proxy, host: str, now: float) -> bool:
        """A proxy returned another page than others for a host: it is not used for this host. True: it is a liar now,
        out for all hosts."""
        proxy.lies = {name: until for name, until in proxy.lies.items() if until > now}
        proxy.lies[host] = now + LIE_S
        proxy.agreed = 0
        self._version += 1
        if len(proxy.lies) < LIAR_HOSTS or proxy.state is LIAR or proxy.name not in self._proxies:
            return False
        self.liars += 1
        self._move(proxy, LIAR)
        proxy.check_at = now + LIE_S
        return True

    def acquitted(self, proxy: Proxy, host: str) -> None:
        """The witnesses of a lie for a host have lied themselves: it does not count."""
        if proxy.lies.pop(host, None) is None:
            return
        if proxy.state is LIAR and len(proxy.lies) < LIAR_HOSTS:
            self.liars -= 1
            self._move(proxy, CANDIDATE)
            proxy.check_at = 0.0
        self._version += 1

    def check_passed(self, proxy: Proxy, took_s: float, now: float) -> None:
        """A check succeeded: the proxy enters the ring, or stays there."""
        if proxy.state in (REFUSED, LIAR) or proxy.name not in self._proxies:
            return
        if proxy.state is EVICTED:
            proxy.success, proxy.successes = NEW_SUCCESS, 0
            self.readmitted += 1
        if proxy.state is CANDIDATE:
            proxy.response_s = took_s
        else:
            proxy.response_s += WEIGHT_OF_LAST * (took_s - proxy.response_s)
        self._move(proxy, ALIVE)
        proxy.check_at = now + self._check_s

    def check_failed(self, proxy: Proxy, now: float) -> None:
        """A check failed: the proxy is out until the next one."""
        if proxy.state in (REFUSED, LIAR) or proxy.name not in self._proxies:
            return
        if proxy.state is EVICTED:
            self._postpone(proxy, now)
        else:
            self._evict(proxy, now)

    def due(self, now: float) -> list[Proxy]:
        """Proxies whose check is due, the longest overdue first; a liar whose time is over is a candidate again.
        O(n log n)."""
        due = [proxy for proxy in self._proxies.values() if proxy.state is not REFUSED and proxy.check_at <= now]
        for proxy in due:
            if proxy.state is LIAR:
                proxy.lies.clear()
                proxy.agreed = 0
                self._move(proxy, CANDIDATE)
        return sorted(due, key=lambda proxy: proxy.check_at)

    def _evict(self, proxy: Proxy, now: float) -> None:
        if proxy.state is ALIVE:
            self.evicted += 1
        self._move(proxy, EVICTED)
        self._postpone(proxy, now)

    def _postpone(self, proxy: Proxy, now: float) -> None:
        proxy.evictions = min(proxy.evictions + 1, 10)
        proxy.check_at = now + RECHECK.after(proxy.evictions)

    def _move(self, proxy: Proxy, state: ProxyState) -> None:
        if proxy.state is not state:
            assert state in TRANSITIONS[proxy.state], f"{proxy.state} to {state}"
            proxy.state = state
            self._version += 1
            self._admitted += state is ALIVE

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken. O(n)."""
        for name, proxy in self._proxies.items():
            assert proxy.name == name == proxy.endpoint.name
            assert proxy.sources, f"{name} is in no list"
            assert proxy.used >= 0, f"{name} is used {proxy.used} times"
            assert 0.0 <= proxy.success <= 1.0
            assert len(proxy.bans) <= MAX_BANS
            assert proxy.state is not ALIVE or proxy.addresses, f"{name} is alive without an address"
        for ring in self._rings.values():
            ring.check()


def ordered(proxies: Iterable[Proxy]) -> list[Proxy]:
    """The proxies by response time and provider, best first. Among proxies within a factor of two the providers take
    turns, so that the requests of a domain do not arrive from one network. A proxy without a provider counts as one of
    its own."""
    turns: Counter[tuple[int, str]] = Counter()
    keys: dict[Proxy, tuple[int, int, float]] = {}
    for proxy in sorted(proxies, key=lambda proxy: proxy.quality):
        pace, turn = math.frexp(proxy.quality)[1], 0
        if proxy.provider:
            turn = turns[pace, proxy.provider]
            turns[pace, proxy.provider] += 1
        keys[proxy] = pace, turn, proxy.quality
    return sorted(keys, key=keys.__getitem__)
