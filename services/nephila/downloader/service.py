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
from nephila.downloader.dns.resolver import Egress, NotAskedError, ResolveError
from nephila.downloader.http.contract import Answer, Fetcher, FetchError
from nephila.downloader.http.fetchers import make_egress, make_fetcher
from nephila.downloader.http.request import order_of
from nephila.downloader.http.target import Target, counted_first
from nephila.downloader.in_flight import Flight
from nephila.downloader.limits.address_slots import AddressSlots
from nephila.downloader.limits.partitions import Shards
from nephila.downloader.limits.slots import Slots
from nephila.downloader.middleware.chain import Chain
from nephila.downloader.outcome import REDIRECTS, exchange_of, location_of, outcome_of, page_of, unfetched
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.net.address_limits import Networks
from nephila.kernel.net.egress import EgressError
from nephila.kernel.outcomes import given_back
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import EXCHANGES, JOBS, OUTCOMES, PAGES, REQUESTS

log = logging.getLogger(__name__)

ROBOTS_REDIRECTS = 5
Contact = Callable[[m.FetchRequest, str, Callable[[bool], None]], None]
"""Request, address, and what is called with the answer: whether it may begin there now."""
# What arrives while draining goes back after a moment: at once, a scheduler that sends on would spin.
_GIVE_BACK_S = 0.1
# A dial that is later than this waits as long once more, so many times at most.
_LATE_S, _LATE_TIMES = 0.05, 4
# How soon one who may not dial asks again.
_ASK_AGAIN_S = 0.1


