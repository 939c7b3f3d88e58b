"""With raw capture every answer goes to the archive: pages as pages, all others as exchanges before their outcome."""

from __future__ import annotations

import pytest
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import Exchange, HttpRequest, HttpResponse
from nephila.downloader.http.request import RequestHeads
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.messages import FetchKind
from nephila.kernel.topics import EXCHANGES

from tests.downloader.downloader_room import Room, answer


async def archived(*answers: HttpResponse, capture: bool = True, **fields: object) -> list[m.Page]:
    """What one request publishes for the archive when the fetcher answers like this."""
    room = Room(raw_capture=capture)
    found: list[m.Page] = []

    def on_exchange(delivery: object) -> None:
        assert not room.outcomes
        found.append(delivery.message)  # type: ignore[attr-defined]
        delivery.ack()  # type: ignore[attr-defined]

    room.bus.subscribe(EXCHANGES, "raw", on_exchange, credits=100)
    await room.downloader.start()
    room.request(**fields)
    for number, one in enumerate(answers):
        await room.settle()
        room.reply(number, one)
    await room.settle()
    assert len(room.outcomes) == 1
    assert room.bus.unacked == 0
    return found


@pytest.mark.parametrize(
    ("made", "truncated"),
    [
        (answer(301, location="/x"), ""),
        (answer(404), ""),
        (answer(503, retry_after="9"), ""),
        (answer(200, reason="content_type"), "unspecified"),
        (answer(200, reason="too_large"), "length"),
        (answer(200, reason="timeout"), "time"),
        (answer(200, reason="disconnected"), "disconnect"),
    ],
)
async def test_an_answer_that_is_no_page(made: HttpResponse, truncated: str) -> None:
    """Its heads and what came of its body."""
    made.request_head, made.response_head, made.wire_body = b"GET", b"HTTP/1.1 X", b"body"
    (found,) = await archived(made, url="http://me:pw@a.test/x?y")
    assert (found.url, found.status, found.truncated) == ("http://a.test/x?y", made.status, truncated)
    assert (found.request_head, found.response_head, found.wire_body) == (b"GET", b"HTTP/1.1 X", b"body")


async def test_pages_and_no_answers_leave_none() -> None:
    """A page is archived as a page; what never answered has nothing to show."""
    assert await archived(answer(200, b"x")) == []
    assert await archived(answer(0, reason="connect")) == []
    assert await archived(answer(404), capture=False) == []


async def test_each_hop_of_a_robots_txt() -> None:
    """The redirect and the file that it leads to."""
    hops = (answer(301, location="http://a.test/r"), answer(200, b"User-agent: *"))
    found = await archived(*hops, url="http://a.test/robots.txt", kind=FetchKind.ROBOTS, job="")
    assert [(one.url, one.status) for one in found] == [("http://a.test/robots.txt", 301), ("http://a.test/r", 200)]


def test_an_archived_request_holds_no_credentials() -> None:
    """Neither those of the URL nor cookies nor headers of single hosts; validators and the usual headers stay."""
    http_request = HttpRequest(TargetUrl("http://me:pw@a.test/"), NO_ROUTE)
    http_request.add_header("If-None-Match", '"e"')
    http_request.add_secret_header("Cookie", "sid=1")
    heads = RequestHeads(HttpConfig(headers=("X-All: 1",)))
    sent, shown = heads.make(http_request), heads.shown(http_request)
    assert b"Cookie: sid=1" in sent
    assert b"Authorization: Basic" in sent
    assert b"sid" not in shown
    assert b"Authorization" not in shown
    assert b'X-All: 1\r\nIf-None-Match: "e"\r\n\r\n' in shown
    assert "sid" not in repr(http_request), "a log line may name a request"


async def test_what_the_browser_of_a_page_received() -> None:
    """Each with its own URL and instant, beside the page."""
    made, style = answer(200), answer(200, content_type="text/css")
    made.rendered, made.exchanges = True, [Exchange(TargetUrl("http://me:pw@b.test/s.css"), style, 5.0, 7.5)]
    (found,) = await archived(made)
    assert (found.url, found.fetched_at, found.took_s) == ("http://b.test/s.css", 5.0, 2.5)
    assert not found.rendered
    assert await archived(made, capture=False) == []
