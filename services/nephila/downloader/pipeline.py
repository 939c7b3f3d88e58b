"""The stages of a request between delivery and dial, in one readable table: `STAGES`.

Each stage answers GO (continue with the next), WAIT (a slot, an answer or a timer continues it later) or END (the
outcome is determined). Stages call no coroutine: where a look-up or a login is needed, a task runs it and continues
the request. A request whose name is cached and whose slots are free passes all stages in one call, without a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.http.contract import Fetcher, FetchError, HttpResponse
from nephila.downloader.http.request import http_request_of
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.in_flight import (
    ADDRESS_CHECK,
    ADDRESS_SLOT,
    DIAL,
    ENDED,
    GLOBAL_SLOT,
    HOST_GAP,
    HOST_SLOT,
    MEMBERSHIP,
    MIDDLEWARE,
    PROXY,
    RESOLVE,
    RESPONSE,
    InFlight,
    Stage,
)
from nephila.downloader.limits.host_rate import HostRates
from nephila.downloader.limits.partitions import Partitions
from nephila.downloader.limits.slots import Slots
from nephila.downloader.middleware.chain import MiddlewareChain
from nephila.downloader.middleware.contract import PausedError
from nephila.downloader.routing.router import Router
from nephila.downloader.stages.address_stage import AddressStage
from nephila.downloader.stages.ending import END, GO, WAIT, Ending, OnEnd, StageResult
from nephila.downloader.stages.global_stage import GlobalStage
from nephila.downloader.stages.host_gap import HostGap
from nephila.downloader.stages.proxy_stage import ProxyStage
from nephila.kernel import messages as m
from nephila.kernel.net.egress import EgressError
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.histogram import NETWORK_S, Histogram

log = logging.getLogger(__name__)

MEMBERSHIP_RETRY_S = 0.1
"""Between two checks of a membership that is not certain."""


OnResponse = Callable[[InFlight, HttpResponse], None]
Step = Callable[[InFlight], StageResult]


class Pipeline:
    """Moves requests through the stages and owns the slots they hold.

    Invariant: a slot is held exactly by requests in a later stage than the slot's own, until `release`.
    """

    def __init__(
        self,
        config: DownloaderConfig,
        clock: Clock,
        router: Router,
        fetcher: Fetcher,
        chain: MiddlewareChain,
        coordination: Coordination,
        *,
        partitions: Partitions,
        on_response: OnResponse,
        on_end: OnEnd,
    ) -> None:
        """`on_response` is called for each response, `on_end` for a request that ends without one; both lead to one
        call of `release`."""
        self._config = config
        self._clock = clock
        self._router = router
        self._fetcher = fetcher
        self._chain = chain
        self._coordination = coordination
        self._on_response = on_response
        self._ending = ending = Ending(clock, partitions, on_end)
        self._host_slots: Slots[InFlight] = Slots(config.limits.per_host)
        self.host_gap = HostGap(clock, ending, self.run, remembers=coordination.plans)
        self.global_stage = GlobalStage(config.limits, config.concurrency, clock, ending, self.run)
        self.address_stage = AddressStage(config.limits, clock, coordination, ending, self.run)
        proxies = router.proxies
        self.proxy_stage = (
            None
            if proxies is None
            else ProxyStage(proxies, clock, ending, self.run, chain.on_response, on_response, on_end)
        )
        self.stop, self.give_back = ending.stop, ending.give_back
        self.fetch_s = Histogram(NETWORK_S)
        """From dial to the end of the response, connecting included."""
        self.first_byte_s = Histogram(NETWORK_S)
        """From dial to the end of the response head."""
        self.host_rates = HostRates()
        steps = [(stage, step(self)) for stage, step in STAGES if stage is not PROXY or proxies is not None]
        self._stages_from = [tuple(entry for entry in steps if entry[0] >= stage) for stage in range(len(STAGES))]

    # ---- calls of the service

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        self._chain.on_job(job)
        if self._router.proxies is not None:
            self._router.proxies.on_job(job)
        self.address_stage.on_job(job)
        self.host_gap.on_job(job)

    def redirect(self, fetch: InFlight, target: TargetUrl) -> None:
        """Fetch a redirected robots.txt from its new URL: all checks from RESOLVE on apply again."""
        self.address_stage.release(fetch)
        if self.proxy_stage is not None:
            self.proxy_stage.release(fetch)
        self.global_stage.forget_dial(fetch)
        fetch.proxy_tries = None
        fetch.target = target
        self.run(fetch, RESOLVE)

    def release(self, fetch: InFlight) -> None:
        """Release all slots of a request that has ended; each continues the next request of its queue."""
        host, stage = fetch.request.host, fetch.stage
        fetch.stage = ENDED
        if self.proxy_stage is not None:
            self.proxy_stage.cancel(fetch)
        # The address first: the request that gets the global slot may need this one.
        if fetch.address_slot:
            self.address_stage.release(fetch)
        self.global_stage.release(fetch, stage)
        if stage is HOST_SLOT:
            self._host_slots.cancel(host, fetch)
        else:
            following = self._host_slots.release(host)
            if following is not None:
                self.run(following, HOST_GAP)

    async def close(self) -> None:
        self.global_stage.close()
        await self._chain.close()
        await self._fetcher.close()
        await self._router.close()

    # ---- stages

    def run(self, fetch: InFlight, start: Stage = HOST_SLOT) -> None:
        """Run the stages from `start` on, until one does not answer GO."""
        for stage, step in self._stages_from[start]:
            fetch.stage = stage
            if step(fetch) is not GO:
                return

    def _host_slot(self, fetch: InFlight) -> StageResult:
        """Wait for a slot of the host."""
        return GO if self._host_slots.acquire(fetch.request.host, fetch) else WAIT

    def _resolve(self, fetch: InFlight) -> StageResult:
        """Find the route. Every address in it has passed the egress guard."""
        if self._ending.ends_early(fetch):
            return END
        target = fetch.target
        if target is None:
            try:
                target = fetch.target = TargetUrl(fetch.request.url)
            except ValueError as error:
                return self._ending.end(fetch, m.FetchResult.FAILED, Reason.BAD_URL, str(error))
        try:
            route = self._router.cached(target, fetch.request)
        except (EgressError, ResolveError) as error:
            return self._ending.unresolved(fetch, error)
        if route is None:
            fetch.handle = asyncio.get_running_loop().create_task(self._look_up(fetch, target))
            return WAIT
        fetch.route = route
        return GO

    async def _look_up(self, fetch: InFlight, target: TargetUrl) -> None:
        try:
            route = await self._router.route(target, fetch.request)
        except Exception as error:  # a request must end, even if the resolver fails in an unexpected way
            fetch.handle = None
            self._ending.unresolved(fetch, error)
            return
        fetch.handle = None
        fetch.route = route
        self.run(fetch, ADDRESS_CHECK)

    def _membership(self, fetch: InFlight) -> StageResult:
        """Dial only while the partition certainly belongs to this member, and before `start_by`."""
        if self._ending.ends_early(fetch):
            return END
        membership_valid = self._coordination.membership_valid
        if membership_valid is None or membership_valid():
            return GO
        retry = self._clock.monotonic() + MEMBERSHIP_RETRY_S
        fetch.timer = self._clock.call_at(retry, lambda: self._on_membership_retry(fetch))
        return WAIT

    def _on_membership_retry(self, fetch: InFlight) -> None:
        fetch.timer = None
        self.run(fetch, MEMBERSHIP)

    def _middleware(self, fetch: InFlight) -> StageResult:
        """Run what has to come before the request, such as a login; then repeat from MEMBERSHIP."""
        assert fetch.target is not None
        work = self._chain.before_request(fetch.request, fetch.target)
        if work is None:
            return GO
        fetch.handle = asyncio.get_running_loop().create_task(self._await_middleware(fetch, work))
        return WAIT

    async def _await_middleware(self, fetch: InFlight, work: Coroutine[Any, Any, None]) -> None:
        started = self._clock.now()
        try:
            await work
        except PausedError as error:
            fetch.handle = None
            self._ending.paused(fetch, error.reason, str(error), error.retry_after_s)
        except FetchError as error:
            fetch.handle = None
            fetch.started, fetch.origin_address = started, fetch.route.pace_address
            self._ending.end(fetch, m.FetchResult.FAILED, error.reason, error.detail)
        except Exception as error:
            log.exception("a middleware failed before a request")
            fetch.handle = None
            self._ending.end(fetch, m.FetchResult.FAILED, Reason.INTERNAL, type(error).__name__)
        else:
            fetch.handle = None
            self.run(fetch, MEMBERSHIP)

    def _dial(self, fetch: InFlight) -> StageResult:
        """Hand the request to the fetcher."""
        target = fetch.target
        assert target is not None
        on_sent = (lambda: self.address_stage.record_sent(fetch)) if fetch.address_slot else None
        route = fetch.route if fetch.proxy_use is None else fetch.proxy_use.route
        http_request = http_request_of(fetch.request, target, route, self._config.http.max_list_bytes, on_sent)
        try:
            self._chain.on_request(fetch.request, http_request)
        except FetchError as error:
            return self._ending.end(fetch, m.FetchResult.FAILED, error.reason, error.detail)
        except Exception as error:  # a fault of a middleware costs this fetch, not the slots that it holds
            log.exception("a middleware failed on a request")
            return self._ending.end(fetch, m.FetchResult.FAILED, Reason.INTERNAL, type(error).__name__)
        if not fetch.started:
            fetch.started = self._clock.now()
        fetch.stage = RESPONSE
        fetch.dialled_at = self._clock.monotonic()
        self.host_rates.note(fetch.request.host, fetch.dialled_at)
        self.global_stage.on_dial(fetch)
        fetch.handle = self._fetcher.fetch(http_request, partial(self._on_done, fetch))
        return WAIT

    # ---- responses

    def _on_done(self, fetch: InFlight, response: HttpResponse) -> None:
        fetch.handle = None
        took_s = self._clock.monotonic() - fetch.dialled_at
        self.fetch_s.observe(took_s)
        if response.status:
            self.global_stage.on_response(fetch, took_s)
        if response.head_at:
            self.first_byte_s.observe(response.head_at - fetch.dialled_at)
        if fetch.proxy_use is not None and self.proxy_stage is not None:
            self.proxy_stage.on_response(fetch, response)
            return
        assert fetch.target is not None
        self._chain.on_response(fetch.request, fetch.target, response)
        self._on_response(fetch, response)


def _proxy_step(pipeline: Pipeline) -> Step:
    assert pipeline.proxy_stage is not None
    return pipeline.proxy_stage.enter


STAGES: tuple[tuple[Stage, Callable[[Pipeline], Step]], ...] = (
    (HOST_SLOT, lambda pipeline: pipeline._host_slot),
    (HOST_GAP, lambda pipeline: pipeline.host_gap.enter),
    (RESOLVE, lambda pipeline: pipeline._resolve),
    (ADDRESS_CHECK, lambda pipeline: pipeline.address_stage.check),
    (GLOBAL_SLOT, lambda pipeline: pipeline.global_stage.enter),
    (ADDRESS_SLOT, lambda pipeline: pipeline.address_stage.acquire),
    (MEMBERSHIP, lambda pipeline: pipeline._membership),
    (MIDDLEWARE, lambda pipeline: pipeline._middleware),
    (PROXY, _proxy_step),
    (DIAL, lambda pipeline: pipeline._dial),
)
"""All stages in their order.

stage         | waits for                               | may end with
------------- | --------------------------------------- | -----------------------------------------------
HOST_SLOT     | a slot of the host key                  |
HOST_GAP      | the instant of a planned request        | given back
RESOLVE       | a DNS look-up                           | bad_url, dns, address, not_resolved, expired
ADDRESS_CHECK | the decision of the scheduler           | busy
GLOBAL_SLOT   | the speed, one of `concurrency` slots   | slow
ADDRESS_SLOT  | a slot and the gap of the address       | busy, expired
MEMBERSHIP    | a certain membership in the group       | expired
MIDDLEWARE    | work before the request, such as a login| login, throttle, the reasons of a failed fetch
PROXY         | a slot of a proxy                       | proxy
DIAL          | the response                            | middleware, and the outcome of the fetch
"""
