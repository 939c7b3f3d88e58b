"""Every stage of the pipeline with every way in which a request can end there: one outcome, one ack, all slots free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.contract import NotLookedUpError, ResolveError
from nephila.downloader.http.contract import FetchError, HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.in_flight import InFlight, Stage
from nephila.downloader.limits.fair_slots import SLOW
from nephila.downloader.middleware.chain import MiddlewareChain
from nephila.downloader.middleware.contract import Middleware, PausedError
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.documents.job_schema import Politeness
from nephila.kernel.messages import FetchResult
from nephila.kernel.topics import JOBS

from tests.downloader.downloader_room import Fetch, answer
from tests.jobs import crawl_job
from tests.proxies.proxy_room import ProxyRoom as Room
from tests.proxies.proxy_room import add_proxies

KEY, OTHER = b"k" * 16, b"o" * 16
MINE = frozenset({5})
WAITING = [stage for stage in Stage if stage < Stage.DIAL]
"""Stages in which a request can wait before it is dialled."""
NAME = attrgetter("name")


class Waiting:
    """A request in one stage, in a downloader with one slot of each kind, and what lets the request continue."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = stage
        self.replies: list[Callable[[bool], None]] = []
        self.is_member = stage is not Stage.MEMBERSHIP
        self.resolved, self.worked = asyncio.Event(), asyncio.Event()
        self.fault: Exception | None = None
        """Raised by the resolver, or by the work before the request."""
        self.acks: list[Delivery] = []
        ack_after = Delivery.ack_after

        def noted(delivery: Delivery, receipts: Any) -> None:
            self.acks.append(delivery)
            ack_after(delivery, receipts)

        monkeypatch.setattr(Delivery, "ack_after", noted)
        self.room = Room(
            Coordination(late_address_check=self._check, membership_valid=lambda: self.is_member),
            proxies=["http://p:1"] if stage is Stage.PROXY else [],
            concurrency=1,
            per_host=1,
            per_address=1,
            address_gap_s=1.0,
            proxies__slots=1,
            move_s=2.0,
        )
        self._resolve = self.room.names.resolve
        self.room.names.resolve = self._resolve_later  # type: ignore[method-assign]
        self.chain = self.room.downloader.chain
        self.chain.before_request = self._work  # type: ignore[method-assign]

    def _check(self, request: m.FetchRequest, address: str, reply: Callable[[bool], None]) -> None:
        if self.stage is Stage.ADDRESS_CHECK and request.url_key == KEY:
            self.replies.append(reply)
        else:
            reply(True)

    async def _resolve_later(self, host: str) -> Any:
        if self.stage is Stage.RESOLVE and host == "a.test":
            await self.resolved.wait()
            if self.fault is not None:
                raise self.fault
        return await self._resolve(host)

    def _work(self, request: m.FetchRequest, target: object) -> Any:
        if self.stage is not Stage.MIDDLEWARE or self.worked.is_set():
            return None

        async def work() -> None:
            await self.worked.wait()
            if self.fault is not None:
                raise self.fault

        return work()

    async def arrive(self, url: str = "http://a.test/", **fields: Any) -> Waiting:
        """Send the request and what it has to wait for."""
        room, stage = self.room, self.stage
        await room.downloader.start()
        room.bus.publish(JOBS, 0, crawl_job("j", politeness=Politeness(delay="1s")))
        room.names.table["b.test"] = ("9.9.9.9",)
        for proxy in room.pool.proxies():
            room.pool.start_use(proxy)
        if stage in (Stage.HOST_SLOT, Stage.GLOBAL_SLOT, Stage.ADDRESS_SLOT):
            host = "b.test" if stage is Stage.GLOBAL_SLOT else "a.test"
            room.request(f"http://{host}/0", partition=6, url_key=OTHER)
            await room.settle()
            if stage is Stage.ADDRESS_SLOT:  # the request ends, and its gap remains
                room.reply(0, answer())
        room.request(url, **({"wait_s": 1.0} if stage is Stage.HOST_GAP else {}), **fields)
        await room.settle()
        self.request: InFlight = next(one for one in room.downloader._fetches if one.delivery.partition == 5)
        self.delivery = self.request.delivery
        assert self.request.stage is stage
        return self

    async def go_on(self) -> None:
        """End what the request waits for."""
        if self.stage in (Stage.HOST_SLOT, Stage.GLOBAL_SLOT):
            self.room.reply(0, answer())
        self._open()
        await self.pass_time(1.1)  # the gap of the address

    def _open(self) -> None:
        self.is_member = True
        self.resolved.set()
        self.worked.set()
        for reply in self.replies:
            reply(True)
        for proxy in self.room.pool.proxies():
            if proxy.used:
                self.room.pool.end_use(proxy)

    async def pass_time(self, seconds: float) -> None:
        """Let timers and tasks run."""
        await self.room.settle()
        self.room.clock.advance(seconds)
        await self.room.settle()

    @property
    def outcomes(self) -> list[m.FetchOutcome]:
        """Those of the request."""
        return [outcome for outcome in self.room.outcomes if outcome.url_key == KEY]

    @property
    def dialled(self) -> list[Fetch]:
        """The fetches of the request."""
        return [fetch for fetch in self.room.fetcher.fetches if fetch.request.target.path != "/0"]

    async def check_ended(self, *, drained: bool = False) -> None:
        """No later event has an effect; the next request of the host finds all slots free."""
        room, ended = self.room, list(self.outcomes)
        if not drained and room.downloader.in_flight:  # the request that this one waited for
            room.reply(0, answer())
        self.fault = None
        self._open()
        for fetch in room.fetcher.fetches:
            if fetch.aborted:
                fetch.on_done(answer())
        await self.pass_time(60)
        assert self.outcomes == ended
        assert [one for one in self.acks if one is self.delivery] == [self.delivery]
        assert (room.downloader.in_flight, room.bus.unacked) == (0, 0)
        assert (self.request.stage, self.request.timer, self.request.handle) == (Stage.ENDED, None, None)
        pipeline = room.downloader._pipeline
        assert (pipeline.global_stage.fetching, pipeline.global_stage.slots.waiting) == (0, 0)
        assert [pipeline._host_slots.held(host) for host in ("a.test", "b.test")] == [0, 0]
        assert pipeline.address_stage._slots is not None
        assert [pipeline.address_stage._slots._pace.in_flight(ip) for ip in ("8.8.8.8", "9.9.9.9")] == [0, 0]
        assert [proxy.used for proxy in room.pool.proxies()] == [0] * (self.stage is Stage.PROXY)
        if not drained:
            before = len(room.fetcher.fetches)
            room.names.table["a.test"] = ("8.8.8.8",)
            room.request("http://a.test/next", partition=6, url_key=OTHER)
            await self.pass_time(1.1)
            assert room.fetcher.urls[before:] == ["http://a.test/next"]
            room.reply(before, answer())


