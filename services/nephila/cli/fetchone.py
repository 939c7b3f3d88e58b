"""One page fetched by hand, as a person with a browser would: through the downloader with all its guards and limits.

robots.txt is not asked: nobody crawls, one page is looked at. Redirects are followed, MAX_HOPS at most.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nephila.cli.crawl import seed_url
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build
from nephila.kernel.bus.base import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.clock import SystemClock
from nephila.kernel.errors import UserError
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult, Page
from nephila.kernel.topics import OUTCOMES, PAGES, REQUESTS
from nephila.native import parse_url
from nephila.parser.rules.pages import Stored
from nephila.process import run_loop

MAX_HOPS: Final = 5
WAIT_S: Final = 60.0


def fetch_one(url: str, *, allow_private: bool, host_map: list[str]) -> Stored:
    """The page at a URL. Raises `UserError` in one line that says why there is none."""
    config = DownloaderConfig(allow_private=allow_private, host_map=tuple(host_map), per_address=0, address_gap_s=0.0)
    return run_loop(_fetch(config, seed_url(url)))


async def _fetch(config: DownloaderConfig, url: str) -> Stored:
    clock = SystemClock()
    bus = LocalBus(clock)
    pages: list[Page] = []
    outcomes: asyncio.Queue[FetchOutcome] = asyncio.Queue()

    def on_page(delivery: Delivery) -> None:
        pages.append(delivery.message)
        delivery.ack()

    def on_outcome(delivery: Delivery) -> None:
        outcomes.put_nowait(delivery.message)
        delivery.ack()

    bus.subscribe(PAGES, "one", on_page, credits=10)
    bus.subscribe(OUTCOMES, "one", on_outcome, credits=10)
    downloader = build(config, bus, clock)
    await downloader.start()
    try:
        for number in range(1, MAX_HOPS + 2):
            parts = parse_url(url)
            now = clock.now()
            request = FetchRequest(
                "try", parts.fingerprint, url, parts.host_key, fetch_no=number, attempt=1, start_by=now + WAIT_S,
                lease_until=now + 2 * WAIT_S, seed=True,
            )  # fmt: skip
            bus.publish(REQUESTS, 0, request)
            outcome = await asyncio.wait_for(outcomes.get(), 2 * WAIT_S)
            if outcome.result is FetchResult.REDIRECT and outcome.location:
                url = parse_url(outcome.location, url).href
                continue
            if not pages:
                raise UserError(f"{url}: {outcome.reason or outcome.result.name.lower()} {outcome.detail}".strip())
            page = pages[-1]
            return Stored(page.url, page.content_type, page.charset, bytes(page.body), page.url, page.fetched_at)
    except TimeoutError:
        raise UserError(f"{url}: no answer in {2 * WAIT_S:g} s") from None
    finally:
        await downloader.drain(0.0)
        await downloader.close()
    raise UserError(f"{url}: more than {MAX_HOPS} redirects")
