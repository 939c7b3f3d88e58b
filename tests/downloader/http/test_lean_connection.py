"""The lean connection without a network: for any bytes in any pieces a fetch ends once, and always in the same way."""

from __future__ import annotations

import asyncio
import gzip
import random
from typing import Any

import pytest
from fetcher_server import Server, get, request_at, response
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.lean import STAGGER_S, LeanFetcher
from nephila.downloader.http.lean_conn import Connection
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.runtime.clock import ManualClock

from tests.fetcher_fixtures import settings

KEY = ("127.0.0.1", 80, "a.test", "http")
TARGET = TargetUrl("http://a.test/")
REQUEST = HttpRequest(TARGET, direct_route(TARGET, ("127.0.0.1",), 80))


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        """See asyncio."""
        self.sent.append(data)

    def abort(self) -> None:
        """See asyncio."""
        self.aborted = True


class Line:
    """A fetcher with one connection whose far end is the test."""

    def __init__(self, **settings: Any) -> None:
        self.fetcher = LeanFetcher(DownloaderConfig(**settings), ManualClock())
        self.wire = Wire()
        self.connection = Connection(self.fetcher, KEY)
        self.connection.connection_made(self.wire)  # type: ignore[arg-type]
        self.fetcher._pool.put(KEY, self.connection, 0.0)
        self.answers: list[HttpResponse] = []

    def ask(self) -> None:
        """One request on the connection."""
        self.fetcher.fetch(REQUEST, self.answers.append)

    def say(self, data: bytes, *cuts: int) -> None:
        """The far end sends this, cut at these places."""
        at = 0
        for cut in (*cuts, len(data)):
            while at < cut and not self.wire.aborted:
                view = self.connection.get_buffer(-1)
                size = min(len(view), cut - at)
                view[:size] = data[at : at + size]
                self.connection.buffer_updated(size)
                at += size

    def hang_up(self) -> None:
        """The peer closes; an aborted transport has called its protocol already."""
        self.connection.connection_lost(None)


def result(data: bytes, *cuts: int) -> tuple[int, str, bytes]:
    """How a fetch of these bytes ends."""
    line = Line()
    line.ask()
    line.say(data, *cuts)
    line.hang_up()
    (answer,) = line.answers
    return answer.status, answer.reason, answer.body


BODY = b"<p>" + bytes(range(256)) * 3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PACKED = gzip.compress(BODY)
MESSAGES = [
    HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n3;a=b\r\nend\r\n0\r\nT: 1\r\n\r\n",
    HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
    HEAD + b"\r\n" + BODY,
    b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nok",
    b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 301 Moved\nLocation: /x\n\nmoved",
]


def test_cut_anywhere() -> None:
    """Every place to cut gives the same answer as no cut."""
    for message in MESSAGES:
        whole = result(message)
        assert whole[1] == ""
        for cut in range(1, len(message)):
            assert result(message, cut) == whole, (message[:60], cut)


def test_noise_cut_anywhere() -> None:
    """Damaged messages end once, with a reason or without, and the same wherever they are cut."""
    rng = random.Random(11)
    for _ in range(1_500):
        noisy = bytearray(rng.choice(MESSAGES))
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(min(len(noisy), 160))
            action = rng.randrange(3)
            if action == 0:
                noisy[place] = rng.choice(b"\r\n \t:;0aF\0\xff")
            elif action == 1:
                del noisy[place : place + rng.randrange(1, 9)]
            else:
                noisy[place:place] = rng.choice((b"\r\n", b"\n", b"\n\n", b"Content-Length: 3\r\n", b"\r\n\r\n", b"9"))
        data = bytes(noisy)
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(4))
        whole, cut = result(data), result(data, *cuts)
        # Where both readings fail they may fail with different words: what is seen first decides.
        assert cut[1:] == whole[1:] or (cut[1] and whole[1]), (data[:200], cuts, whole[:2], cut[:2])