def result_of(waiting: Waiting) -> tuple[FetchResult, str, bool]:
    """Result and reason of the only outcome, and whether a server was dialled."""
    (outcome,) = waiting.outcomes
    return outcome.result, outcome.reason, outcome.started_at > 0


# ---- ends that come from outside, in any stage


@pytest.mark.parametrize("stage", [*WAITING, Stage.RESPONSE], ids=NAME)
async def test_a_lost_partition(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """No outcome: the partition belongs to another member."""
    waiting = await Waiting(stage, monkeypatch).arrive()
    waiting.room.downloader.partitions.on_lost(MINE)
    assert waiting.outcomes == []
    assert [fetch.aborted for fetch in waiting.dialled] == [True] * (stage is Stage.RESPONSE)
    await waiting.check_ended()


@pytest.mark.parametrize("stage", WAITING, ids=NAME)
async def test_a_revoked_partition_before_the_dial(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given back at once, undialled; nothing is left to wait for."""
    waiting = await Waiting(stage, monkeypatch).arrive()
    await waiting.room.downloader.partitions.on_revoking(MINE)
    assert result_of(waiting) == (FetchResult.UNSPECIFIED, "", False)
    assert waiting.dialled == []
    await waiting.check_ended()


async def test_a_revoked_partition_during_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetch is aborted after `move_s`, and given back as dialled."""
    waiting = await Waiting(Stage.RESPONSE, monkeypatch).arrive()
    revoking = asyncio.ensure_future(waiting.room.downloader.partitions.on_revoking(MINE))
    await waiting.pass_time(1.9)
    assert waiting.outcomes == []
    await waiting.pass_time(0.1)
    await revoking
    assert result_of(waiting) == (FetchResult.UNSPECIFIED, "", True)
    assert waiting.outcomes[0].address == "8.8.8.8"
    assert waiting.dialled[0].aborted
    await waiting.check_ended()


@pytest.mark.parametrize("stage", [*WAITING, Stage.RESPONSE], ids=NAME)
@pytest.mark.parametrize("is_closed", [False, True], ids=["drain", "close"])
async def test_a_drain(stage: Stage, is_closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given back, also by a close."""
    waiting = await Waiting(stage, monkeypatch).arrive()
    await (waiting.room.downloader.close() if is_closed else waiting.room.downloader.drain(0.0))
    assert result_of(waiting) == (FetchResult.UNSPECIFIED, "", stage is Stage.RESPONSE)
    assert waiting.room.fetcher.closed is is_closed
    await waiting.check_ended(drained=True)


@pytest.mark.parametrize("stage", WAITING, ids=NAME)
async def test_a_request_that_may_not_start_any_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """`start_by` passes while the request waits: expired, undialled."""
    waiting = Waiting(stage, monkeypatch)
    await waiting.arrive(start_by=waiting.room.clock.now() + 0.05)
    waiting.room.clock.advance(0.06)
    await waiting.go_on()
    assert result_of(waiting) == (FetchResult.EXPIRED, "expired", False)
    assert waiting.dialled == []
    await waiting.check_ended()


@pytest.mark.parametrize("stage", [*WAITING, Stage.RESPONSE], ids=NAME)
async def test_an_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the request waited, it is dialled once, and its answer counts; `start_by` is for the dial only."""
    waiting = Waiting(stage, monkeypatch)
    await waiting.arrive(start_by=waiting.room.clock.now() + 5)
    await waiting.go_on()
    await waiting.pass_time(10)
    (fetch,) = waiting.dialled
    fetch.on_done(answer(200, b"<p>", content_type="text/html"))
    assert result_of(waiting) == (FetchResult.FETCHED, "", True)
    assert [page.body for page in waiting.room.pages if page.url_key == KEY] == [b"<p>"]
    await waiting.check_ended()


# ---- ends of a stage's own

Cause = Callable[[Waiting], None]


def fails(error: Exception) -> Cause:
    """The look-up, or the work before the request, raises."""

    def cause(waiting: Waiting) -> None:
        waiting.fault = error

    return cause


def hook_raises(name: str, error: Exception) -> Cause:
    """A hook of a middleware raises."""

    def cause(waiting: Waiting) -> None:
        def hook(*_: object) -> None:
            raise error

        setattr(waiting.chain, name, hook)

    return cause


def moves_inwards(waiting: Waiting) -> None:
    """The name leads to a private address."""
    waiting.room.names.table["a.test"] = ("10.0.0.1",)


def is_refused(waiting: Waiting) -> None:
    """The scheduler refuses the address."""
    waiting.replies.pop()(False)


def becomes_busy(waiting: Waiting) -> None:
    """Another fetch takes the address before the request has its slot of the downloader."""
    slots, now = waiting.room.downloader._pipeline.address_stage._slots, waiting.room.clock.monotonic()
    assert slots is not None
    holder: Any = object()
    assert slots.acquire("8.8.8.8", holder, now) == now
    waiting.room.clock.call_at(now + 30, lambda: slots.release("8.8.8.8", now + 30))


def is_slow(waiting: Waiting) -> None:
    """The host has answered slowly before, and the slot is in use."""
    waiting.room.downloader._pipeline.global_stage.speeds.learn("a.test", SLOW)
    waiting.room.request("http://b.test/0", partition=6, url_key=OTHER)


def loses_its_proxy(waiting: Waiting) -> None:
    """The list has no proxy any more."""
    waiting.room.pool.replace("test", [])


OWN_ENDS: dict[str, tuple[Stage, Cause, FetchResult, str, bool]] = {
    "no such name": (Stage.RESOLVE, fails(ResolveError("gone", True)), FetchResult.FAILED, "dns", False),
    "fault of the resolver": (Stage.RESOLVE, fails(RuntimeError("x")), FetchResult.FAILED, "dns", False),
    "too many look-ups": (Stage.RESOLVE, fails(NotLookedUpError("x")), FetchResult.UNSPECIFIED, "not_resolved", False),
    "private address": (Stage.RESOLVE, moves_inwards, FetchResult.DENIED, "address", False),
    "address refused": (Stage.ADDRESS_CHECK, is_refused, FetchResult.UNSPECIFIED, "busy", False),
    "slow host without a slot": (Stage.RESOLVE, is_slow, FetchResult.UNSPECIFIED, "slow", False),
    "address busy": (Stage.GLOBAL_SLOT, becomes_busy, FetchResult.UNSPECIFIED, "busy", False),
    "login failed": (Stage.MIDDLEWARE, fails(FetchError("login", "403")), FetchResult.FAILED, "login", True),
    "login paused": (
        Stage.MIDDLEWARE, fails(PausedError("login", "x", 7.0)), FetchResult.UNSPECIFIED, "login", False,
    ),
    "fault before": (Stage.MIDDLEWARE, fails(RuntimeError("x")), FetchResult.FAILED, "internal", False),
    "no proxy": (Stage.PROXY, loses_its_proxy, FetchResult.UNSPECIFIED, "proxy", False),
    "request refused": (
        Stage.MEMBERSHIP, hook_raises("on_request", FetchError("signature", "x")), FetchResult.FAILED, "signature",
        False,
    ),
    "fault at the dial": (
        Stage.MEMBERSHIP, hook_raises("on_request", RuntimeError("x")), FetchResult.FAILED, "internal", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("stage", "cause", "result", "reason", "dialled"), OWN_ENDS.values(), ids=OWN_ENDS.keys())
async def test_an_end_of_the_stage(
    stage: Stage, cause: Cause, result: FetchResult, reason: str, dialled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the table of the stages names."""
    waiting = await Waiting(stage, monkeypatch).arrive()
    chain = waiting.chain.on_request
    cause(waiting)
    await waiting.room.settle()
    await waiting.go_on()
    assert result_of(waiting) == (result, reason, dialled)
    assert waiting.dialled == []
    assert waiting.room.downloader.slow_given_back == (reason == "slow")
    waiting.chain.on_request = chain  # type: ignore[method-assign]
    if stage is Stage.PROXY:
        add_proxies(waiting.room.pool, ["http://p:1"], waiting.room.clock.monotonic())
    waiting.room.names.table["a.test"] = ("8.8.8.8",)
    await waiting.check_ended()


async def test_a_url_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends in RESOLVE, after it had its slot of the host."""
    waiting = await Waiting(Stage.HOST_SLOT, monkeypatch).arrive("ftp://a.test/")
    await waiting.go_on()
    assert result_of(waiting) == (FetchResult.FAILED, "bad_url", False)
    await waiting.check_ended()


class Faulty(Middleware):
    """Raises at each response."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        raise self._fault


RESPONSES: dict[str, tuple[HttpResponse, Exception | None, FetchResult, str]] = {
    "an error page": (answer(404), None, FetchResult.FAILED, "http_404"),
    "a redirect": (answer(301, location="/x"), None, FetchResult.REDIRECT, ""),
    "a time limit": (answer(0, reason="timeout"), None, FetchResult.FAILED, "timeout"),
    "a dead connection": (answer(0, reason="stale"), None, FetchResult.UNSPECIFIED, "stale"),
    "no memory": (answer(0, reason="memory"), None, FetchResult.UNSPECIFIED, "memory"),
    "a picture": (answer(200, reason="content_type"), None, FetchResult.CONTENT_TYPE, "content_type"),
    "a page that a middleware refuses": (answer(200), FetchError("blocked", "x"), FetchResult.FAILED, "blocked"),
    "a fault of a middleware": (answer(200), RuntimeError("x"), FetchResult.FAILED, "internal"),
}


@pytest.mark.parametrize(("made", "fault", "result", "reason"), RESPONSES.values(), ids=RESPONSES.keys())
async def test_an_end_of_the_fetch(
    made: HttpResponse, fault: Exception | None, result: FetchResult, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is an outcome of a request that was dialled; there is no page."""
    waiting = await Waiting(Stage.RESPONSE, monkeypatch).arrive()
    hooks = dict(waiting.chain._by_job)
    if fault is not None:
        waiting.chain._by_job["j"] = MiddlewareChain([Faulty(fault)])._without_job
    waiting.dialled[0].on_done(made)
    assert result_of(waiting) == (result, reason, True)
    assert [page for page in waiting.room.pages if page.url_key == KEY] == []
    waiting.chain._by_job = hooks
    await waiting.check_ended()


async def test_a_slow_fetch_that_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host waits for its slot: the fetch is aborted, and its host pauses."""
    waiting = await Waiting(Stage.RESPONSE, monkeypatch).arrive()
    waiting.room.downloader._pipeline.give_back(waiting.request, "slow", 15.0)
    assert result_of(waiting) == (FetchResult.UNSPECIFIED, "slow", True)
    assert (waiting.outcomes[0].retry_after_s, waiting.dialled[0].aborted) == (15.0, True)
    await waiting.check_ended()
