"""The table of fetchers. A fetcher is imported when it is chosen, so that a process pays for one of them only."""

from __future__ import annotations

from collections.abc import Callable

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import Fetcher
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.process.memory_budget import MemoryBudget
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.native import HAS_HTTP_CLIENT as HAS_NATIVE

Budget = MemoryBudget | None
Pages = ReadPages | None


def make_fetcher(
    config: HttpConfig,
    clock: Clock,
    budget: Budget = None,
    read_pages: Pages = None,
    processes: int = 1,
) -> Fetcher:
    """The fetcher that the settings name, with the budget of large bodies; raises `UsageError` for an unknown name.
    `read_pages`: of the parser in this process. `processes`: downloaders that share the cores."""
    try:
        make = FETCHERS[config.fetcher]
    except KeyError:
        raise UsageError(f"http.fetcher {config.fetcher!r}: known are {', '.join(FETCHERS)}") from None
    return make(config, clock, budget, read_pages, processes)


def _aiohttp(config: HttpConfig, clock: Clock, budget: Budget, pages: Pages, processes: int) -> Fetcher:
    from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(config, clock, budget)


def _native(config: HttpConfig, clock: Clock, budget: Budget, pages: Pages, processes: int) -> Fetcher:
    if not HAS_NATIVE:
        raise UsageError(
            "http.fetcher 'native': the native core of this installation has none; 'aiohttp' needs no core"
        )
    from nephila.downloader.http.native import NativeFetcher

    return NativeFetcher(config, clock, budget, pages, processes)


def _auto(config: HttpConfig, clock: Clock, budget: Budget, pages: Pages, processes: int) -> Fetcher:
    return (_native if HAS_NATIVE else _aiohttp)(config, clock, budget, pages, processes)


FETCHERS: dict[str, Callable[[HttpConfig, Clock, Budget, Pages, int], Fetcher]] = {
    "auto": _auto,
    "native": _native,
    "aiohttp": _aiohttp,
}