class Downloader:
    """See the module."""

    def __init__(self, config: DownloaderConfig, bus: Bus, clock: Clock, egress: Egress, fetcher: Fetcher) -> None:
        self._config = config
        self._bus = bus
        self._clock = clock
        self._egress = egress
        self._fetcher = fetcher
        self._flights: dict[Flight, None] = {}
        self._hosts: Slots[Flight] = Slots(config.per_host)
        networks = Networks(config.per_address, config.address_gap_s, config.networks, "downloader.networks")
        self._addresses: AddressSlots[Flight] | None = None if networks.unlimited else AddressSlots(networks)
        self._paced: dict[str, bool] = {}  # whether a job is paced by address, as far as known
        self._everybody: Slots[Flight] = Slots(config.concurrency)
        self.contact: Contact | None = None
        """Asked before a paced fetch on an address that the scheduler has not counted it on; None: nobody else fetches,
        so the guard here knows all."""
        self.on_sent: Callable[[str, float], None] | None = None
        """Called with a paced address and the monotonic instant at which a request was sent there."""
        self.may_dial: Callable[[], bool] = lambda: True
        """Asked before each dial: False when the requests here may be another member's by now; they wait."""
        self._chain = Chain(config, clock, egress, fetcher)
        self.shards = Shards(clock, config.move_s, self._flights, self._give_back, self._drop)
        self.ended: Counter[m.FetchResult] = Counter()
        self.wire_bytes = 0
        """Received from servers."""

    @property
    def in_flight(self) -> int:
        """Requests taken and not ended."""
        return len(self._flights)

    async def start(self) -> None:
        """Begin to take jobs and requests."""
        self._bus.subscribe(JOBS, "downloader", self._on_job, credits=self._config.window)
        self._bus.subscribe(REQUESTS, "downloader", self._take, credits=self._config.window)

    async def drain(self, grace_s: float) -> None:
        """Take nothing more; what is not dialled goes back at once, the rest after `grace_s` seconds to end."""
        await self.shards.drain(grace_s)

    async def close(self) -> None:
        """Give back whatever is left and close every connection."""
        await self.drain(0)
        await self._chain.close()
        await self._fetcher.close()
        await self._egress.close()

    # From delivery to dial

    def _on_job(self, delivery: Delivery) -> None:
        job: m.CrawlJob = delivery.message
        self._chain.on_job(job)
        if job.deleted:
            self._paced.pop(job.uid, None)
        else:
            self._paced[job.uid] = job.politeness is not None and job.politeness.delay_s > 0
        delivery.ack()

    def _take(self, delivery: Delivery) -> None:
        request: m.FetchRequest = delivery.message
        if self.shards.is_stale(delivery.partition, request):
            delivery.ack()
            return
        if self.shards.is_leaving(delivery.partition):
            self._clock.call_at(self._clock.monotonic() + _GIVE_BACK_S, lambda: self._refuse(delivery))
            return
        flight = Flight(delivery, request)
        self._flights[flight] = None
        if self._hosts.take(request.host, flight):
            self._with_host(flight)

    def _refuse(self, delivery: Delivery) -> None:
        if not delivery.acked:
            delivery.ack_after((self._bus.publish(OUTCOMES, delivery.partition, given_back(delivery.message)),))

    def _with_host(self, flight: Flight) -> None:
        flight.has_host = True
        if self._is_over(flight):
            return
        try:
            target = Target(flight.request.url)
        except ValueError as error:
            self._end_unfetched(flight, m.FetchResult.FAILED, "bad_url", str(error))
            return
        self._locate(flight, target)

    def _is_over(self, flight: Flight) -> bool:
        """True when a flight that was not dialled yet must not go on; it has been ended."""
        if self.shards.is_leaving(flight.delivery.partition):
            self._give_back(flight)
            return True
        start_by = flight.request.start_by
        if start_by and self._clock.now() > start_by:
            self._end_unfetched(flight, m.FetchResult.EXPIRED, "expired", "not started in time")
            return True
        return False

    def _locate(self, flight: Flight, target: Target) -> None:
        """Find out where to dial; without a task when the name is known."""
        flight.target = target
        try:
            place = self._egress.known(target.dial_host, target.port)
        except (EgressError, ResolveError) as error:
            self._on_no_place(flight, error)
            return
        if place is not None:
            self._on_place(flight, place)
        else:
            flight.handle = asyncio.get_running_loop().create_task(self._ask(flight, target))

    async def _ask(self, flight: Flight, target: Target) -> None:
        try:
            place = await self._egress.place(target.dial_host, target.port)
        except Exception as error:  # whatever a resolver raises, the request must end
            flight.handle = None
            self._on_no_place(flight, error)
            return
        flight.handle = None
        self._on_place(flight, place)

    def _on_no_place(self, flight: Flight, error: Exception) -> None:
        if isinstance(error, EgressError):
            self._end_unfetched(flight, m.FetchResult.DENIED, "address", str(error))
        elif isinstance(error, NotAskedError):
            self._end_unfetched(flight, m.FetchResult.UNSPECIFIED, "not_resolved", str(error))
        else:
            detail = str(error) if isinstance(error, ResolveError) else f"{type(error).__name__}: {error}"
            self._end_unfetched(flight, m.FetchResult.FAILED, "dns", detail)

    def _on_place(self, flight: Flight, place: tuple[tuple[str, ...], int]) -> None:
        flight.place = place = counted_first(place, flight.request.address)
        if self._has_no_slot(flight):
            return
        address = place[0][0]
        paced = self._addresses is not None and self._is_paced(flight.request)
        if self.contact is None or not paced or flight.dialled or flight.request.address == address:
            self._with_address(flight)
        else:
            self.contact(flight.request, address, lambda go: self._contacted(flight, go))

    def _contacted(self, flight: Flight, go: bool) -> None:
        """Whether a fetch may begin on an address that was new to the scheduler."""
        if flight not in self._flights:
            return
        if go:
            self._with_address(flight)
        else:
            self._end_busy(flight)

    def _with_address(self, flight: Flight) -> None:
        if flight.counted:  # a further hop of a robots.txt
            self._with_place(flight)
            return
        flight.counted = True
        if self._everybody.take("", flight):
            self._with_place(flight)

    def _has_no_slot(self, flight: Flight) -> bool:
        """True when the address cannot take the request: it goes back, and the scheduler learns the address. What has
        been dialled before waits instead: given back, it would have to ask its own server again."""
        address = flight.place[0][0]
        if flight.dialled or self._addresses is None or not self._is_paced(flight.request):
            return False
        if not self._addresses.refuses(address, self._clock.monotonic()):
            return False
        self._end_busy(flight)
        return True

    def _end_busy(self, flight: Flight) -> None:
        outcome = given_back(flight.request)
        outcome.reason = "busy"
        outcome.address = flight.place[0][0]
        self._clock.call_soon(lambda: self._end(flight, outcome, None))

    def _is_paced(self, request: m.FetchRequest) -> bool:
        """robots.txt belongs to no job: it is paced as long as one of them is."""
        if request.job:
            return self._paced.get(request.job, True)
        return not self._paced or any(self._paced.values())

    def _with_place(self, flight: Flight) -> None:
        if not flight.dialled and (self._is_over(flight) or self._has_no_slot(flight)):
            return
        if self._addresses is None or not self._is_paced(flight.request):
            self._dial(flight)
            return
        address = flight.address = flight.place[0][0]
        at = self._addresses.take(address, flight, self._clock.monotonic())
        if at is not None:
            self._dial_at(flight, at)

    def _dial_at(self, flight: Flight, at: float, late: int = 0) -> None:
        """The slot is held. Whether the gap is over is asked when it should be: the loop may have stood still. Then
        what was dialled before may be sent only in the next turns, and the gap counts from there: a call that is
        late waits for those turns first, `_LATE_TIMES` times at most."""
        assert self._addresses is not None
        now = self._clock.monotonic()
        if flight.timer is not None and now - at > _LATE_S and late < _LATE_TIMES:
            at, late = now + _LATE_S, late + 1
        elif at <= now:
            at, late = self._addresses.confirm(flight.address, now), 0
        if not at:
            self._dial(flight)
        else:
            flight.timer = self._clock.call_at(at, lambda: self._dial_at(flight, at, late))

    def _dial(self, flight: Flight) -> None:
        flight.timer = None
        if not flight.dialled and self._is_over(flight):
            return
        if not self.may_dial():
            at = self._clock.monotonic() + _ASK_AGAIN_S
            flight.timer = self._clock.call_at(at, lambda: self._dial(flight))
            return
        assert flight.target is not None
        idle = self._chain.is_idle(flight.request)
        before = None if idle else self._chain.prepare(flight.request, flight.target)
        if before is not None:
            flight.handle = asyncio.get_running_loop().create_task(self._prepare(flight, before))
            return
        on_sent = (lambda: self._on_sent(flight)) if flight.address else None
        order = order_of(flight.request, flight.target, flight.place, self._config.max_list_bytes, on_sent)
        if not idle:
            self._chain.outgoing(flight.request, order)
        if not flight.dialled:
            flight.started = self._clock.now()
            flight.dialled = True
        flight.handle = self._fetcher.fetch(order, lambda answer: self._on_answer(flight, answer))

    async def _prepare(self, flight: Flight, before: Coroutine[Any, Any, None]) -> None:
        """Do what has to be done first, such as a login; then dial, or end without."""
        started = self._clock.now()
        try:
            await before
        except FetchError as error:
            flight.handle = None
            flight.dialled, flight.started, flight.home = True, started, flight.place[0][0]
            self._end_unfetched(flight, m.FetchResult.FAILED, error.reason, error.detail)
        except Exception as error:
            log.exception("a login failed")
            flight.handle = None
            self._end_unfetched(flight, m.FetchResult.FAILED, "internal", type(error).__name__)
        else:
            flight.handle = None
            self._dial(flight)

    def _on_sent(self, flight: Flight) -> None:
        if self._addresses is not None and flight.address:
            now = self._clock.monotonic()
            self._addresses.sent(flight.address, now)
            if self.on_sent is not None:
                self.on_sent(flight.address, now)

    # From answer to outcome

    def _on_answer(self, flight: Flight, answer: Answer) -> None:
        flight.handle = None
        request, target = flight.request, flight.target
        assert target is not None
        try:
            if not self._chain.is_idle(request):
                self._chain.incoming(request, target, answer)
        except Exception as error:  # a fault of ours must not hold the host for ever
            log.exception("an answer could not be looked at")
            answer.reason, answer.detail = "internal", type(error).__name__
        is_robots = request.kind == m.FetchKind.ROBOTS
        started = flight.started
        if is_robots and answer.status in REDIRECTS and not answer.reason and self._follow(flight, answer):
            self._archive(flight, target, answer, started)
            return
        page = None
        try:
            outcome = outcome_of(request, target, answer, flight.started, self._clock.now())
            outcome.address = flight.home or outcome.address
            if not is_robots and outcome.result in (m.FetchResult.FETCHED, m.FetchResult.NOT_MODIFIED):
                page = page_of(request, answer, flight.started, self._clock.now())
        except Exception as error:  # a fault of ours must not hold the host for ever
            log.exception("an answer could not be read")
            outcome = unfetched(request, m.FetchResult.FAILED, "internal", type(error).__name__, self._clock.now())
        if page is None:
            self._archive(flight, target, answer, started)
        self._end(flight, outcome, page)

    def _archive(self, flight: Flight, target: Target, answer: Answer, started: float) -> None:
        """With raw capture: an answer that is no page. It is published before the outcome, which may end the URL."""
        if not self._config.raw_capture or not answer.status:
            return
        try:
            made = exchange_of(flight.request, target, answer, started, self._clock.now())
            flight.archived.append(self._bus.publish(EXCHANGES, flight.delivery.partition, made))
        except Exception:  # an archive that lacks one answer is no reason to lose the URL
            log.exception("an answer was not archived")

    def _follow(self, flight: Flight, answer: Answer) -> bool:
        """A robots.txt may move up to five times (RFC 9309 2.3.1.2); each hop passes the egress guard anew."""
        assert flight.target is not None
        if flight.hops >= ROBOTS_REDIRECTS or self.shards.is_leaving(flight.delivery.partition):
            return False
        try:
            target = location_of(flight.target, answer)
        except ValueError:
            return False
        flight.hops += 1
        flight.home = flight.home or answer.address
        self._leave_address(flight)
        self._locate(flight, target)
        return True

    def _end_unfetched(self, flight: Flight, result: m.FetchResult, reason: str, detail: str) -> None:
        """In the next turn of the loop: the outcome may bring the next request, which may end the same way."""
        outcome = unfetched(flight.request, result, reason, detail, self._clock.now())
        if flight.dialled:  # a robots.txt redirected to where nobody may or can go
            outcome.started_at = flight.started
            outcome.address = flight.home
        self._clock.call_soon(lambda: self._end(flight, outcome, None))

    def _stop(self, flight: Flight) -> None:
        timer, flight.timer = flight.timer, None
        if timer is not None:
            timer.cancel()
        handle, flight.handle = flight.handle, None
        if isinstance(handle, asyncio.Task):
            handle.cancel()
        elif handle is not None:
            handle.abort()

    def _drop(self, flight: Flight) -> None:
        self._stop(flight)
        self._end(flight, None, None)

    def _give_back(self, flight: Flight) -> None:
        self._stop(flight)
        outcome = given_back(flight.request)
        if flight.dialled:  # the server has seen it: the host rests as after any fetch
            outcome.started_at = flight.started
            outcome.ended_at = self._clock.now()
            outcome.address = flight.home or flight.place[0][0]
        self._end(flight, outcome, None)

    def _end(self, flight: Flight, outcome: m.FetchOutcome | None, page: m.Page | None) -> None:
        """Free the slots first: the outcome may bring the host's next request at once. Without an outcome nothing is
        said."""
        if self._flights.pop(flight, self) is self:
            return
        delivery = flight.delivery
        try:
            # The address first: who gets the place may need just this slot.
            self._leave_address(flight)
            self._leave_everybody(flight)
            self._leave_host(flight)
        finally:
            told = self._told(delivery.partition, outcome, page) if outcome is not None else []
            delivery.ack_after((*flight.archived, *told))
            self.shards.ended()

    def _told(self, partition: int, outcome: m.FetchOutcome, page: m.Page | None) -> list[Receipt]:
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

    def _leave_address(self, flight: Flight) -> None:
        address, flight.address = flight.address, ""
        slots = self._addresses
        if address and slots is not None and not slots.forget(address, flight):
            following = slots.give(address, self._clock.monotonic())
            if following is not None:
                self._dial_at(*following)

    def _leave_everybody(self, flight: Flight) -> None:
        if flight.counted and not self._everybody.forget("", flight):
            following = self._everybody.give("")
            if following is not None:
                self._with_place(following)

    def _leave_host(self, flight: Flight) -> None:
        host = flight.request.host
        if flight.has_host:
            following = self._hosts.give(host)
            if following is not None:
                self._with_host(following)
        else:
            self._hosts.forget(host, flight)


def build(config: DownloaderConfig, bus: Bus, clock: Clock) -> Downloader:
    """The downloader with everything it stands on; raises `UsageError` for settings that make no sense."""
    return Downloader(config, bus, clock, make_egress(config, clock), make_fetcher(config, clock))
