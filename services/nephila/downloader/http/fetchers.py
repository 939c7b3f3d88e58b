"""The table of fetchers. A fetcher is imported when it is chosen, so that a process pays for one of them only."""

from __future__ import annotations

import sys
from collections.abc import Callable

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import Fetcher
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.memory_budget import MemoryBudget


def make_fetcher(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None = None) -> Fetcher:
    """The fetcher that the settings name, with the budget of large bodies; raises `UsageError` for an unknown name."""
    try:
        make = FETCHERS[config.fetcher]
    except KeyError:
        raise UsageError(f"fetcher {config.fetcher!r}: known are {', '.join(FETCHERS)}") from None
    return make(config, clock, budget)


def _lean(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None) -> Fetcher:
    from nephila.downloader.http.lean import LeanFetcher

    return LeanFetcher(config, clock, budget)


def _aiohttp(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None) -> Fetcher:
    from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(config, clock, budget)


def _native(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None) -> Fetcher:
    try:
        from nephila.downloader.http.native import NativeFetcher
    except ImportError:
        raise UsageError("fetcher 'native': the native core is not built for this platform") from None
    return NativeFetcher(config, clock, budget)


def _auto(config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None) -> Fetcher:
    # The Proactor loop reads ahead into the buffer it was given; the lean fetcher shares one between all.
    return (_aiohttp if sys.platform == "win32" else _lean)(config, clock, budget)


FETCHERS: dict[str, Callable[[DownloaderConfig, Clock, MemoryBudget | None], Fetcher]] = {
    "auto": _auto,
    "lean": _lean,
    "aiohttp": _aiohttp,
    "native": _native,
}
