"""One page or one robots.txt, fetched through the downloader with its guards and limits, without a crawl.

Redirects are followed, MAX_HOPS at most. With `obey_robots` the robots.txt of each host is fetched first.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build, build_browser
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.browser_schema import Browser
from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult, Page, Render
from nephila.kernel.net.robots import Policy, Robots, policy_for, product_token
from nephila.kernel.process.process_setup import run_loop
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.config import by_section
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.seeds import seed_url
from nephila.kernel.topics import JOBS, OUTCOMES, PAGES, requests_topic
from nephila.native import parse_url

MAX_HOPS: Final = 5
WAIT_S: Final = 60.0
_JOB: Final = "try"
_Key = tuple[bytes, int]
"""Fingerprint and number of a fetch."""


ALONE: Final = {"limits.per_address": 0, "limits.address_gap_s": 0.0}
"""Settings of a downloader that fetches beside a crawl: it does not wait behind the limits per address."""


def config_of(settings: Mapping[str, Any]) -> DownloaderConfig:
    """The downloader's configuration for single fetches: the settings by path, and no limits per address."""
    return msgspec.convert(by_section({**settings, **ALONE}), DownloaderConfig)


def fetch_page(url: str, config: DownloaderConfig, *, obey_robots: bool = False, limit_s: float | None = None) -> Page:
    """The page at a URL. Raises `UserError` with the cause in one line, and `TimeoutError` after `limit_s`, which
    counts for all redirects together."""
    return run_loop(asyncio.wait_for(_fetch_page(seed_url(url), config, obey_robots), limit_s))


async def fetch_allowed(url: str, config: DownloaderConfig, *, browser: Browser | None = None) -> Page:
    """The page at a URL, on a loop that runs; robots.txt counts. `browser`: as a browser has it that does
    this. Raises `UserError`, also after `WAIT_S`."""
    work = _fetch_page(seed_url(url), config, obey_robots=True, browser=browser)
    try:
        return await asyncio.wait_for(work, WAIT_S)
    except TimeoutError:
        raise UserError(f"{url}: no answer in {WAIT_S:g} s") from None


def fetch_robots(url: str, config: DownloaderConfig) -> tuple[str, bytes, str]:
    """The robots.txt that holds for a URL: its address, its bytes, and its meaning: rules, or everything is allowed or
    denied (`kernel.net.robots.policy_for`). Raises `UserError` when the host cannot be reached."""
    address = _robots_address(seed_url(url))

    async def fetch() -> FetchOutcome:
        async with SingleFetcher(config) as fetcher:
            outcome, _ = await fetcher.fetch(address, FetchKind.ROBOTS)
            return outcome

    outcome = run_loop(fetch())
    if not outcome.status:
        raise UserError(f"{address}: {outcome.reason or outcome.result.name.lower()} {outcome.detail}".strip())
    policy = policy_for(outcome.status, outcome.reason)
    return address, _rules_of(outcome, policy), f"{policy}, status {outcome.status}"


def _robots_address(url: str) -> str:
    parts = parse_url(url)
    return f"{parts.scheme}://{parts.host_key}/robots.txt"


def _rules_of(outcome: FetchOutcome, policy: Policy) -> bytes:
    return bytes(outcome.body) if policy == "rules" else b""


