"""Every request taken ends in exactly one outcome, with a page before it where there is one."""

from __future__ import annotations

from types import SimpleNamespace

from nephila.kernel.messages import FetchKind, FetchResult
from nephila.kernel.topics import OUTCOMES

from tests.downloader.downloader_room import Room, answer


async def test_a_page() -> None:
    """200: a page, then its outcome, with every field that others rely on."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/x", depth=4, start_by=room.clock.now() + 5)
    await room.settle()
    room.clock.advance(2)
    room.reply(0, answer(200, b"<p>", content_type="text/html", etag='"e"', x_robots_tag="NoIndex"))
    page, outcome = room.pages[0], room.outcomes[0]
    assert room.order == ["page", "outcome"]
    assert (page.url, page.host, page.depth, page.body, page.content_type) == (
        "http://a.test/x",
        "a.test",
        4,
        b"<p>",
        "text/html",
    )
    assert (page.fetch_no, page.attempt, page.url_key, page.etag, page.robots_tag) == (
        3,
        2,
        b"k" * 16,
        '"e"',
        "noindex",
    )
    assert (outcome.result, outcome.reason, outcome.status, outcome.epoch) == (FetchResult.FETCHED, "", 200, 7)
    assert outcome.ended_at - outcome.started_at == 2
    assert page.fetched_at == outcome.started_at
    assert outcome.address == "8.8.8.8"
    assert room.bus.unacked == 0
    assert room.downloader.in_flight == 0


async def test_ack_waits_for_both() -> None:
    """The request is acked when page and outcome have been taken, not before."""
    room = Room()
    await room.downloader.start()
    room.hold = True
    room.request()
    await room.settle()
    room.reply(0, answer(200, b"x"))
    assert room.bus.unacked == 3
    room.held[0].ack()
    assert room.bus.unacked == 2
    room.held[1].ack()
    assert room.bus.unacked == 0


async def test_the_memory_of_a_page_is_held_until_its_record_is_durable() -> None:
    """And the outcomes are counted by result."""
    room = Room(per_host=0, per_address=0)
    await room.downloader.start()
    room.hold = True
    released: list[str] = []
    for number, name in enumerate(("page", "error")):
        room.request(f"http://a.test/{number}")
        await room.settle()
        made = answer(200 if name == "page" else 404, b"x")
        made.memory = SimpleNamespace(release=lambda name=name: released.append(name))
        room.reply(number, made)
    assert released == ["error"]
    for delivery in room.held:
        delivery.ack()
    assert released == ["error", "page"]
    assert room.downloader.ended == {FetchResult.FETCHED: 1, FetchResult.FAILED: 1}


async def test_not_modified() -> None:
    """304 to validators: a page without a body and its outcome."""
    room = Room()
    await room.downloader.start()
    room.request(etag='"e"')
    await room.settle()
    assert room.fetcher.fetches[0].request.own_headers() == {"If-None-Match": '"e"'}
    room.reply(0, answer(304))
    assert (room.pages[0].not_modified, room.pages[0].body) == (True, b"")
    assert room.outcomes[0].result == FetchResult.NOT_MODIFIED


async def test_not_modified_unasked() -> None:
    """304 without validators is a failure."""
    room = Room()
    await room.downloader.start()
    room.request()
    await room.settle()
    room.reply(0, answer(304))
    assert (room.outcomes[0].result, room.outcomes[0].reason) == (FetchResult.FAILED, "http_304")
    assert room.pages == []


async def test_redirect() -> None:
    """A redirect of a page is not followed; its target is absolute, without fragment."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/dir/x")
    await room.settle()
    room.reply(0, answer(301, location="../y?z#top"))
    outcome = room.outcomes[0]
    assert (outcome.result, outcome.status, outcome.location) == (FetchResult.REDIRECT, 301, "http://a.test/y?z")
    assert len(room.fetcher.fetches) == 1


async def test_octets_of_a_location_are_encoded_as_they_are() -> None:
    """Bytes that are not ASCII are percent-encoded, UTF-8 or not, as in Chromium."""
    for raw, encoded in ((b"/k\xfc?q=\xe9", "/k%FC?q=%E9"), ("/k\u00fc".encode(), "/k%C3%BC")):
        room = Room()
        await room.downloader.start()
        room.request("http://a.test/")
        await room.settle()
        room.reply(0, answer(301, location=raw.decode("latin-1")))
        assert room.outcomes[0].location == f"http://a.test{encoded}"


