"""One page fetched by hand, as a person with a browser would: through the downloader with all its guards and limits.

robots.txt is not asked: nobody crawls, one page is looked at. Redirects are followed, MAX_HOPS at most.
"""

from __future__ import annotations

import asyncio
from typing import Final, Self

from nephila.cli.crawl.command import seed_url
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult, Page
from nephila.kernel.net.robots import policy_for
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import OUTCOMES, PAGES, REQUESTS
from nephila.native import parse_url
from nephila.programs.process_setup import run_loop
from nephila.rulekit.stored_pages import StoredPage

MAX_HOPS: Final = 5
WAIT_S: Final = 60.0


def fetch_one(url: str, *, allow_private: bool, host_map: list[str]) -> StoredPage:
    """The page at a URL. Raises `UserError` in one line that says why there is none."""
    config = DownloaderConfig(allow_private=allow_private, host_map=tuple(host_map), per_address=0, address_gap_s=0.0)
    return run_loop(_fetch(config, seed_url(url)))


def fetch_robots(url: str, *, allow_private: bool, host_map: list[str]) -> tuple[str, bytes, str]:
    """The robots.txt that holds for a URL: its address, its bytes, and what it means: rules, or that everything is
    allowed or denied (`kernel.robots.policy_for`). Raises `UserError` when the host cannot be reached."""
    config = DownloaderConfig(allow_private=allow_private, host_map=tuple(host_map), per_address=0, address_gap_s=0.0)
    parts = parse_url(seed_url(url))
    address = f"{parts.scheme}://{parts.host_key}/robots.txt"

    async def ask() -> FetchOutcome:
        async with _Asker(config) as asker:
            outcome, _ = await asker.ask(address, 1, FetchKind.ROBOTS)
            return outcome

    outcome = run_loop(ask())
    if not outcome.status:
        raise UserError(f"{address}: {outcome.reason or outcome.result.name.lower()} {outcome.detail}".strip())
    policy = policy_for(outcome.status, outcome.reason)
    return address, bytes(outcome.body) if policy == "rules" else b"", f"{policy}, status {outcome.status}"


class _Asker:
    """A downloader that is asked for one URL after the other."""

    def __init__(self, config: DownloaderConfig) -> None:
        self._clock = SystemClock()
        self._bus = LocalBus(self._clock)
        self._pages: list[Page] = []
        self._outcomes: asyncio.Queue[FetchOutcome] = asyncio.Queue()
        self._bus.subscribe(PAGES, "one", self._on_page, credits=10)
        self._bus.subscribe(OUTCOMES, "one", self._on_outcome, credits=10)
        self._downloader = build(config, self._bus, self._clock)

    def _on_page(self, delivery: Delivery) -> None:
        self._pages.append(delivery.message)
        delivery.ack()

    def _on_outcome(self, delivery: Delivery) -> None:
        self._outcomes.put_nowait(delivery.message)
        delivery.ack()

    async def __aenter__(self) -> Self:
        await self._downloader.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._downloader.drain(0.0)
        await self._downloader.close()

    async def ask(
        self, url: str, number: int, kind: FetchKind = FetchKind.UNSPECIFIED
    ) -> tuple[FetchOutcome, Page | None]:
        """How the fetch ended, and its page. Raises `UserError` when nothing is heard."""
        parts = parse_url(url)
        now = self._clock.now()
        request = FetchRequest(
            "try", parts.fingerprint, url, parts.host_key, kind, fetch_no=number, attempt=1, start_by=now + WAIT_S,
            lease_until=now + 2 * WAIT_S, seed=True,
        )  # fmt: skip
        self._bus.publish(REQUESTS, 0, request)
        try:
            outcome = await asyncio.wait_for(self._outcomes.get(), 2 * WAIT_S)
        except TimeoutError:
            raise UserError(f"{url}: no answer in {2 * WAIT_S:g} s") from None
        return outcome, self._pages.pop() if self._pages else None


async def _fetch(config: DownloaderConfig, url: str) -> StoredPage:
    async with _Asker(config) as asker:
        for number in range(1, MAX_HOPS + 2):
            outcome, page = await asker.ask(url, number)
            if outcome.result is FetchResult.REDIRECT and outcome.location:
                url = parse_url(outcome.location, url).href
                continue
            if page is None:
                raise UserError(f"{url}: {outcome.reason or outcome.result.name.lower()} {outcome.detail}".strip())
            return StoredPage(page.url, page.content_type, page.charset, bytes(page.body), page.url, page.fetched_at)
    raise UserError(f"{url}: more than {MAX_HOPS} redirects")