def test_reuse_only_after_an_exact_end() -> None:
    """A connection returns to the pool when its message ended where its framing said, and in no other case."""
    for message, kept in zip(MESSAGES, (True, True, True, False, True, True, True, False), strict=True):
        line = Line()
        line.ask()
        line.say(message)
        assert (line.fetcher.idle_connections == 1) is kept, message[:60]
        assert line.wire.aborted is (not kept and bool(line.answers))


def test_what_comes_unasked() -> None:
    """Bytes on an idle connection end it."""
    line = Line()
    line.say(b"HTTP/1.1 200 OK\r\n\r\n")
    assert line.wire.aborted
    assert line.fetcher.idle_connections == 0


def test_a_long_head_in_small_pieces() -> None:
    """64 KiB of head are the limit however they come."""
    data = b"HTTP/1.1 200 OK\r\n" + b"X: yyyyyyyy\r\n" * 6_000 + b"\r\n"
    assert result(data)[1] == "protocol"
    assert result(data, *range(1_000, len(data), 1_000))[1] == "protocol"


def test_interim_heads_without_end() -> None:
    """A server may say 100 Continue sixteen times."""
    once = b"HTTP/1.1 100 Continue\r\n\r\n"
    answer = HEAD + b"Content-Length: 2\r\n\r\nok"
    assert result(once * 16 + answer) == (200, "", b"ok")
    assert result(once * 17 + answer)[1] == "protocol"
    assert result(once * 17 + answer, *range(0, 17 * len(once), len(once)))[1] == "protocol"


class Hurried(ManualClock):
    """A clock that moves with each look at it: every step of work has used up its turn."""

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        self.advance(1.0)
        return super().monotonic()


class PausedWire(Wire):
    """A transport that says whether it is read from."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True

    def pause_reading(self) -> None:
        """See asyncio."""
        self.reading = False

    def resume_reading(self) -> None:
        """See asyncio."""
        self.reading = True

    def is_closing(self) -> bool:
        """See asyncio."""
        return self.aborted


CHUNKS = b"".join(b"2\r\n%b\r\n" % BODY[at : at + 2] for at in range(0, len(BODY) - 1, 2)) * 9
SLOW = [
    (HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED, BODY),
    (HEAD + b"Content-Encoding: gzip\r\n\r\n" + PACKED, BODY),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"0\r\n\r\n", BODY[: len(BODY) // 2 * 2] * 9),
]


class SlowLine(Line):
    """A line whose fetcher takes codings off one step a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.fetcher.clock = Hurried()
        self.wire = PausedWire()
        self.connection.connection_made(self.wire)  # type: ignore[arg-type]


@pytest.mark.parametrize(("message", "body"), SLOW, ids=["length", "close", "chunked"])
@pytest.mark.parametrize("closes", ["at once", "later"])
async def test_work_goes_on_in_later_turns(message: bytes, body: bytes, closes: str) -> None:
    """Nothing is read during content decoding, and a close that comes in between takes effect after it."""
    line = SlowLine()
    line.ask()
    line.say(message)
    assert not line.answers
    assert not line.wire.reading  # type: ignore[attr-defined]
    if closes == "at once":
        line.hang_up()
    for _ in range(20):
        await asyncio.sleep(0)
    if not line.answers:
        line.hang_up()
    (answer,) = line.answers
    assert (answer.reason, answer.body) == ("", body)


@pytest.mark.parametrize("ending", ["abort", "time out", "torn"])
async def test_work_that_is_given_up(ending: str) -> None:
    """A fetch that ends while codings are taken off ends once, and its work is dropped."""
    line = SlowLine()
    handle = line.fetcher.fetch(REQUEST, line.answers.append)
    line.say(SLOW[0][0][:-9] if ending == "torn" else SLOW[0][0])
    if ending == "abort":
        handle.abort()
    elif ending == "time out":
        line.fetcher.time_out(handle, "body: too long")
    else:
        line.hang_up()
    for _ in range(20):
        await asyncio.sleep(0)
    reasons = {"abort": [], "time out": ["timeout"], "torn": ["disconnected"]}
    assert [answer.reason for answer in line.answers] == reasons[ending]
    assert line.connection._work is None


