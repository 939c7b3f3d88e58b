"""The router of the settings."""

from __future__ import annotations

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.contract import Fetcher
from nephila.downloader.routing.router import DirectRouter, Router
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.extensions import extension


def make_router(config: DownloaderConfig, clock: Clock, resolver: GuardedResolver, fetcher: Fetcher) -> Router:
    """The router: direct where no proxies are configured. Raises `UsageError` for settings that make no sense."""
    if not config.proxies:
        return DirectRouter(resolver)
    router: Router = extension("proxies")(config, clock, resolver, fetcher)
    return router