async def test_different_locations_lead_nowhere() -> None:
    """Equal ones are one; of different ones none is followed. Rules behind such a redirect count as unreachable."""
    cases = [
        ("/new\n/new", FetchKind.UNSPECIFIED, FetchResult.REDIRECT, ""),
        ("\n/new", FetchKind.UNSPECIFIED, FetchResult.REDIRECT, ""),
        ("/a\n/b", FetchKind.UNSPECIFIED, FetchResult.FAILED, "bad_redirect"),
        ("/a\n/b", FetchKind.ROBOTS, FetchResult.FAILED, "protocol"),
    ]
    for location, kind, result, reason in cases:
        room = Room()
        await room.downloader.start()
        room.request("http://a.test/", kind=kind)
        await room.settle()
        room.reply(0, answer(302, location=location))
        assert [(outcome.result, outcome.reason) for outcome in room.outcomes] == [(result, reason)]
        assert len(room.fetcher.fetches) == 1


async def test_a_redirect_with_a_page_is_a_page() -> None:
    """A redirect status without Location: its body is the document; the rules of a host it is not."""
    for kind, result in ((FetchKind.UNSPECIFIED, FetchResult.FETCHED), (FetchKind.ROBOTS, FetchResult.FAILED)):
        room = Room()
        await room.downloader.start()
        room.request("http://a.test/", kind=kind)
        await room.settle()
        room.reply(0, answer(302, b"<p>", content_type="text/html"))
        assert [outcome.result for outcome in room.outcomes] == [result]
        assert [(page.status, page.body) for page in room.pages] == [(302, b"<p>")] * (kind != FetchKind.ROBOTS)


async def test_the_longest_of_several_pauses_counts() -> None:
    """Retry-After that comes twice: the longest one is the polite one. Of validators the first counts."""
    room = Room()
    await room.downloader.start()
    room.request()
    room.request("http://b.test/")
    await room.settle()
    room.reply(0, answer(503, retry_after="10\nnonsense\n60"))
    room.reply(1, answer(200, b"x", etag='"a"\n"b"', refresh="0; url=/x"))
    assert room.outcomes[0].retry_after_s == 60
    assert (room.pages[0].etag, room.pages[0].refresh) == ('"a"', "0; url=/x")


async def test_failures_have_reasons() -> None:
    """Statuses, broken redirects and what the fetcher reports come out as reasons."""
    cases = [
        (answer(404), FetchResult.FAILED, "http_404"),
        (answer(503, retry_after="120"), FetchResult.FAILED, "http_503"),
        (answer(302), FetchResult.FAILED, "bad_redirect"),
        (answer(302, location="http://["), FetchResult.FAILED, "bad_redirect"),
        (answer(302, location="mailto:x@y"), FetchResult.FAILED, "bad_redirect"),
        (answer(302, location="/" + "z" * 8192), FetchResult.FAILED, "bad_redirect"),
        (answer(300), FetchResult.FAILED, "http_300"),
        (answer(0, reason="timeout", detail="headers: …"), FetchResult.FAILED, "timeout"),
        (answer(200, reason="too_large"), FetchResult.FAILED, "too_large"),
        (answer(200, reason="content_type", content_type="image/png"), FetchResult.CONTENT_TYPE, "content_type"),
    ]
    for made, result, reason in cases:
        room = Room()
        await room.downloader.start()
        room.request()
        await room.settle()
        room.reply(0, made)
        assert [(outcome.result, outcome.reason) for outcome in room.outcomes] == [(result, reason)]
        assert room.pages == []
        assert room.bus.unacked == 0
    assert [room.outcomes[0].status, room.outcomes[0].content_type] == [200, "image/png"]


async def test_too_late() -> None:
    """Nobody is dialled after start_by."""
    room = Room()
    await room.downloader.start()
    room.request(start_by=room.clock.now() - 1)
    await room.settle()
    assert room.fetcher.fetches == []
    assert (room.outcomes[0].result, room.outcomes[0].started_at) == (FetchResult.EXPIRED, 0.0)


async def test_too_late_after_waiting() -> None:
    """A request whose time passes while it waits for its slot expires as well."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/1", start_by=room.clock.now() + 10)
    room.request("http://a.test/2", start_by=room.clock.now() + 10)
    await room.settle()
    room.clock.advance(20)
    room.reply(0, answer(200))
    await room.settle()
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.FETCHED, FetchResult.EXPIRED]
    assert room.fetcher.urls == ["http://a.test/1"]


async def test_unknown_name() -> None:
    """A name without an address: failed, dns; nothing was dialled."""
    room = Room()
    await room.downloader.start()
    room.request("http://gone.test/")
    room.names.table.clear()
    await room.settle()
    outcome = room.outcomes[0]
    assert (outcome.result, outcome.reason, outcome.detail) == (FetchResult.FAILED, "dns", "no such name")
    assert (outcome.started_at, outcome.ended_at) == (0.0, room.clock.now())


async def test_denied_address() -> None:
    """The egress guard's refusal is an outcome of its own."""
    for url in ("http://127.0.0.1/", "http://[::1]/", "http://in.test/", "http://a.test:22/"):
        room = Room()
        room.names.table["in.test"] = ("10.0.0.1",)
        await room.downloader.start()
        room.request(url)
        await room.settle()
        assert [(o.result, o.reason) for o in room.outcomes] == [(FetchResult.DENIED, "address")]
        assert room.fetcher.fetches == []


