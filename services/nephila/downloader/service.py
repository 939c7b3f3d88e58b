"""The downloader service.

IN   requests   FetchRequest: one URL, once; page or robots.txt
     jobs       CrawlJob: those with delay 0 are not paced by server address
OUT  pages      Page: what a 2xx or 304 brought, before its outcome
     exchanges  Page: with raw capture any other answer, before its outcome
     outcomes   FetchOutcome: exactly one for every request taken, given back ones included; it frees the host

Decides how, never when or whether: a request that is here is fetched, unless it is too late (start_by), the egress
guard refuses, the server's address has no slot (given back with that address), or the service drains. Nothing is kept:
a request is acked when its page and outcome have been taken. Over a broker partitions come and go: shards.py says what
may still be begun and what goes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.resolver import GuardedResolver, NotLookedUpError, ResolveError
from nephila.downloader.http.contract import Fetcher, FetchError, HttpResponse
from nephila.downloader.http.fetchers import make_fetcher, make_guarded_resolver
from nephila.downloader.http.request import http_request_of
from nephila.downloader.http.target import Target, prefer_counted_address
from nephila.downloader.in_flight import InFlight
from nephila.downloader.limits.address_slots import AddressSlots
from nephila.downloader.limits.partitions import Partitions
from nephila.downloader.limits.slots import Slots
from nephila.downloader.middleware.chain import MiddlewareChain
from nephila.downloader.outcome import REDIRECTS, exchange_of, location_of, outcome_of, page_of, undialled
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.egress import EgressError
from nephila.kernel.outcomes import given_back
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import EXCHANGES, JOBS, OUTCOMES, PAGES, REQUESTS

log = logging.getLogger(__name__)

ROBOTS_REDIRECTS = 5
AddressCheck = Callable[[m.FetchRequest, str, Callable[[bool], None]], None]
"""Request, address, and what is called with the answer: whether it may begin there now."""
# What arrives while draining goes back after a moment: at once, a scheduler that sends on would spin.
_GIVE_BACK_S = 0.1
# A dial that is later than this waits as long once more, so many times at most.
_LATE_S, _LATE_TIMES = 0.05, 4
# How soon one who may not dial asks again.
_ASK_AGAIN_S = 0.1


class Downloader:
    """See the module."""

    def __init__(
        self, config: DownloaderConfig, bus: Bus, clock: Clock, resolver: GuardedResolver, fetcher: Fetcher
    ) -> None:
        self._config = config
        self._bus = bus
        self._clock = clock
        self._resolver = resolver
        self._fetcher = fetcher
        self._fetches: dict[InFlight, None] = {}
        self._host_slots: Slots[InFlight] = Slots(config.per_host)
        limits = AddressLimits(config.per_address, config.address_gap_s, config.networks, "downloader.networks")
        self._address_slots: AddressSlots[InFlight] | None = None if limits.unlimited else AddressSlots(limits)
        self._paced_jobs: dict[str, bool] = {}  # whether a job is paced by address, as far as known
        self._global_slots: Slots[InFlight] = Slots(config.concurrency)
        self.late_address_check: AddressCheck | None = None
        """Asked before a paced fetch on an address that the scheduler has not counted it on; None: nobody else fetches,
        so the guard here knows all."""
        self.on_sent: Callable[[str, float], None] | None = None
        """Called with a paced address and the monotonic instant at which a request was sent there."""
        self.lease_valid: Callable[[], bool] = lambda: True
        """Asked before each dial: False when the requests here may be another member's by now; they wait."""
        self._chain = MiddlewareChain(config, clock, resolver, fetcher)
        self.partitions = Partitions(clock, config.move_s, self._fetches, self._give_back, self._drop)
        self.ended: Counter[m.FetchResult] = Counter()
        self.wire_bytes = 0
        """Received from servers."""

    @property
    def in_flight(self) -> int:
        """Requests taken and not ended."""
        return len(self._fetches)

    async def start(self) -> None:
        """Begin to take jobs and requests."""
        self._bus.subscribe(JOBS, "downloader", self._on_job, credits=self._config.window)
        self._bus.subscribe(REQUESTS, "downloader", self._on_request, credits=self._config.window)

    async def drain(self, grace_s: float) -> None:
        """Take nothing more; what is not dialled goes back at once, the rest after `grace_s` seconds to end."""
        await self.partitions.drain(grace_s)

    async def close(self) -> None:
        """Give back whatever is left and close every connection."""
        await self.drain(0)
        await self._chain.close()
        await self._fetcher.close()
        await self._resolver.close()

    # From delivery to dial

    def _on_job(self, delivery: Delivery) -> None:
        job: m.CrawlJob = delivery.message
        self._chain.on_job(job)
        if job.deleted:
            self._paced_jobs.pop(job.uid, None)
        else:
            self._paced_jobs[job.uid] = job.politeness is not None and job.politeness.delay_s > 0
        delivery.ack()

    def _on_request(self, delivery: Delivery) -> None:
        request: m.FetchRequest = delivery.message
        if self.partitions.is_stale(delivery.partition, request):
            delivery.ack()
            return
        if self.partitions.is_revoked(delivery.partition):
            self._clock.call_at(self._clock.monotonic() + _GIVE_BACK_S, lambda: self._reject(delivery))
            return
        fetch = InFlight(delivery, request)
        self._fetches[fetch] = None
        if self._host_slots.acquire(request.host, fetch):
            self._on_host_slot(fetch)

    def _reject(self, delivery: Delivery) -> None:
        if not delivery.acked:
            delivery.ack_after((self._bus.publish(OUTCOMES, delivery.partition, given_back(delivery.message)),))

    def _on_host_slot(self, fetch: InFlight) -> None:
        fetch.has_host_slot = True
        if self._ends_early(fetch):
            return
        try:
            target = Target(fetch.request.url)
        except ValueError as error:
            self._end_undialled(fetch, m.FetchResult.FAILED, "bad_url", str(error))
            return
        self._resolve(fetch, target)

    def _ends_early(self, fetch: InFlight) -> bool:
        """True when a flight that was not dialled yet must not go on; it has been ended."""
        if self.partitions.is_revoked(fetch.delivery.partition):
            self._give_back(fetch)
            return True
        start_by = fetch.request.start_by
        if start_by and self._clock.now() > start_by:
            self._end_undialled(fetch, m.FetchResult.EXPIRED, "expired", "not started in time")
            return True
        return False

    def _resolve(self, fetch: InFlight, target: Target) -> None:
        """Find out where to dial; without a task when the name is known."""
        fetch.target = target
        try:
            route = self._resolver.cached(target.dial_host, target.port)
        except (EgressError, ResolveError) as error:
            self._on_resolve_error(fetch, error)
            return
        if route is not None:
            self._on_route(fetch, route)
        else:
            fetch.handle = asyncio.get_running_loop().create_task(self._await_resolution(fetch, target))

    async def _await_resolution(self, fetch: InFlight, target: Target) -> None:
        try:
            route = await self._resolver.resolve(target.dial_host, target.port)
        except Exception as error:  # whatever a resolver raises, the request must end
            fetch.handle = None
            self._on_resolve_error(fetch, error)
            return
        fetch.handle = None
        self._on_route(fetch, route)

    def _on_resolve_error(self, fetch: InFlight, error: Exception) -> None:
        if isinstance(error, EgressError):
            self._end_undialled(fetch, m.FetchResult.DENIED, "address", str(error))
        elif isinstance(error, NotLookedUpError):
            self._end_undialled(fetch, m.FetchResult.UNSPECIFIED, "not_resolved", str(error))
        else:
            detail = str(error) if isinstance(error, ResolveError) else f"{type(error).__name__}: {error}"
            self._end_undialled(fetch, m.FetchResult.FAILED, "dns", detail)

    def _on_route(self, fetch: InFlight, route: tuple[tuple[str, ...], int]) -> None:
        fetch.route = route = prefer_counted_address(route, fetch.request.address)
        if self._is_address_busy(fetch):
            return
        address = route[0][0]
        paced = self._address_slots is not None and self._is_paced(fetch.request)
        if self.late_address_check is None or not paced or fetch.dialled or fetch.request.address == address:
            self._acquire_global_slot(fetch)
        else:
            self.late_address_check(fetch.request, address, lambda go: self._on_late_check(fetch, go))

    def _on_late_check(self, fetch: InFlight, go: bool) -> None:
        """Whether a fetch may begin on an address that was new to the scheduler."""
        if fetch not in self._fetches:
            return
        if go:
            self._acquire_global_slot(fetch)
        else:
            self._end_busy(fetch)

    def _acquire_global_slot(self, fetch: InFlight) -> None:
        if fetch.has_global_slot:  # a further hop of a robots.txt
            self._on_global_slot(fetch)
            return
        fetch.has_global_slot = True
        if self._global_slots.acquire("", fetch):
            self._on_global_slot(fetch)

    def _is_address_busy(self, fetch: InFlight) -> bool:
        """True when the address cannot take the request: it goes back, and the scheduler learns the address. What has
        been dialled before waits instead: given back, it would have to ask its own server again."""
        address = fetch.route[0][0]
        if fetch.dialled or self._address_slots is None or not self._is_paced(fetch.request):
            return False
        if not self._address_slots.refuses(address, self._clock.monotonic()):
            return False
        self._end_busy(fetch)
        return True

    def _end_busy(self, fetch: InFlight) -> None:
        outcome = given_back(fetch.request)
        outcome.reason = "busy"
        outcome.address = fetch.route[0][0]
        self._clock.call_soon(lambda: self._end(fetch, outcome, None))

    def _is_paced(self, request: m.FetchRequest) -> bool:
        """robots.txt belongs to no job: it is paced as long as one of them is."""
        if request.job:
            return self._paced_jobs.get(request.job, True)
        return not self._paced_jobs or any(self._paced_jobs.values())

    def _on_global_slot(self, fetch: InFlight) -> None:
        if not fetch.dialled and (self._ends_early(fetch) or self._is_address_busy(fetch)):
            return
        if self._address_slots is None or not self._is_paced(fetch.request):
            self._dial(fetch)
            return
        address = fetch.address = fetch.route[0][0]
        at = self._address_slots.acquire(address, fetch, self._clock.monotonic())
        if at is not None:
            self._dial_at(fetch, at)

    def _dial_at(self, fetch: InFlight, at: float, late: int = 0) -> None:
        """The slot is held. Whether the gap is over is asked when it should be: the loop may have stood still. Then
        what was dialled before may be sent only in the next turns, and the gap counts from there: a call that is
        late waits for those turns first, `_LATE_TIMES` times at most."""
        assert self._address_slots is not None
        now = self._clock.monotonic()
        if fetch.timer is not None and now - at > _LATE_S and late < _LATE_TIMES:
            at, late = now + _LATE_S, late + 1
        elif at <= now:
            at, late = self._address_slots.confirm(fetch.address, now), 0
        if not at:
            self._dial(fetch)
        else:
            fetch.timer = self._clock.call_at(at, lambda: self._dial_at(fetch, at, late))

    def _dial(self, fetch: InFlight) -> None:
        fetch.timer = None
        if not fetch.dialled and self._ends_early(fetch):
            return
        if not self.lease_valid():
            at = self._clock.monotonic() + _ASK_AGAIN_S
            fetch.timer = self._clock.call_at(at, lambda: self._dial(fetch))
            return
        assert fetch.target is not None
        idle = self._chain.skips(fetch.request)
        before = None if idle else self._chain.before_request(fetch.request, fetch.target)
        if before is not None:
            fetch.handle = asyncio.get_running_loop().create_task(self._await_middleware(fetch, before))
            return
        on_sent = (lambda: self._on_sent(fetch)) if fetch.address else None
        http_request = http_request_of(fetch.request, fetch.target, fetch.route, self._config.max_list_bytes, on_sent)
        if not idle:
            self._chain.on_request(fetch.request, http_request)
        if not fetch.dialled:
            fetch.started = self._clock.now()
            fetch.dialled = True
        fetch.handle = self._fetcher.fetch(http_request, lambda response: self._on_response(fetch, response))

    async def _await_middleware(self, fetch: InFlight, before: Coroutine[Any, Any, None]) -> None:
        """Do what has to be done first, such as a login; then dial, or end without."""
        started = self._clock.now()
        try:
            await before
        except FetchError as error:
            fetch.handle = None
            fetch.dialled, fetch.started, fetch.origin_address = True, started, fetch.route[0][0]
            self._end_undialled(fetch, m.FetchResult.FAILED, error.reason, error.detail)
        except Exception as error:
            log.exception("a login failed")
            fetch.handle = None
            self._end_undialled(fetch, m.FetchResult.FAILED, "internal", type(error).__name__)
        else:
            fetch.handle = None
            self._dial(fetch)

    def _on_sent(self, fetch: InFlight) -> None:
        if self._address_slots is not None and fetch.address:
            now = self._clock.monotonic()
            self._address_slots.record_sent(fetch.address, now)
            if self.on_sent is not None:
                self.on_sent(fetch.address, now)

    # From answer to outcome

    def _on_response(self, fetch: InFlight, response: HttpResponse) -> None:
        fetch.handle = None
        request, target = fetch.request, fetch.target
        assert target is not None
        try:
            if not self._chain.skips(request):
                self._chain.on_response(request, target, response)
        except Exception as error:  # a fault of ours must not hold the host for ever
            log.exception("an answer could not be looked at")
            response.reason, response.detail = "internal", type(error).__name__
        is_robots = request.kind == m.FetchKind.ROBOTS
        started = fetch.started
        if (
            is_robots
            and response.status in REDIRECTS
            and not response.reason
            and self._follow_redirect(fetch, response)
        ):
            self._archive(fetch, target, response, started)
            return
        page = None
        try:
            outcome = outcome_of(request, target, response, fetch.started, self._clock.now())
            outcome.address = fetch.origin_address or outcome.address
            if not is_robots and outcome.result in (m.FetchResult.FETCHED, m.FetchResult.NOT_MODIFIED):
                page = page_of(request, response, fetch.started, self._clock.now())
        except Exception as error:  # a fault of ours must not hold the host for ever
            log.exception("an answer could not be read")
            outcome = undialled(request, m.FetchResult.FAILED, "internal", type(error).__name__, self._clock.now())
        if page is None:
            self._archive(fetch, target, response, started)
        self._end(fetch, outcome, page)

    def _archive(self, fetch: InFlight, target: Target, response: HttpResponse, started: float) -> None:
        """With raw capture: an answer that is no page. It is published before the outcome, which may end the URL."""
        if not self._config.raw_capture or not response.status:
            return
        try:
            made = exchange_of(fetch.request, target, response, started, self._clock.now())
            fetch.exchange_receipts.append(self._bus.publish(EXCHANGES, fetch.delivery.partition, made))
        except Exception:  # an archive that lacks one answer is no reason to lose the URL
            log.exception("an answer was not archived")

    def _follow_redirect(self, fetch: InFlight, response: HttpResponse) -> bool:
        """A robots.txt may move up to five times (RFC 9309 2.3.1.2); each hop passes the egress guard anew."""
        assert fetch.target is not None
        if fetch.redirects >= ROBOTS_REDIRECTS or self.partitions.is_revoked(fetch.delivery.partition):
            return False
        try:
            target = location_of(fetch.target, response)
        except ValueError:
            return False
        fetch.redirects += 1
        fetch.origin_address = fetch.origin_address or response.address
        self._release_address_slot(fetch)
        self._resolve(fetch, target)
        return True

    def _end_undialled(self, fetch: InFlight, result: m.FetchResult, reason: str, detail: str) -> None:
        """In the next turn of the loop: the outcome may bring the next request, which may end the same way."""
        outcome = undialled(fetch.request, result, reason, detail, self._clock.now())
        if fetch.dialled:  # a robots.txt redirected to where nobody may or can go
            outcome.started_at = fetch.started
            outcome.address = fetch.origin_address
        self._clock.call_soon(lambda: self._end(fetch, outcome, None))

    def _stop(self, fetch: InFlight) -> None:
        timer, fetch.timer = fetch.timer, None
        if timer is not None:
            timer.cancel()
        handle, fetch.handle = fetch.handle, None
        if isinstance(handle, asyncio.Task):
            handle.cancel()
        elif handle is not None:
            handle.abort()

    def _drop(self, fetch: InFlight) -> None:
        self._stop(fetch)
        self._end(fetch, None, None)

    def _give_back(self, fetch: InFlight) -> None:
        self._stop(fetch)
        outcome = given_back(fetch.request)
        if fetch.dialled:  # the server has seen it: the host rests as after any fetch
            outcome.started_at = fetch.started
            outcome.ended_at = self._clock.now()
            outcome.address = fetch.origin_address or fetch.route[0][0]
        self._end(fetch, outcome, None)

    def _end(self, fetch: InFlight, outcome: m.FetchOutcome | None, page: m.Page | None) -> None:
        """Free the slots first: the outcome may bring the host's next request at once. Without an outcome nothing is
        said."""
        if self._fetches.pop(fetch, self) is self:
            return
        delivery = fetch.delivery
        try:
            # The address first: who gets the place may need just this slot.
            self._release_address_slot(fetch)
            self._release_global_slot(fetch)
            self._release_host_slot(fetch)
        finally:
            told = self._publish(delivery.partition, outcome, page) if outcome is not None else []
            delivery.ack_after((*fetch.exchange_receipts, *told))
            self.partitions.ended()

    def _publish(self, partition: int, outcome: m.FetchOutcome, page: m.Page | None) -> list[Receipt]:
        """Publish the page, then the outcome."""
        receipts = []
        if page is not None:
            try:
                receipts.append(self._bus.publish(PAGES, partition, page))
            except PermanentError as error:
                outcome.result, outcome.reason, outcome.detail = m.FetchResult.FAILED, "too_large", str(error)
        self.ended[outcome.result] += 1
        self.wire_bytes += outcome.wire_bytes
        receipts.append(self._bus.publish(OUTCOMES, partition, outcome))
        return receipts

    def _release_address_slot(self, fetch: InFlight) -> None:
        address, fetch.address = fetch.address, ""
        slots = self._address_slots
        if address and slots is not None and not slots.cancel(address, fetch):
            following = slots.release(address, self._clock.monotonic())
            if following is not None:
                self._dial_at(*following)

    def _release_global_slot(self, fetch: InFlight) -> None:
        if fetch.has_global_slot and not self._global_slots.cancel("", fetch):
            following = self._global_slots.release("")
            if following is not None:
                self._on_global_slot(following)

    def _release_host_slot(self, fetch: InFlight) -> None:
        host = fetch.request.host
        if fetch.has_host_slot:
            following = self._host_slots.release(host)
            if following is not None:
                self._on_host_slot(following)
        else:
            self._host_slots.cancel(host, fetch)


def build(config: DownloaderConfig, bus: Bus, clock: Clock) -> Downloader:
    """The downloader with everything it stands on; raises `UsageError` for settings that make no sense."""
    return Downloader(config, bus, clock, make_guarded_resolver(config, clock), make_fetcher(config, clock))
