"""All fetchers, for tests that hold for each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import Fetcher
from nephila.downloader.http.native import NativeFetcher
from nephila.kernel.runtime.clock import SystemClock

MakeFetcher = Callable[..., Fetcher]


def settings(**changes: object) -> HttpConfig:
    """A configuration for tests: everything may be dialled, time limits that no good case meets, connections that are
    used again at once."""
    return HttpConfig(**{"tls_verify": False, "rest_s": 0.0, **changes})  # type: ignore[arg-type]


@pytest.fixture(params=[NativeFetcher, AiohttpFetcher])
async def make_fetcher(request: pytest.FixtureRequest) -> AsyncIterator[MakeFetcher]:
    """Builds the implementation under test and closes it."""
    made: list[Fetcher] = []

    def build(**changes: object) -> Fetcher:
        made.append(request.param(settings(**changes), SystemClock()))
        return made[-1]

    yield build
    for fetcher in made:
        await fetcher.close()
