"""The table of fetchers. A fetcher is imported when it is chosen, so that a process pays for one of them only."""

from __future__ import annotations

from collections.abc import Callable

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import Fetcher
from nephila.kernel.read_pages import ReadPages
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.memory_budget import MemoryBudget
from nephila.native import HAS_HTTP_CLIENT as HAS_NATIVE


def make_fetcher(
    config: DownloaderConfig,
    clock: Clock,
    budget: MemoryBudget | None = None,
    read_pages: ReadPages | None = None,
) -> Fetcher:
    """The fetcher that the settings name, with the budget of large bodies; raises `UsageError` for an unknown name.
    `read_pages`: of the parser in this process."""
    try:
        make = FETCHERS[config.fetcher]
    except KeyError:
        raise UsageError(f"fetcher {config.fetcher!r}: known are {', '.join(FETCHERS)}") from None
    return make(config, clock, budget, read_pages)


def _aiohttp(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None, pages: ReadPages | None) -> Fetcher:
    from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(config, clock, budget)


def _native(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None, pages: ReadPages | None) -> Fetcher:
    if not HAS_NATIVE:
        raise UsageError("fetcher 'native': the native core of this installation has none; 'aiohttp' needs no core")
    from nephila.downloader.http.native import NativeFetcher

    return NativeFetcher(config, clock, budget, pages)


def _auto(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None, pages: ReadPages | None) -> Fetcher:
    return (_native if HAS_NATIVE else _aiohttp)(config, clock, budget, pages)


FETCHERS: dict[str, Callable[[DownloaderConfig, Clock, MemoryBudget | None, ReadPages | None], Fetcher]] = {
    "auto": _auto,
    "native": _native,
    "aiohttp": _aiohttp,
}
