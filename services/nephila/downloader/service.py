"""The downloader service.

IN   requests   FetchRequest: one URL, fetched once; a page or a robots.txt
     requests.browser  in the place of `requests` where a browser renders the pages (browser/)
     jobs       CrawlJob: jobs with delay 0 are not paced by server address
     rules      ParseRule: with a browser only, the steps of its pages
OUT  pages      Page: the content of a 2xx or 304 response, before its outcome
     exchanges  Page: with raw capture, any other response, before its outcome
     outcomes   FetchOutcome: exactly one per request received, given-back requests included; it frees the host

The downloader decides how to fetch, never when or whether: a request is fetched unless it is too late (`start_by`), the
egress guard refuses its address, the address has no slot (given back with that address), or the service drains.
It keeps no durable state: a request is acknowledged once its page and its outcome have been acknowledged.
`pipeline.py` holds the stages before the dial, `limits/partitions.py` the partitions that come and go over a broker.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from nephila.downloader.admission.admission import MakeAdmission, make_admission, make_budget
from nephila.downloader.browser_port import BrowserLane, missing
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.resolvers import make_guarded_resolver
from nephila.downloader.http.contract import Fetcher, HttpResponse
from nephila.downloader.http.fetchers import make_fetcher
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.in_flight import InFlight
from nephila.downloader.limits.partitions import Partitions
from nephila.downloader.middleware.chain import build_chain
from nephila.downloader.outcome import (
    FETCHED,
    NOT_MODIFIED,
    REDIRECTS,
    ROBOTS,
    exchange_of,
    location_of,
    outcome_of,
    page_of,
    undialled,
)
from nephila.downloader.pipeline import Pipeline
from nephila.downloader.proxy_port import Served
from nephila.downloader.routing.router import DirectRouter, Router
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.live_settings import CONNECTIONS, SPEED
from nephila.kernel.outcomes import given_back
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.process.memory_budget import BROWSER_REQUEST_BYTES, MemoryBudget, Reservation, unlimited
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.config import replaced
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.runtime.extensions import extension
from nephila.kernel.runtime.histogram import Histogram
from nephila.kernel.topics import EXCHANGES, JOBS, OUTCOMES, PAGES, REQUESTS, REQUESTS_BROWSER, RULES

log = logging.getLogger(__name__)

GROUP, BROWSER_GROUP = "downloader", "browser"
"""Consumer groups of downloaders without and with a browser."""
ROBOTS_REDIRECTS = 5
GIVE_BACK_S = 0.1
"""Delay before a request that arrives during a drain is given back. Without it, a scheduler that sends the request to
the same member again would loop without a pause."""


class Downloader:
    """Turns each request into one outcome, and into a page where one was fetched."""

    def __init__(
        self,
        config: DownloaderConfig,
        bus: Bus,
        clock: Clock,
        router: Router,
        fetcher: Fetcher,
        coordination: Coordination | None = None,
        browser: BrowserLane | None = None,
        admission: MakeAdmission | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        """`browser`: the fetcher, if it renders pages; then the requests of `requests.browser` are served.
        `admission`: makes what limits concurrent fetches; None: `concurrency` alone does. `budget`: the memory of this
        process, for its counters; None: no limit is known."""
        self.budget = budget or unlimited()
        self.browser = browser
        self._config = config
        self._bus = bus
        self._clock = clock
        self._fetches: dict[InFlight, None] = {}
        self.coordination = coordination or Coordination()
        self.partitions = Partitions(clock, config.move_s, self._fetches, self._give_back, self._drop)
        self._router = router
        self.resolver = router.resolver
        """The resolver, for its counters."""
        self.proxies = router.proxies
        """The proxies, for their counters; None: no request uses one."""
        if self.proxies is not None:
            self.proxies.on_retract = self._retract
        self.chain = build_chain(config.http, config.middleware, clock, router, fetcher, browser)
        """The middleware, for its counters."""
        self._pipeline = Pipeline(
            config,
            clock,
            router,
            fetcher,
            self.chain,
            self.coordination,
            partitions=self.partitions,
            on_response=self._on_response,
            on_end=self._end,
        )
        self.admission = (
            admission(lambda: self._pipeline.global_stage.fetching, self._on_limit, lambda: not self._fetches)
            if admission is not None
            else None
        )
        """What the container allows; None: not measured."""
        self._connections = config.concurrency
        """Concurrent fetches at most, as configured or as changed while it runs."""
        self.ended: Counter[m.FetchResult] = Counter()
        self.pages = 0
        self.wire_bytes = 0
        """Bytes received from servers."""

    @property
    def work(self) -> tuple[int, int]:
        """Pages fetched, and bytes received from servers, since the start."""
        return self.pages, self.wire_bytes

    @property
    def fetch_s(self) -> Histogram:
        return self._pipeline.fetch_s

    @property
    def first_byte_s(self) -> Histogram:
        return self._pipeline.first_byte_s

    @property
    def highest_host_rate(self) -> float:
        """Requests per second of the busiest host, in the last ten seconds that are complete."""
        return self._pipeline.host_rates.highest(self._clock.monotonic())

    @property
    def slow(self) -> int:
        """Slots held by hosts that answer slowly."""
        return self._pipeline.global_stage.slow

    @property
    def slow_given_back(self) -> int:
        return self._pipeline.global_stage.slow_given_back

    @property
    def in_flight(self) -> int:
        """Requests received and not ended."""
        return len(self._fetches)

    @property
    def trouble(self) -> str:
        """Why it cannot work: with a browser, what is not installed; empty when it can."""
        if self.browser is None:
            return ""
        return missing(self._config.browser.executable)

    async def start(self) -> None:
        """Subscribe to jobs and requests."""
        await self._router.start()
        credits = self._config.window
        if self.browser is None:
            self._bus.subscribe(JOBS, GROUP, self._on_job, credits=credits)
            self._bus.subscribe(REQUESTS, GROUP, self._on_request, credits=credits)
        else:
            # Rules and jobs first: a page has to find its steps.
            self._bus.subscribe(RULES, BROWSER_GROUP, self._on_rule, credits=credits)
            self._bus.subscribe(JOBS, BROWSER_GROUP, self._on_job, credits=credits)
            self._bus.subscribe(REQUESTS_BROWSER, BROWSER_GROUP, self._on_request, credits=credits)
        if self.admission is not None:
            self.admission.start()

    def _on_limit(self, limit: int) -> None:
        """Fetch so many URLs at once, and take requests in proportion as far as the memory can hold their pages, for
        twice the limit at least.

        A request has its credit until its outcome is durable, so the credits also bound the pages of one commit
        interval: with twice the limit alone, the process would wait for commits."""
        limit = min(limit, self._connections)
        self._pipeline.global_stage.set_concurrency(limit)
        window, most = self._config.window, self._config.concurrency
        memory_requests = self.admission.memory_requests if self.admission is not None else window
        credits = min(max(2 * limit, min(window * limit // most, memory_requests)), window)
        if self.browser is None:
            self._bus.set_credits(REQUESTS, GROUP, credits)
        else:
            self._bus.set_credits(REQUESTS_BROWSER, BROWSER_GROUP, credits)

    @property
    def live_settings(self) -> Mapping[str, Callable[[Any], None]]:
        """The settings that can change while the service runs; None as value takes the default back."""
        return {CONNECTIONS: self._set_connections, SPEED: self._set_speed}

    def _set_connections(self, connections: int | None) -> None:
        """Fetch so many URLs at once, as far as the container allows."""
        self._connections = connections or self._config.concurrency
        self._on_limit(self.admission.limit if self.admission is not None else self._connections)

    def _set_speed(self, per_s: float | None) -> None:
        """Start so many fetches per second at most."""
        self._pipeline.global_stage.set_speed(per_s or 0.0)

    async def drain(self, grace_s: float) -> None:
        """Start no further fetch. Requests not dialled are given back now, the rest after `grace_s` seconds."""
        await self.partitions.drain(grace_s)

    async def close(self) -> None:
        """Give back all requests and close every connection."""
        if self.admission is not None:
            self.admission.close()
        self.budget.close()
        await self.drain(0)
        await self._pipeline.close()

    # ---- from delivery to dial

    def _on_job(self, delivery: Delivery) -> None:
        self._pipeline.on_job(delivery.message)
        if self.browser is not None:
            self.browser.on_job(delivery.message)
        delivery.ack()

    def _on_rule(self, delivery: Delivery) -> None:
        assert self.browser is not None
        self.browser.on_rule(delivery.message)
        delivery.ack()

    def _on_request(self, delivery: Delivery) -> None:
        request: m.FetchRequest = delivery.message
        if self.partitions.is_stale(delivery.partition, request):
            delivery.ack()
            return
        if delivery.partition in self.partitions.revoked:
            self._clock.call_at(self._clock.monotonic() + GIVE_BACK_S, lambda: self._reject(delivery))
            return
        if not self._fetches and self.admission is not None:
            self.admission.wake()
        fetch = InFlight(delivery, request)
        self._fetches[fetch] = None
        self._pipeline.run(fetch)

    def _reject(self, delivery: Delivery) -> None:
        if not delivery.acked:
            delivery.ack_after((self._bus.publish(OUTCOMES, delivery.partition, given_back(delivery.message)),))

    # ---- from response to outcome

    def _on_response(self, fetch: InFlight, response: HttpResponse) -> None:
        request, target = fetch.request, fetch.target
        assert target is not None
        is_robots = request.kind == ROBOTS
        if is_robots and response.status in REDIRECTS and not response.reason:
            next_target = self._redirect_of(fetch, target, response)
            if next_target is not None:
                fetch.redirects += 1
                fetch.origin_address = fetch.origin_address or response.address
                self._archive(fetch, target, response, fetch.started, self._clock.now())
                self._pipeline.redirect(fetch, next_target)
                return
        page, ended = None, self._clock.now()
        try:
            outcome = outcome_of(request, target, response, fetch.started, ended)
            outcome.address = fetch.origin_address or outcome.address
            if not is_robots and outcome.result in (FETCHED, NOT_MODIFIED):
                page = page_of(request, response, fetch.started, ended)
        except Exception as error:  # a fault of this program must not block the host for ever
            log.exception("a response could not be read")
            outcome = undialled(request, m.FetchResult.FAILED, Reason.INTERNAL, type(error).__name__, ended)
        if page is not None:
            for exchange in response.exchanges:
                self._archive(fetch, exchange.target, exchange.response, exchange.started, exchange.ended)
        else:
            if response.memory is not None:
                response.memory.release()
            self._archive(fetch, target, response, fetch.started, ended)
        self._end(fetch, outcome, page, response.memory)

    def _redirect_of(self, fetch: InFlight, target: TargetUrl, response: HttpResponse) -> TargetUrl | None:
        """The next URL of a robots.txt. Up to five redirects are followed (RFC 9309 2.3.1.2)."""
        if fetch.redirects >= ROBOTS_REDIRECTS or fetch.delivery.partition in self.partitions.revoked:
            return None
        try:
            return location_of(target, response)
        except ValueError:
            return None

    def _archive(
        self, fetch: InFlight, target: TargetUrl, response: HttpResponse, started: float, ended: float
    ) -> None:
        """With raw capture, publish a response that is not a page. The outcome, which may end the URL, comes later."""
        if not self._config.http.raw_capture or not response.status:
            return
        try:
            exchange = exchange_of(fetch.request, target, response, started, ended)
            receipt = self._bus.publish(EXCHANGES, fetch.delivery.partition, exchange)
            fetch.exchange_receipts = (*fetch.exchange_receipts, receipt)
        except Exception:  # a gap in the archive is no reason to lose the URL
            log.exception("a response was not archived")

    def _retract(self, served: Served) -> None:
        """Report that a page came from a proxy that lies: the scheduler sends its request again."""
        outcome = given_back(served.request)
        outcome.result, outcome.status = m.FetchResult.RETRACTED, served.status
        outcome.ended_at, outcome.request = self._clock.now(), served.request
        self._bus.publish(OUTCOMES, served.partition, outcome)

    def _drop(self, fetch: InFlight) -> None:
        """End a request without an outcome: its partition belongs to another member."""
        self._pipeline.stop(fetch)
        self._end(fetch, None)

    def _give_back(self, fetch: InFlight) -> None:
        self._pipeline.give_back(fetch)

    def _end(
        self,
        fetch: InFlight,
        outcome: m.FetchOutcome | None,
        page: m.Page | None = None,
        memory: Reservation | None = None,
    ) -> None:
        """Release the slots, publish, acknowledge. A second call for one request has no effect.

        The slots come first: the outcome may bring the next request of the host at once.
        """
        if self._fetches.pop(fetch, self) is self:
            return
        delivery = fetch.delivery
        if self.chain.reads_outcomes and outcome is not None and fetch.started and fetch.target is not None:
            self.chain.on_outcome(fetch.request, fetch.target, outcome)
        try:
            if fetch.started and outcome is not None:
                self._pipeline.host_gap.on_end(fetch.request.host, outcome.ended_at)
            self._pipeline.release(fetch)
        finally:
            receipts = self._publish(delivery.partition, outcome, page, memory) if outcome is not None else ()
            delivery.ack_after([*fetch.exchange_receipts, *receipts] if fetch.exchange_receipts else receipts)
            self.partitions.ended()

    def _publish(
        self, partition: int, outcome: m.FetchOutcome, page: m.Page | None, memory: Reservation | None
    ) -> list[Receipt]:
        """Publish the page, then the outcome. `memory` of the page is released when its record is durable."""
        receipts = []
        if page is not None:
            self.pages += 1
            try:
                receipts.append(self._bus.publish(PAGES, partition, page))
                admission, size = self.admission, len(page.body)
                if admission is not None and size >= admission.notice_from:
                    admission.on_page(size)
                if memory is not None:
                    receipts[0].add_done_callback(memory.release)
            except PermanentError as error:
                outcome.result, outcome.reason, outcome.detail = m.FetchResult.FAILED, Reason.TOO_LARGE, str(error)
        self.ended[outcome.result] += 1
        self.wire_bytes += outcome.wire_bytes
        receipts.append(self._bus.publish(OUTCOMES, partition, outcome))
        return receipts


def make_router(config: DownloaderConfig, clock: Clock, fetcher: Fetcher) -> Router:
    """The router: direct where no proxies are configured. Raises `UsageError` for settings that make no sense."""
    resolver = make_guarded_resolver(config.dns, clock)
    if not config.proxies.sources:
        return DirectRouter(resolver)
    router: Router = extension("proxies")(config, clock, resolver, fetcher)
    return router


def build(
    config: DownloaderConfig,
    bus: Bus,
    clock: Clock,
    coordination: Coordination | None = None,
    budget: MemoryBudget | None = None,
    read_pages: ReadPages | None = None,
) -> Downloader:
    """The downloader with all its dependencies. `budget`: of this process; None: it makes its own. `read_pages`: of
    the parser in this process. Raises `UsageError` for settings that make no sense."""
    budget = budget or make_budget(config.admission, clock)
    fetcher = make_fetcher(config.http, clock, budget, read_pages, config.admission.processes)
    router = make_router(config, clock, fetcher)
    admission = make_admission(config.admission, clock, budget, config.concurrency)
    return Downloader(config, bus, clock, router, fetcher, coordination, None, admission, budget)


def build_browser(
    config: DownloaderConfig,
    bus: Bus,
    clock: Clock,
    coordination: Coordination | None = None,
    budget: MemoryBudget | None = None,
) -> Downloader:
    """The downloader whose pages a browser renders; `budget` as for `build`."""
    pool = config.proxies.pool
    changes = {
        "concurrency": config.browser.processes * config.browser.pages,
        # A page in a browser takes seconds from any host.
        "limits.slow_share": 1.0,
        # In one program the plain downloader writes the file.
        "proxies.pool": pool and f"{pool}.browser",
    }
    own = replaced(config, changes)
    budget = budget or make_budget(own.admission, clock)
    fetcher = make_fetcher(own.http, clock, budget)
    router = make_router(own, clock, fetcher)
    lane: BrowserLane = extension("browser")(own, clock, router, fetcher, budget)
    admission = make_admission(own.admission, clock, budget, own.concurrency, BROWSER_REQUEST_BYTES)
    return Downloader(own, bus, clock, router, lane, coordination, lane, admission, budget)