class SingleFetcher:
    """A downloader on a bus of its own that fetches single URLs. `browser`: and one that renders pages like this."""

    def __init__(self, config: DownloaderConfig, *, browser: Browser | None = None) -> None:
        self._clock = SystemClock()
        self._bus = LocalBus(self._clock)
        self._pages: dict[_Key, Page] = {}
        self._waiting: dict[_Key, asyncio.Future[FetchOutcome]] = {}
        self._number = 0
        self._bus.subscribe(PAGES, "one", self._on_page, credits=10)
        self._bus.subscribe(OUTCOMES, "one", self._on_outcome, credits=10)
        self._downloaders = [build(config, self._bus, self._clock)]
        self._browser = browser
        if browser is not None:
            self._downloaders.append(build_browser(config, self._bus, self._clock))
        self._allowed: dict[str, tuple[Policy, Robots, str]] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One for each robots.txt: concurrent pages of a host wait for its one fetch."""
        self._agent = product_token(config.http.agent())

    def _on_page(self, delivery: Delivery) -> None:
        page: Page = delivery.message
        self._pages[page.url_key, page.fetch_no] = page
        delivery.ack()

    def _on_outcome(self, delivery: Delivery) -> None:
        outcome: FetchOutcome = delivery.message
        waiting = self._waiting.pop((outcome.url_key, outcome.fetch_no), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
        delivery.ack()

    async def __aenter__(self) -> Self:
        for downloader in self._downloaders:
            await downloader.start()
        if self._browser is not None:
            self._bus.publish(JOBS, 0, job_of(_JOB, JobSpec(render="always", browser=self._browser)))
        return self

    async def __aexit__(self, *error: object) -> None:
        for downloader in reversed(self._downloaders):
            await downloader.drain(0.0)
            await downloader.close()

    async def fetch(
        self,
        url: str,
        kind: FetchKind = FetchKind.UNSPECIFIED,
        *,
        any_type: bool = True,
        render: Render = Render.UNSPECIFIED,
    ) -> tuple[FetchOutcome, Page | None]:
        """The outcome of a fetch, and its page. Raises `UserError` when no outcome comes. `any_type`: whatever the
        content type, else those of the settings."""
        parts = parse_url(url)
        self._number += 1
        key = (parts.fingerprint, self._number)
        now = self._clock.now()
        request = FetchRequest(
            _JOB, parts.fingerprint, url, parts.host_key, kind, fetch_no=key[1], attempt=1, start_by=now + WAIT_S,
            lease_until=now + 2 * WAIT_S, seed=any_type, render=render,
        )  # fmt: skip
        waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
        self._bus.publish(requests_topic(request), 0, request)
        try:
            outcome = await asyncio.wait_for(waiting, 2 * WAIT_S)
        except TimeoutError:
            raise UserError(f"{url}: no answer in {2 * WAIT_S:g} s") from None
        return outcome, self._pages.pop(key, None)

    async def page(self, url: str, *, obey_robots: bool = True, render: Render = Render.UNSPECIFIED) -> Page:
        """The page at a URL, behind its redirects. Raises `UserError` with the cause in one line."""
        for _ in range(MAX_HOPS + 1):
            if obey_robots and (refusal := await self.refusal(url)):
                raise UserError(f"{url}: {'denied' if refusal == Reason.ROBOTS else 'failed'}({refusal})")
            outcome, page = await self.fetch(url, render=render)
            if outcome.result is FetchResult.REDIRECT and outcome.location:
                url = parse_url(outcome.location, url).href
                continue
            if page is None:
                raise UserError(_failure(url, outcome))
            return page
        raise UserError(f"{url}: more than {MAX_HOPS} redirects")

    async def refusal(self, url: str) -> str:
        """Why the robots.txt of the URL's host does not allow it: "robots", or the reason why it cannot be fetched;
        empty: it does. Each file is fetched once. An address that the egress guard refuses counts as allowed here: the
        fetch of the page itself names the reason."""
        address = _robots_address(url)
        async with self._locks[address]:
            if address not in self._allowed:
                outcome, _ = await self.fetch(address, FetchKind.ROBOTS)
                policy = "allow" if outcome.result is FetchResult.DENIED else policy_for(outcome.status, outcome.reason)
                reason = Reason.ROBOTS if outcome.status else outcome.reason
                self._allowed[address] = (policy, Robots(_rules_of(outcome, policy)), reason or Reason.ROBOTS)
        policy, rules, reason = self._allowed[address]
        if policy == "disallow":
            return reason
        return "" if rules.allowed(self._agent, parse_url(url).path_query) else Reason.ROBOTS


async def _fetch_page(url: str, config: DownloaderConfig, obey_robots: bool, browser: Browser | None = None) -> Page:
    render = Render.UNSPECIFIED if browser is None else Render.ALWAYS
    async with SingleFetcher(config, browser=browser) as fetcher:
        return await fetcher.page(url, obey_robots=obey_robots, render=render)


def _failure(url: str, outcome: FetchOutcome) -> str:
    """The failure as outcome(reason), with the status if there was an answer."""
    if outcome.result is FetchResult.CONTENT_TYPE:
        ended = f"dropped({Reason.CONTENT_TYPE})"
    else:
        ended = f"{'denied' if outcome.result is FetchResult.DENIED else 'failed'}({outcome.reason or 'unknown'})"
    if outcome.reason == Reason.STEP:
        return f"{url}: {ended}: {outcome.detail}"
    if outcome.reason == Reason.ADDRESS:
        return f"{url}: {ended}: a private or otherwise non-public address; --allow-private opens it"
    return f"{url}: {ended}{f', status {outcome.status}' if outcome.status else ''}"
