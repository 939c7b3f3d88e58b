"""The stages of a request between delivery and dial, in one readable table: `STAGES`.

Each stage answers GO (continue with the next), WAIT (a slot, an answer or a timer continues it later) or END (the
outcome is determined). Stages call no coroutine: where a look-up or a login is needed, a task runs it and continues
the request. A request whose name is cached and whose slots are free passes all stages in one call, without a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import Enum
from types import MethodType
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.contract import NotLookedUpError, ResolveError
from nephila.downloader.http.contract import Fetcher, FetchError, HttpResponse
from nephila.downloader.http.deadlines import TimedFetch
from nephila.downloader.http.request import http_request_of
from nephila.downloader.http.route import prefer_counted_address
from nephila.downloader.http.target import Target
from nephila.downloader.in_flight import (
    ADDRESS_CHECK,
    ADDRESS_SLOT,
    DIAL,
    ENDED,
    GLOBAL_SLOT,
    HOST_SLOT,
    MEMBERSHIP,
    MIDDLEWARE,
    PROXY,
    RESOLVE,
    RESPONSE,
    InFlight,
    Stage,
)
from nephila.downloader.limits.address_slots import AddressSlots
from nephila.downloader.limits.fair_slots import FAST, SLOW, FairSlots, HostSpeeds
from nephila.downloader.limits.host_rate import HostRates
from nephila.downloader.limits.slots import Slots
from nephila.downloader.middleware.chain import MiddlewareChain
from nephila.downloader.middleware.contract import PausedError
from nephila.downloader.outcome import ROBOTS, undialled
from nephila.downloader.proxies.selection import WAIT_S, NoProxyError, ProxySelection, Step
from nephila.downloader.proxies.use import ProxyTries
from nephila.downloader.routing.router import Router
from nephila.kernel import messages as m
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.egress import EgressError
from nephila.kernel.outcomes import given_back
from nephila.kernel.reasons.table import AnyReason, Reason
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.histogram import NETWORK_S, Histogram

log = logging.getLogger(__name__)

SLOW_PAUSE_S = 15.0
"""Pause of a slow host that is given back; a host that drips holds its slot about as long."""
SLOW_CHECK_S = 0.5
"""Between two looks for slow fetches."""
LATE_S, MAX_LATE = 0.05, 4
"""A dial that is later than LATE_S waits LATE_S once more, at most MAX_LATE times."""
PROXY_RETRY_S = 0.25
"""Between two tries for the slot of a proxy; a slot that is freed starts the first waiting request at once."""
MEMBERSHIP_RETRY_S = 0.1
"""Between two checks of a membership that is not certain."""


class Verdict(Enum):
    """What a stage answers."""

    GO = "go"
    WAIT = "wait"
    END = "end"


GO, WAIT, END = Verdict.GO, Verdict.WAIT, Verdict.END
OnResponse = Callable[[InFlight, HttpResponse], None]
OnEnd = Callable[[InFlight, m.FetchOutcome], None]


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
        is_revoked: Callable[[int], bool],
        on_response: OnResponse,
        on_end: OnEnd,
    ) -> None:
        """`is_revoked`: whether nothing may start for a partition. `on_response` is called for each response, `on_end`
        for a request that ends without one; both lead to one call of `release`."""
        self._config = config
        self._clock = clock
        self._router = router
        self._fetcher = fetcher
        self._chain = chain
        self._coordination = coordination
        self._is_revoked = is_revoked
        self._on_response = on_response
        self._on_end = on_end
        self._host_slots: Slots[InFlight] = Slots(config.per_host)
        self._global_slots: FairSlots[InFlight] = FairSlots(config.concurrency, config.slow_share)
        self._speeds = HostSpeeds()
        self._dialled: dict[InFlight, None] = {}
        """Requests that wait for their response and are not slow, the oldest first."""
        self._slow_timer: Timer | None = None
        self.slow_given_back = 0
        """Slow requests that were given back, since other hosts waited for their slots."""
        self._start_interval_s = 0.0
        """Least time between two requests that ask for a slot; 0: no limit."""
        self._next_start = 0.0
        limits = AddressLimits(config.per_address, config.address_gap_s, config.networks, "downloader.networks")
        self._address_slots: AddressSlots[InFlight] | None = None if limits.unlimited else AddressSlots(limits)
        self._paced_jobs: dict[str, bool] = {}
        """Whether a job is paced by server address, for the jobs known."""
        self._proxies = router.proxies
        self._waiting_for_proxy: dict[InFlight, None] = {}
        self.fetch_s = Histogram(NETWORK_S)
        """From dial to the end of the response, connecting included."""
        self.first_byte_s = Histogram(NETWORK_S)
        """From dial to the end of the response head."""
        self.host_rates = HostRates()
        stages = [(stage, MethodType(step, self)) for stage, step in STAGES]
        without_proxies = [entry for entry in stages if entry[0] is not PROXY or self._proxies is not None]
        self._stages_from = [
            tuple(entry for entry in without_proxies if entry[0] >= stage) for stage in range(len(stages))
        ]

    # ---- calls of the service

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        self._chain.on_job(job)
        if self._proxies is not None:
            self._proxies.on_job(job)
        if job.deleted:
            self._paced_jobs.pop(job.uid, None)
        else:
            self._paced_jobs[job.uid] = job.politeness is not None and job.politeness.delay_s > 0

    @property
    def fetching(self) -> int:
        """Requests that hold one of the `concurrency` slots."""
        return self._global_slots.held

    @property
    def slow(self) -> int:
        """Slots held by hosts that answer slowly."""
        return self._global_slots.slow

    def set_concurrency(self, limit: int) -> None:
        """Change the number of slots; requests that waited for one continue."""
        for fetch in self._global_slots.set_limit(limit):
            self._run(fetch, ADDRESS_SLOT)

    def set_speed(self, per_s: float) -> None:
        """Let so many requests per second ask for a slot; 0: no limit. Requests that wait keep their instants."""
        self._start_interval_s = 1 / per_s if per_s else 0.0
        self._next_start = self._clock.monotonic()

    def start(self, fetch: InFlight) -> None:
        """Enter the first stage."""
        self._run(fetch, HOST_SLOT)

    def redirect(self, fetch: InFlight, target: Target) -> None:
        """Fetch a redirected robots.txt from its new URL: all checks from RESOLVE on apply again."""
        self._release_address_slot(fetch)
        self._release_proxy(fetch)
        self._dialled.pop(fetch, None)
        fetch.proxy_tries = None
        fetch.target = target
        self._run(fetch, RESOLVE)

    def stop(self, fetch: InFlight) -> None:
        """Cancel the timer, the look-up or the fetch of a request."""
        timer, fetch.timer = fetch.timer, None
        if timer is not None:
            timer.cancel()
        handle, fetch.handle = fetch.handle, None
        if isinstance(handle, asyncio.Task):
            handle.cancel()
        elif handle is not None:
            handle.abort()

    def release(self, fetch: InFlight) -> None:
        """Release all slots of a request that has ended; each continues the next request of its queue."""
        host, stage = fetch.request.host, fetch.stage
        has_global_slot = stage > GLOBAL_SLOT or fetch.started > 0  # a redirected robots.txt keeps its slot
        fetch.stage = ENDED
        if self._proxies is not None:
            self._waiting_for_proxy.pop(fetch, None)
            self._release_proxy(fetch)
        # The address first: the request that gets the global slot may need this one.
        self._release_address_slot(fetch)
        if has_global_slot:
            self._dialled.pop(fetch, None)
            for waiter in self._global_slots.release(fetch):
                self._run(waiter, ADDRESS_SLOT)
        elif stage is GLOBAL_SLOT:
            self._global_slots.cancel(fetch)
        if stage is HOST_SLOT:
            self._host_slots.cancel(host, fetch)
        else:
            following = self._host_slots.release(host)
            if following is not None:
                self._run(following, RESOLVE)

    async def close(self) -> None:
        """Close middleware, fetcher and router."""
        if self._slow_timer is not None:
            self._slow_timer.cancel()
        await self._chain.close()
        await self._fetcher.close()
        await self._router.close()

    # ---- stages

    def _run(self, fetch: InFlight, start: Stage) -> None:
        """Run the stages from `start` on, until one does not answer GO."""
        for stage, step in self._stages_from[start]:
            fetch.stage = stage
            if step(fetch) is not GO:
                return

    def _host_slot(self, fetch: InFlight) -> Verdict:
        """Wait for a slot of the host."""
        return GO if self._host_slots.acquire(fetch.request.host, fetch) else WAIT

    def _resolve(self, fetch: InFlight) -> Verdict:
        """Find the route. Every address in it has passed the egress guard."""
        if self._ends_early(fetch):
            return END
        target = fetch.target
        if target is None:
            try:
                target = fetch.target = Target(fetch.request.url)
            except ValueError as error:
                return self._end(fetch, m.FetchResult.FAILED, Reason.BAD_URL, str(error))
        try:
            route = self._router.cached(target, fetch.request)
        except (EgressError, ResolveError) as error:
            return self._end_unresolved(fetch, error)
        if route is None:
            fetch.handle = asyncio.get_running_loop().create_task(self._look_up(fetch, target))
            return WAIT
        fetch.route = route
        return GO

    async def _look_up(self, fetch: InFlight, target: Target) -> None:
        try:
            route = await self._router.route(target, fetch.request)
        except Exception as error:  # a request must end, even if the resolver fails in an unexpected way
            fetch.handle = None
            self._end_unresolved(fetch, error)
            return
        fetch.handle = None
        fetch.route = route
        self._run(fetch, ADDRESS_CHECK)

    def _address_check(self, fetch: InFlight) -> Verdict:
        """Give back a paced request whose address is busy, or whose address the scheduler did not count and refuses."""
        request = fetch.request
        route = fetch.route = prefer_counted_address(fetch.route, request.address)
        if fetch.started or not self._is_paced(request):
            return GO
        if self._is_address_busy(fetch):
            return self._end_busy(fetch)
        check = self._coordination.late_address_check
        if check is None or request.address == route.pace_address:
            return GO
        check(request, route.pace_address, lambda go: self._on_address_check(fetch, go))
        return WAIT

    def _on_address_check(self, fetch: InFlight, go: bool) -> None:
        if fetch.stage is not ADDRESS_CHECK:  # ended in the meantime
            return
        if go:
            self._run(fetch, GLOBAL_SLOT)
        else:
            self._end_busy(fetch)

    def _global_slot(self, fetch: InFlight) -> Verdict:
        """Wait for the speed of this member, then for one of the `concurrency` slots, which are shared by how hosts
        answer. A slow host without a slot is given back with a pause; a redirected robots.txt still holds its slot.
        Both come before the slots of addresses, whose gaps count from the start."""
        if fetch.started:
            return GO
        if self._start_interval_s:
            now = self._clock.monotonic()
            start = max(self._next_start, now)
            self._next_start = start + self._start_interval_s
            if start > now:
                fetch.timer = self._clock.call_at(start, lambda: self._on_speed_allows(fetch))
                return WAIT
        return self._acquire_global_slot(fetch)

    def _on_speed_allows(self, fetch: InFlight) -> None:
        fetch.timer = None
        if self._acquire_global_slot(fetch) is GO:
            self._run(fetch, ADDRESS_SLOT)

    def _acquire_global_slot(self, fetch: InFlight) -> Verdict:
        speed = self._speeds.of(fetch.request.host)
        if self._global_slots.acquire(fetch, speed):
            return GO
        if speed is SLOW:  # its lease would keep another host from being sent
            self._global_slots.cancel(fetch)
            self.slow_given_back += 1
            detail = "the share of slow hosts is in use"
            return self._end_paused(fetch, reason=Reason.SLOW, detail=detail, retry_after_s=SLOW_PAUSE_S)
        self._watch_slow()
        return WAIT

    def _address_slot(self, fetch: InFlight) -> Verdict:
        """Wait for a slot of the server address and for the end of its gap. Unpaced requests pass."""
        if not self._is_paced(fetch.request):
            return GO
        assert self._address_slots is not None
        if not fetch.started:
            if self._ends_early(fetch):
                return END
            if self._is_address_busy(fetch):
                return self._end_busy(fetch)
        address = fetch.address_slot = fetch.route.pace_address
        start = self._address_slots.acquire(address, fetch, self._clock.monotonic(), self._planned(fetch))
        return WAIT if start is None else self._wait_for_gap(fetch, start)

    def _wait_for_gap(self, fetch: InFlight, start: float) -> Verdict:
        """GO from `start` on; before that a timer continues the request. The slot is held."""
        assert self._address_slots is not None
        now = self._clock.monotonic()
        if start <= now:
            start = self._address_slots.confirm(fetch.address_slot, now)
            if not start:
                return GO
        fetch.timer = self._clock.call_at(start, lambda: self._on_gap_over(fetch, start, 0))
        return WAIT

    def _on_gap_over(self, fetch: InFlight, start: float, late: int) -> None:
        """Continue at `start`.

        A late call means that the event loop was blocked. Requests dialled before may be written only in the next turns
        of the loop, and the gap counts from then; so this request waits for those turns first.
        """
        fetch.timer = None
        now = self._clock.monotonic()
        if now - start > LATE_S and late < MAX_LATE:
            again = now + LATE_S
            fetch.timer = self._clock.call_at(again, lambda: self._on_gap_over(fetch, again, late + 1))
        elif self._wait_for_gap(fetch, start) is GO:
            self._run(fetch, MEMBERSHIP)

    def _membership(self, fetch: InFlight) -> Verdict:
        """Dial only while the partition certainly belongs to this member, and before `start_by`."""
        if self._ends_early(fetch):
            return END
        if self._coordination.membership_valid():
            return GO
        retry = self._clock.monotonic() + MEMBERSHIP_RETRY_S
        fetch.timer = self._clock.call_at(retry, lambda: self._on_membership_retry(fetch))
        return WAIT

    def _on_membership_retry(self, fetch: InFlight) -> None:
        fetch.timer = None
        self._run(fetch, MEMBERSHIP)

    def _middleware(self, fetch: InFlight) -> Verdict:
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
            self._end_paused(fetch, error.reason, str(error), error.retry_after_s)
        except FetchError as error:
            fetch.handle = None
            fetch.started, fetch.origin_address = started, fetch.route.pace_address
            self._end(fetch, m.FetchResult.FAILED, error.reason, error.detail)
        except Exception as error:
            log.exception("a middleware failed before a request")
            fetch.handle = None
            self._end(fetch, m.FetchResult.FAILED, Reason.INTERNAL, type(error).__name__)
        else:
            fetch.handle = None
            self._run(fetch, MEMBERSHIP)

    def _dial(self, fetch: InFlight) -> Verdict:
        """Hand the request to the fetcher."""
        target = fetch.target
        assert target is not None
        on_sent = (lambda: self._on_sent(fetch)) if fetch.address_slot else None
        route = fetch.route if fetch.proxy_use is None else fetch.proxy_use.route
        http_request = http_request_of(fetch.request, target, route, self._config.max_list_bytes, on_sent)
        try:
            self._chain.on_request(fetch.request, http_request)
        except FetchError as error:
            return self._end(fetch, m.FetchResult.FAILED, error.reason, error.detail)
        except Exception as error:  # a fault of a middleware costs this fetch, not the slots that it holds
            log.exception("a middleware failed on a request")
            return self._end(fetch, m.FetchResult.FAILED, Reason.INTERNAL, type(error).__name__)
        if not fetch.started:
            fetch.started = self._clock.now()
        fetch.stage = RESPONSE
        fetch.dialled_at = self._clock.monotonic()
        self.host_rates.note(fetch.request.host, fetch.dialled_at)
        self._dialled[fetch] = None
        fetch.handle = self._fetcher.fetch(http_request, lambda response: self._on_done(fetch, response))
        return WAIT

    # ---- proxies

    def _proxy(self, fetch: InFlight) -> Verdict:
        """Lead the route through a proxy. A request without a free slot waits and repeats from MEMBERSHIP."""
        proxies, target = self._proxies, fetch.target
        assert proxies is not None
        assert target is not None
        selector = proxies.selector(fetch.request, target)
        if selector is None:
            return GO
        try:
            use = proxies.acquire(fetch.request, target, fetch.route, selector, fetch.proxy_tries)
        except NoProxyError as error:
            return self._end_without_proxy(fetch, error)
        if use is None:
            self._waiting_for_proxy[fetch] = None
            retry = self._clock.monotonic() + PROXY_RETRY_S
            fetch.timer = self._clock.call_at(retry, lambda: self._on_proxy_retry(fetch))
            return WAIT
        fetch.proxy_use = use
        return GO

    def _on_proxy_retry(self, fetch: InFlight) -> None:
        timer, fetch.timer = fetch.timer, None
        if timer is not None:
            timer.cancel()
        self._waiting_for_proxy.pop(fetch, None)
        if not self._ends_early(fetch):
            self._run(fetch, MEMBERSHIP)

    def _release_proxy(self, fetch: InFlight) -> None:
        """Free the slot of a proxy; the first request that waits for one tries at once."""
        use, fetch.proxy_use = fetch.proxy_use, None
        if use is not None and self._proxies is not None:
            self._proxies.release(use)
            if self._waiting_for_proxy:
                following = next(iter(self._waiting_for_proxy))
                del self._waiting_for_proxy[following]
                self._clock.call_soon(lambda: self._on_proxy_free(following))

    def _on_proxy_free(self, fetch: InFlight) -> None:
        if fetch.stage is PROXY and fetch not in self._waiting_for_proxy:
            self._on_proxy_retry(fetch)

    def _on_proxied(self, fetch: InFlight, proxies: ProxySelection, response: HttpResponse) -> None:
        """Judge what came through a proxy: accept it, try the next proxy, or give the request back."""
        use, request, target = fetch.proxy_use, fetch.request, fetch.target
        assert use is not None
        assert target is not None
        selector = proxies.selector(request, target)
        assert selector is not None
        response.address = fetch.route.pace_address
        tries = fetch.proxy_tries
        if tries is None:
            tries = fetch.proxy_tries = ProxyTries()
        if proxies.after_dial(use, target, selector, tries, response) is Step.RETRY:
            self._release_proxy(fetch)
            if proxies.has_another(target, selector, tries):
                self._clock.call_soon(lambda: self._retry_by_next_proxy(fetch))
            else:
                self._end_without_proxy(fetch, proxies.no_proxy(target, selector, tries, response.detail))
            return
        self._call_middleware(request, target, response)
        step = proxies.after_response(use, request, target, tries, response, fetch.delivery.partition)
        if step is not Step.ACCEPT:
            outcome = given_back(request)
            if step is Step.COMPARE:
                outcome.reason, outcome.detail = Reason.SECOND_FETCH, f"compared with the page through {use.proxy.name}"
            else:
                detail = response.detail or f"status {response.status} by {use.proxy.name}"
                outcome.reason, outcome.detail = Reason.PROXY, detail
            outcome.wire_bytes = response.wire_bytes
            outcome.started_at, outcome.ended_at = fetch.started, self._clock.now()
            outcome.address = fetch.origin_address or response.address
            self._on_end(fetch, outcome)
        else:
            self._on_response(fetch, response)

    def _retry_by_next_proxy(self, fetch: InFlight) -> None:
        if fetch.stage is RESPONSE and fetch.proxy_use is None:
            self._run(fetch, PROXY)

    def _end_without_proxy(self, fetch: InFlight, error: NoProxyError) -> Verdict:
        """No proxy serves the request: its host waits, and after a long time the request fails."""
        if error.final:
            return self._end(fetch, m.FetchResult.FAILED, error.reason, str(error))
        return self._end_paused(fetch, error.reason, str(error), WAIT_S)

    def _end_paused(self, fetch: InFlight, reason: Reason, detail: str, retry_after_s: float) -> Verdict:
        """Give a request back before its dial; its host pauses."""
        outcome = given_back(fetch.request)
        outcome.reason, outcome.detail, outcome.retry_after_s = reason, detail, retry_after_s
        outcome.ended_at = self._clock.now()
        self._clock.call_soon(lambda: self._on_end(fetch, outcome))
        return END

    # ---- responses

    def _on_sent(self, fetch: InFlight) -> None:
        if self._address_slots is not None and fetch.address_slot:
            now = self._clock.monotonic()
            self._address_slots.record_sent(fetch.address_slot, now)
            if self._coordination.on_sent is not None:
                self._coordination.on_sent(fetch.address_slot, now)

    def _on_done(self, fetch: InFlight, response: HttpResponse) -> None:
        fetch.handle = None
        took_s = self._clock.monotonic() - fetch.dialled_at
        self.fetch_s.observe(took_s)
        # A robots.txt is small and often cached: it proves nothing about pages.
        if took_s < self._config.slow_after_s and response.status and fetch.request.kind is not ROBOTS:
            self._speeds.learn(fetch.request.host, FAST)
        if response.head_at:
            self.first_byte_s.observe(response.head_at - fetch.dialled_at)
        if fetch.proxy_use is not None and self._proxies is not None:
            self._on_proxied(fetch, self._proxies, response)
            return
        assert fetch.target is not None
        self._call_middleware(fetch.request, fetch.target, response)
        self._on_response(fetch, response)

    def _call_middleware(self, request: m.FetchRequest, target: Target, response: HttpResponse) -> None:
        try:
            self._chain.on_response(request, target, response)
        except FetchError as error:
            response.reason, response.detail = error.reason, error.detail
        except Exception as error:  # a fault of a middleware costs this fetch, not the host
            log.exception("a middleware failed on a response")
            response.reason, response.detail = Reason.INTERNAL, type(error).__name__

    # ---- slow hosts

    def _watch_slow(self) -> None:
        """Look at fetches in flight from time to time, while requests wait for slots."""
        if self._slow_timer is None:
            due = self._clock.monotonic() + SLOW_CHECK_S
            self._slow_timer = self._clock.call_at(due, self._on_slow_check)

    def _on_slow_check(self) -> None:
        self._slow_timer = None
        config = self._config
        until = self._clock.monotonic() - config.slow_after_s
        for fetch in list(self._dialled):
            if fetch.dialled_at > until:
                break
            handle = fetch.handle
            elapsed_s = self._clock.monotonic() - fetch.dialled_at
            if not isinstance(handle, TimedFetch) or handle.waits_for_memory:
                continue
            if handle.received_bytes < config.slow_rate_bytes * elapsed_s:
                del self._dialled[fetch]
                self._speeds.learn(fetch.request.host, SLOW)
                for following in self._global_slots.mark_slow(fetch):
                    self._run(following, ADDRESS_SLOT)
        for fetch in self._global_slots.excess():
            self.slow_given_back += 1
            self.give_back(fetch, Reason.SLOW, SLOW_PAUSE_S)
        if self._global_slots.waiting:
            self._watch_slow()

    # ---- conditions and ends

    def _is_paced(self, request: m.FetchRequest) -> bool:
        """Whether address slots apply. A robots.txt belongs to no job: it is paced while any job is."""
        if self._address_slots is None:
            return False
        if request.job:
            return self._paced_jobs.get(request.job, True)
        return not self._paced_jobs or any(self._paced_jobs.values())

    def _is_address_busy(self, fetch: InFlight) -> bool:
        """Whether the address cannot take a request soon. The request is given back then, and the scheduler learns the
        address. A request that was dialled before waits instead: given back, its host would be fetched again."""
        assert self._address_slots is not None
        return self._address_slots.refuses(fetch.route.pace_address, self._clock.monotonic(), self._planned(fetch))

    def _planned(self, fetch: InFlight) -> float:
        """When the scheduler wants this request to dial, on the monotonic scale; 0.0: at once. Not for the hops of a
        redirected robots.txt."""
        dial_at = fetch.request.dial_at
        return self._clock.monotonic() + dial_at - self._clock.now() if dial_at and not fetch.started else 0.0

    def _ends_early(self, fetch: InFlight) -> bool:
        """End a request that was not dialled yet when its partition leaves or it is too late; True when it ended."""
        if fetch.started:
            return False
        if self._is_revoked(fetch.delivery.partition):
            self.give_back(fetch)
            return True
        start_by = fetch.request.start_by
        if start_by and self._clock.now() > start_by:
            self._end(fetch, m.FetchResult.EXPIRED, Reason.EXPIRED, "not started in time")
            return True
        return False

    def give_back(self, fetch: InFlight, reason: Reason = Reason.NONE, retry_after_s: float = 0.0) -> None:
        """Stop a request and end it without a result; the scheduler sends it again."""
        self.stop(fetch)
        outcome = given_back(fetch.request)
        outcome.reason, outcome.retry_after_s = reason, retry_after_s
        if fetch.started:  # the server has seen it: the host's delay applies
            outcome.started_at = fetch.started
            outcome.ended_at = self._clock.now()
            outcome.address = fetch.origin_address or fetch.route.pace_address
        self._on_end(fetch, outcome)

    def _end_busy(self, fetch: InFlight) -> Verdict:
        outcome = given_back(fetch.request)
        outcome.reason = Reason.BUSY
        outcome.address = fetch.route.pace_address
        self._clock.call_soon(lambda: self._on_end(fetch, outcome))
        return END

    def _end_unresolved(self, fetch: InFlight, error: Exception) -> Verdict:
        if isinstance(error, EgressError):
            return self._end(fetch, m.FetchResult.DENIED, Reason.ADDRESS, str(error))
        if isinstance(error, NotLookedUpError):
            return self._end(fetch, m.FetchResult.UNSPECIFIED, Reason.NOT_RESOLVED, str(error))
        detail = str(error) if isinstance(error, ResolveError) else f"{type(error).__name__}: {error}"
        return self._end(fetch, m.FetchResult.FAILED, Reason.DNS, detail)

    def _end(self, fetch: InFlight, result: m.FetchResult, reason: AnyReason, detail: str) -> Verdict:
        """End a request before its dial, in the next turn of the event loop: the outcome may bring the next request of
        the host, which may end in the same way."""
        outcome = undialled(fetch.request, result, reason, detail, self._clock.now())
        if fetch.started:  # a robots.txt that was redirected to an address that is refused or cannot be found
            outcome.started_at = fetch.started
            outcome.address = fetch.origin_address
        self._clock.call_soon(lambda: self._on_end(fetch, outcome))
        return END

    def _release_address_slot(self, fetch: InFlight) -> None:
        address, fetch.address_slot = fetch.address_slot, ""
        slots = self._address_slots
        if address and slots is not None and not slots.cancel(address, fetch):
            following = slots.release(address, self._clock.monotonic())
            if following is not None and self._wait_for_gap(*following) is GO:
                self._run(following[0], MEMBERSHIP)


STAGES: tuple[tuple[Stage, Callable[[Pipeline, InFlight], Verdict]], ...] = (
    (HOST_SLOT, Pipeline._host_slot),
    (RESOLVE, Pipeline._resolve),
    (ADDRESS_CHECK, Pipeline._address_check),
    (GLOBAL_SLOT, Pipeline._global_slot),
    (ADDRESS_SLOT, Pipeline._address_slot),
    (MEMBERSHIP, Pipeline._membership),
    (MIDDLEWARE, Pipeline._middleware),
    (PROXY, Pipeline._proxy),
    (DIAL, Pipeline._dial),
)
"""All stages in their order.

stage         | waits for                               | may end with
------------- | --------------------------------------- | -----------------------------------------------
HOST_SLOT     | a slot of the host key                  |
RESOLVE       | a DNS look-up                           | bad_url, dns, address, not_resolved, expired
ADDRESS_CHECK | the decision of the scheduler           | busy
GLOBAL_SLOT   | the speed, one of `concurrency` slots   | slow
ADDRESS_SLOT  | a slot and the gap of the address       | busy, expired
MEMBERSHIP    | a certain membership in the group       | expired
MIDDLEWARE    | work before the request, such as a login| login, throttle, the reasons of a failed fetch
PROXY         | a slot of a proxy                       | proxy
DIAL          | the response                            | middleware, and the outcome of the fetch
"""