async def test_only_checked_addresses_are_dialled() -> None:
    """Of a name with inner and outer addresses the fetcher sees the outer ones."""
    room = Room()
    room.names.table["a.test"] = ("10.0.0.1", "8.8.8.8", "::1")
    await room.downloader.start()
    room.request()
    await room.settle()
    assert room.fetcher.fetches[0].request.route.addresses == ("8.8.8.8",)


async def test_no_url() -> None:
    """What is no URL fails and says so without repeating credentials."""
    room = Room()
    await room.downloader.start()
    room.request("ftp://me:secret@a.test/", host="a.test")
    await room.settle()
    assert (room.outcomes[0].result, room.outcomes[0].reason) == (FetchResult.FAILED, "bad_url")
    assert "secret" not in room.outcomes[0].detail


async def test_seeds_take_any_type() -> None:
    """A seed is fetched with any content type, other pages are not."""
    room = Room(per_host=0, per_address=0)
    await room.downloader.start()
    room.request(seed=True)
    room.request()
    await room.settle()
    assert [fetch.request.any_type for fetch in room.fetcher.fetches] == [True, False]


async def test_what_is_named_like_a_sitemap_takes_any_type_and_its_own_limit() -> None:
    """A packed sitemap comes as application/gzip, and may be larger than a page."""
    room = Room(per_host=0, per_address=0, max_list_bytes=77)
    await room.downloader.start()
    room.request("http://a.test/sitemap.xml.gz")
    room.request("http://a.test/backup.gz")
    await room.settle()
    assert [(f.request.any_type, f.request.max_bytes) for f in room.fetcher.fetches] == [(True, 77), (False, 0)]


async def test_refusals_do_not_recurse() -> None:
    """A scheduler that answers each refusal with the next request does not deepen the stack."""
    room = Room()
    left = 3_000

    def on_outcome(delivery: object) -> None:
        nonlocal left
        delivery.ack()  # type: ignore[attr-defined]
        left -= 1
        if left:
            room.request("http://127.0.0.1/")

    room.bus.subscribe(OUTCOMES, "endless", on_outcome, credits=10)
    await room.downloader.start()
    room.request("http://127.0.0.1/")
    await room.settle()
    while left:
        room.clock.run_due()
    assert room.downloader.in_flight == 0


async def test_robots() -> None:
    """A robots request takes any type, 500 KiB, and brings its body in the outcome; no page."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/robots.txt", kind=FetchKind.ROBOTS)
    await room.settle()
    order = room.fetcher.fetches[0].request
    assert (order.any_type, order.keep) == (True, 512_000)
    room.reply(0, answer(200, b"User-agent: *", content_type="text/html"))
    outcome = room.outcomes[0]
    assert (outcome.kind, outcome.status, outcome.body) == (FetchKind.ROBOTS, 200, b"User-agent: *")
    assert room.pages == []


async def test_robots_redirects() -> None:
    """A robots.txt may move, to another host as well; each hop is resolved and checked."""
    room = Room()
    room.names.table["b.test"] = ("1.1.1.1",)
    await room.downloader.start()
    room.request("http://a.test/robots.txt", kind=FetchKind.ROBOTS)
    await room.settle()
    room.reply(0, answer(301, location="https://b.test/robots.txt"))
    await room.settle()
    assert room.fetcher.fetches[1].request.route.addresses == ("1.1.1.1",)
    room.reply(1, answer(200, b"ok"))
    assert (room.outcomes[0].result, room.outcomes[0].body, len(room.outcomes)) == (FetchResult.FETCHED, b"ok", 1)


async def test_robots_redirect_inwards() -> None:
    """A robots.txt cannot lead the crawler to an inner address."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/robots.txt", kind=FetchKind.ROBOTS)
    await room.settle()
    room.reply(0, answer(301, location="http://169.254.169.254/"))
    await room.settle()
    assert (room.outcomes[0].result, room.outcomes[0].reason) == (FetchResult.DENIED, "address")
    assert len(room.fetcher.fetches) == 1


async def test_robots_redirect_loop() -> None:
    """After five hops a robots.txt is a redirect that leads nowhere."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/robots.txt", kind=FetchKind.ROBOTS)
    for hop in range(6):
        await room.settle()
        room.reply(hop, answer(302, location="/robots.txt"))
    await room.settle()
    assert len(room.fetcher.fetches) == 6
    assert (room.outcomes[0].result, room.outcomes[0].status) == (FetchResult.REDIRECT, 302)
    assert room.bus.unacked == 0
