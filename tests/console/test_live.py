"""Fresh figures: one producer for all who look at a screen, each with its own CSRF token; none without viewers."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from nephila.kernel.runtime.errors import NotReadyError
from nephila_console.application import LIVE
from nephila_console.live import CSRF, Live
from nephila_control.http.server import tcp_server

from tests.console.console_rig import HOST, console
from tests.waits import until


class Turns:
    """Pauses that end when the test says so."""

    def __init__(self):
        self.waiting = []

    async def pause(self, seconds):
        waited = asyncio.get_running_loop().create_future()
        self.waiting.append(waited)
        await waited

    async def go(self):
        await until(lambda: self.waiting)
        self.waiting.pop().set_result(None)


class Screen:
    """A screen that counts how often it is rendered."""

    rendered = 0
    away = False

    async def render(self):
        self.rendered += 1
        if self.away:
            raise NotReadyError("the broker is away")
        return f'<div data-part="x">{self.rendered} {CSRF}</div>'


def read(event):
    name, data = event.decode().strip().split("\n")
    return name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))


async def test_a_screen_is_rendered_once_for_all_its_viewers():
    """Each gets its own token; another screen has its own producer."""
    turns, screen, other = Turns(), Screen(), Screen()
    live = Live(turns.pause)
    viewers = [live.events("a", screen.render, lambda n=n: f"token{n}") for n in range(50)]
    assert live.viewers == 0
    first = [read(await anext(one)) for one in viewers]
    assert first == [("part", f'<div data-part="x">1 token{n}</div>') for n in range(50)]
    waits = [asyncio.ensure_future(anext(one)) for one in viewers]
    await turns.go()
    assert {read(await one)[1].split(">")[1].split()[0] for one in waits} == {"2"}
    assert (screen.rendered, live.viewers) == (2, 50)
    await anext(live.events("b", other.render, lambda: "t"))
    assert (screen.rendered, other.rendered) == (2, 1)


async def test_without_viewers_nothing_runs():
    """The last one that leaves ends the producer."""
    turns, screen = Turns(), Screen()
    live = Live(turns.pause)
    viewers = [live.events("a", screen.render, lambda: "t") for _ in range(2)]
    for one in viewers:
        await anext(one)
    for one in viewers:
        await one.aclose()
    await asyncio.sleep(0)
    assert (live.viewers, live._channels, screen.rendered) == (0, {}, 1)


async def test_a_session_that_has_ended_gets_no_more():
    """The page is told, and loads itself, which leads to the login."""
    turns, screen = Turns(), Screen()
    tokens = ["t", "t", ""]
    viewer = Live(turns.pause).events("a", screen.render, lambda: tokens.pop(0))
    assert read(await anext(viewer))[0] == "part"
    waiting = asyncio.ensure_future(anext(viewer))
    await turns.go()
    assert read(await waiting) == ("end", "")
    with pytest.raises(StopAsyncIteration):
        await anext(viewer)


async def test_a_backend_that_is_away_is_told_and_asked_again():
    """The page says since when its figures are old."""
    turns, screen = Turns(), Screen()
    screen.away = True
    viewer = Live(turns.pause).events("a", screen.render, lambda: "t")
    assert read(await anext(viewer)) == ("away", "the broker is away")
    screen.away = False
    waiting = asyncio.ensure_future(anext(viewer))
    await turns.go()
    assert read(await waiting)[0] == "part"


async def test_each_live_screen_has_events_for_its_session_alone(tmp_path):
    """Over a socket; the connection of a viewer that leaves is noticed."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        server = tcp_server(rig.application, "127.0.0.1", 0, "-")
        await server.open()
        try:
            cookie = "; ".join(f"nephila_{server.port}={value}" for value in browser.cookies.values())
            for path in ("/jobs?q=ne", "/jobs/news", *LIVE):
                async with asked(server.port, f"/console/live?at=/console{path.replace('?', '%3F')}", cookie) as reader:
                    event = await reader.readuntil(b"\n\n")
                    assert b"event: part" in event, path
                    assert CSRF.encode() not in event
            for path, cookies in (("/items", cookie), ("/jobs/new", cookie), ("//evil.test/", cookie), ("/jobs", "")):
                async with asked(server.port, f"/console/live?at=/console{path}", cookies) as reader:
                    head = await reader.readuntil(b"\r\n\r\n")
                    assert head.split()[1] in (b"404", b"303"), path
        finally:
            await server.close()


@contextlib.asynccontextmanager
async def asked(port, path, cookie):
    """A connection with a request on it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST.partition(':')[0]}:{port}\r\nCookie: {cookie}\r\n\r\n".encode())
    try:
        yield reader
    finally:
        writer.close()
