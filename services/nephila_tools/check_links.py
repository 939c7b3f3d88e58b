"""One request to each of many URLs, to know whether it can be fetched: nothing is stored or parsed.

A response is stopped after its headers. Hosts are checked beside each other, the URLs of a host one after the other
with its delay; robots.txt applies. Redirects are followed, `MAX_HOPS` at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.fetch_page import MAX_HOPS, SingleFetcher
from nephila.kernel.messages import FetchResult
from nephila.kernel.process.process_setup import run_loop
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.config import replaced
from nephila.kernel.runtime.errors import UserError
from nephila.native import UrlError, parse_url

HOSTS = 32
"""Hosts at once."""
NO_TYPE = ("x-none/x-none",)
"""No response has this type, so each 2xx ends after its headers."""
OnResult = Callable[[str, int, str], None]
"""URL, status (0: none), reason (empty: not broken; robots: not requested)."""


def check_links(
    urls: Iterable[str], config: DownloaderConfig, delay_s: float, on_result: OnResult, *, obey_robots: bool = True
) -> None:
    """Request each URL once and report it as soon as its result is known."""
    hosts: dict[str, list[str]] = {}
    for url in dict.fromkeys(urls):
        try:
            hosts.setdefault(parse_url(url).host_key, []).append(url)
        except UrlError:
            on_result(url, 0, Reason.BAD_URL)
    settings = replaced(
        config, {"http.accept": NO_TYPE, "limits.per_address": 4, "limits.address_gap_s": min(delay_s, 0.25)}
    )
    run_loop(_check(hosts, settings, delay_s, on_result, obey_robots))


async def _check(
    hosts: dict[str, list[str]], config: DownloaderConfig, delay_s: float, on_result: OnResult, obey_robots: bool
) -> None:
    slots = asyncio.Semaphore(HOSTS)
    async with SingleFetcher(config) as fetcher:

        async def host(urls: list[str]) -> None:
            async with slots:
                for number, url in enumerate(urls):
                    if number:
                        await asyncio.sleep(delay_s)
                    on_result(url, *await _check_one(fetcher, url, obey_robots))

        await asyncio.gather(*map(host, hosts.values()))


async def _check_one(fetcher: SingleFetcher, url: str, obey_robots: bool) -> tuple[int, str]:
    for _ in range(MAX_HOPS + 1):
        try:
            if obey_robots and (refusal := await fetcher.refusal(url)):
                return 0, refusal
            outcome, _page = await fetcher.fetch(url, any_type=False)
        except UserError:
            return 0, Reason.TIMEOUT
        if outcome.result is FetchResult.REDIRECT and outcome.location:
            url = outcome.location
            continue
        works = outcome.result in (FetchResult.FETCHED, FetchResult.CONTENT_TYPE)
        return outcome.status, "" if works else outcome.reason or "unknown"
    return 0, Reason.TOO_MANY_REDIRECTS