@pytest.mark.parametrize("ending", ["", "abort", "time out", "hang up"])
async def test_large_bodies_are_handed_out_in_a_turn_of_their_own(ending: str) -> None:
    """Whatever happens before that turn, a fetch ends once."""
    line = Line()
    handle = line.fetcher.fetch(REQUEST, line.answers.append)
    line.say(HEAD + b"Content-Length: 5000000\r\n\r\n" + b"x" * 5_000_000)
    assert not line.answers
    if ending == "abort":
        handle.abort()
    elif ending == "time out":
        line.fetcher.time_out(handle, "total: too long")
    elif ending == "hang up":
        line.hang_up()
    await asyncio.sleep(0)
    expected = {"abort": [], "time out": [("timeout", 0)]}.get(ending, [("", 5_000_000)])
    assert [(answer.reason, len(answer.body)) for answer in line.answers] == expected
    assert line.wire.aborted or ending == "hang up"
    assert line.fetcher.idle_connections == 0


async def test_a_slow_address_does_not_delay_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 250 ms the next address is tried beside it; the attempt that is slower is cancelled (RFC 8305)."""
    clock = ManualClock()
    fetcher = LeanFetcher(settings(), clock)
    loop = asyncio.get_running_loop()
    connect, dialled, cancelled = loop.create_connection, [], []

    async def create_connection(make: Any, address: str, *args: Any, **options: Any) -> Any:
        dialled.append(address)
        if address != "127.0.0.1":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(address)
                raise
        return await connect(make, address, *args, **options)

    monkeypatch.setattr(loop, "create_connection", create_connection)
    async with Server(response(b"x", "Content-Type: text/html")) as server:
        done: asyncio.Future[HttpResponse] = loop.create_future()
        target = TargetUrl(f"http://site.test:{server.port}/")
        fetcher.fetch(request_at(target, ("2001:db8::1", "127.0.0.1"), server.port), done.set_result)
        await asyncio.sleep(0)
        assert dialled == ["2001:db8::1"]
        clock.advance(STAGGER_S)
        answer = await done
        await asyncio.sleep(0)
        assert (answer.status, answer.address) == (200, "127.0.0.1")
        assert (dialled, cancelled) == (["2001:db8::1", "127.0.0.1"], ["2001:db8::1"])
        await fetcher.close()


@pytest.mark.parametrize(("count", "tried"), [(1, 1), (2, 2), (3, 3), (5, 3)])
async def test_silent_addresses_are_tried_once_each(count: int, tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of them at most; then the attempts in flight have the rest of the time."""
    clock = ManualClock()
    fetcher = LeanFetcher(settings(connect_timeout_s=30.0), clock)
    dialled: list[str] = []

    async def create_connection(make: Any, address: str, *args: Any, **options: Any) -> Any:
        dialled.append(address)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", create_connection)
    addresses = tuple(f"192.0.2.{number}" for number in range(1, count + 1))
    answers: list[HttpResponse] = []
    fetcher.fetch(request_at(TARGET, addresses, 80), answers.append)
    for _ in range(8):
        await asyncio.sleep(0)
        clock.advance(STAGGER_S)
    assert dialled == list(addresses[:tried])
    assert answers == []
    clock.advance(60)
    assert [(answer.status, answer.reason) for answer in answers] == [(0, "timeout")]
    await fetcher.close()


async def test_an_address_that_fails_is_followed_at_once() -> None:
    """An unreachable IPv6 address costs no page and no wait."""
    fetcher = LeanFetcher(settings(), ManualClock())
    async with Server(response(b"x", "Content-Type: text/html")) as server:
        target = TargetUrl(f"http://site.test:{server.port}/")
        answer = await get(fetcher, request_at(target, ("::1", "127.0.0.1"), server.port))
        assert (answer.status, answer.address) == (200, "127.0.0.1")
        await fetcher.close()
