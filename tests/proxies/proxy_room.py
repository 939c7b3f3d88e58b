"""The downloader of one test, with proxies that work."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.routing.router import DirectRouter
from nephila_proxies.endpoint import parse_endpoint
from nephila_proxies.pool import ProxyPool
from nephila_proxies.proxy_router import ProxyRouter
from nephila_proxies.second_fetches import SecondFetches
from nephila_proxies.selection import ProxySelection

from tests.downloader.downloader_room import Room


class NoKeeper:
    """The pool does not change in the background."""

    async def start(self) -> None:
        """See `ProxyKeeper`."""

    async def close(self) -> None:
        """See `ProxyKeeper`."""


def add_proxies(pool: ProxyPool, lines: Sequence[str], now: float) -> None:
    """Proxies that have passed a check, best first."""
    endpoints = [parse_endpoint(line) for line in lines]
    pool.replace("test", endpoints)
    for number, endpoint in enumerate(endpoints):
        proxy = pool.find(endpoint.name)
        assert proxy is not None
        proxy.addresses = ("203.0.113.1",)
        pool.check_passed(proxy, 0.1 * (number + 1), now)


class ProxyRoom(Room):
    """A room whose downloader uses proxies. Pages that came through them are compared only on request."""

    def __init__(self, coordination: Coordination | None = None, proxies: Sequence[str] = (), **settings: Any) -> None:
        """`proxies`: lines of proxies that work, best first; without one no request uses one."""
        self._lines = proxies
        super().__init__(coordination, **{"proxies__second_share": 0.0, **settings})

    def _router(self, config: DownloaderConfig, resolver: GuardedResolver) -> DirectRouter:
        self.pool = ProxyPool(config.proxies.slots)
        self.selection = ProxySelection(
            self.pool,
            self.clock,
            default=config.proxies.default,
            no_proxy=config.proxies.no_proxy,
            names=config.proxies.names,
            give_up_s=config.proxies.give_up_s,
            second_fetches=SecondFetches(config.proxies.second_share, random.Random(1)),
            trusts_tls=config.http.tls_verify,
        )
        if not self._lines:
            return DirectRouter(resolver)
        add_proxies(self.pool, self._lines, self.clock.monotonic())
        return ProxyRouter(resolver, self.selection, NoKeeper())  # type: ignore[arg-type]
