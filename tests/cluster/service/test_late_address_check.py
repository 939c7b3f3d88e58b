"""Where several fetch for one scheduler, a fetch on an address it was not counted on waits for the scheduler's word."""

from __future__ import annotations

from collections.abc import Callable

from nephila.downloader.coordination import Coordination
from nephila.downloader.http.route import ProxyHop, Route, prefer_counted_address
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import Politeness
from nephila.kernel.messages import FetchKind, FetchResult
from nephila.kernel.topics import JOBS
from nephila_cluster.service.late_address_check import LateAddressCheck

from tests.downloader.downloader_room import Room, answer
from tests.jobs import crawl_job

Questions = list[tuple[str, str, Callable[[bool], None]]]


async def asking(**settings: object) -> tuple[Room, Questions]:
    """A downloader with a late address check, and its calls: URL, address, callback."""
    questions: Questions = []

    def ask(request: m.FetchRequest, address: str, answer: Callable[[bool], None]) -> None:
        questions.append((request.url, address, answer))

    room = Room(Coordination(late_address_check=ask), **settings)
    await room.downloader.start()
    return room, questions


async def test_a_yes_dials_and_a_no_gives_back_with_the_address() -> None:
    """Nothing is dialled before the answer; after a no the outcome has the address."""
    room, questions = await asking()
    room.request("http://a.test/")
    room.request("http://b.test/")
    await room.settle()
    assert [(url, address) for url, address, _ in questions] == [
        ("http://a.test/", "8.8.8.8"),
        ("http://b.test/", "8.8.8.8"),
    ]
    assert room.fetcher.urls == []
    questions[0][2](True)
    questions[1][2](False)
    await room.settle()
    assert room.fetcher.urls == ["http://a.test/"]
    assert [(o.result, o.reason, o.address, o.started_at) for o in room.outcomes] == [
        (FetchResult.UNSPECIFIED, "busy", "8.8.8.8", 0)
    ]


async def test_what_was_counted_there_is_not_asked() -> None:
    """Nor is what is not paced; another address than the one it was counted on is."""
    room, questions = await asking()
    room.bus.publish(JOBS, 0, crawl_job("fast", politeness=Politeness(delay="0")))
    room.bus.publish(JOBS, 0, crawl_job("j", politeness=Politeness(delay="1s")))
    room.request("http://a.test/", address="8.8.8.8")
    room.request("http://b.test/", job="fast")
    await room.settle()
    assert len(room.fetcher.fetches) == 2
    assert questions == []
    room.request("http://c.test/", address="9.9.9.9")
    await room.settle()
    assert [url for url, _, _ in questions] == ["http://c.test/"]


async def test_an_answer_that_comes_after_the_end_changes_nothing() -> None:
    """Given back by a drain while the question was out: dialled never, ended once."""
    room, questions = await asking()
    room.request("http://a.test/")
    await room.settle()
    await room.downloader.drain(0.0)
    questions[0][2](True)
    await room.settle()
    assert room.fetcher.urls == []
    assert len(room.outcomes) == 1
    assert room.bus.unacked == 0


async def test_a_further_hop_of_robots_txt_is_not_asked() -> None:
    """It must not be given back: its own host would be fetched again."""
    room, questions = await asking()
    room.request("http://a.test/robots.txt", job="", kind=FetchKind.ROBOTS, address="8.8.8.8")
    await room.settle()
    room.address = "9.9.9.9"
    room.names.table["b.test"] = ("9.9.9.9",)
    room.reply(0, answer(301, location="http://b.test/robots.txt"))
    await room.settle()
    assert room.fetcher.urls[-1] == "http://b.test/robots.txt"
    assert questions == []


async def test_what_was_sent_is_told() -> None:
    """With the instant at which the request reached the server."""
    reported: list[tuple[str, float]] = []
    room = Room(Coordination(on_sent=lambda address, at: reported.append((address, at))))
    room.fetcher.writes = False
    await room.downloader.start()
    room.request("http://a.test/", address="8.8.8.8")
    await room.settle()
    room.clock.advance(0.3)
    on_sent = room.fetcher.fetches[0].request.on_sent
    assert on_sent is not None
    on_sent()
    assert reported == [("8.8.8.8", room.clock.monotonic())]


async def test_several_downloaders_send_back_what_nobody_has_counted_once() -> None:
    """With the address. A counted request starts, as does one that comes again. Without peers none is given back."""
    alone = False
    room = Room(Coordination(late_address_check=LateAddressCheck(lambda: alone).check))
    await room.downloader.start()
    room.request("http://a.test/")
    await room.settle()
    assert [(o.reason, o.address) for o in room.outcomes] == [("busy", "8.8.8.8")]
    assert room.fetcher.urls == []
    room.request("http://a.test/", address="9.9.9.9")
    await room.settle()
    assert room.fetcher.urls == ["http://a.test/"]
    room.request("http://b.test/", address="8.8.8.8")
    alone = True
    room.request("http://c.test/")
    await room.settle()
    assert set(room.fetcher.urls) == {"http://a.test/", "http://b.test/", "http://c.test/"}


def test_the_address_that_was_counted_is_dialled_first() -> None:
    """For a name with several addresses, in any order."""
    route = Route(("a", "b", "c"), 80, "", "a")
    assert prefer_counted_address(route, "c") == Route(("c", "a", "b"), 80, "", "c")
    assert prefer_counted_address(route, "a") == route
    assert prefer_counted_address(route, "") == route
    behind_proxy = Route(("p", "q"), 8080, "", "a", ProxyHop("http://p:8080", "http", "", "", "a", 80))
    assert prefer_counted_address(behind_proxy, "q") == behind_proxy
