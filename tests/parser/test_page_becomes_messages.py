"""A page becomes outlinks and a record, in that order, whatever is in it."""

from __future__ import annotations

import hashlib
import json

import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import NEAR_COPIES, NearCopiesMode, Parse, Politeness
from nephila.parser.links.link_list import KIND_REFRESH

from tests.jobs import crawl_job
from tests.parser.parser_room import FakePass, Room, with_links

LINKS = ("http://a.test/1", "http://b.test/2")


async def test_outlinks_come_before_the_record_on_the_pages_partition() -> None:
    """A crawl must not look finished while links are on their way."""
    room = await Room(with_links(*LINKS)).start()
    outlinks, record = room.send(depth=2, partition=9)
    assert isinstance(outlinks, m.Outlinks)
    assert isinstance(record, m.Record)
    assert room.partitions == [9, 9]
    assert (outlinks.parent_key, outlinks.parent_url, outlinks.depth) == (bytes(range(16)), "http://a.test/", 3)
    assert outlinks.urls == "".join(LINKS).encode()
    assert record.links is None


async def test_a_record_carries_all_that_fetch_and_body_say() -> None:
    """Every column of the table pages has its source."""
    found = FakePass(title="T", lang="de", text=b"body", description="D", canonical="http://a.test/c")
    found.meta = [("og:title", "O"), ("og:title", "second"), ("author", "")]
    room = await Room(found).start()
    record = room.record(b"<html>", etag='"e"', last_modified="Mon", fetched_at=5.0, fetch_no=7, attempt=2, depth=4)
    assert record == m.Record(
        job="j",
        url_key=bytes(range(16)),
        url="http://a.test/",
        fetch_no=7,
        attempt=2,
        outcome=m.Outcome.STORED,
        status=200,
        depth=4,
        content_type="text/html",
        size_bytes=6,
        sha256=hashlib.sha256(b"<html>").digest(),
        title="T",
        text=b"body",
        lang="de",
        fetched_at=5.0,
        meta='{"encoding":"utf-8","description":"D","canonical":"http://a.test/c","og:title":"O"}',
        etag='"e"',
        last_modified="Mon",
        text_hash=hashlib.sha256(b"body").digest()[:8],
    )


@pytest.mark.parametrize("wish", NEAR_COPIES)
async def test_a_job_that_compares_texts_has_their_simhash(wish: NearCopiesMode) -> None:
    """Jobs that compare nothing do not pay for it."""
    words = " ".join(f"word{number}" for number in range(40)).encode()
    job = crawl_job(uid="j", parse=Parse(near_copies=wish))
    room = await Room(FakePass(text=words)).start(job)
    record = room.record()
    assert record.near_copies is NEAR_COPIES[wish]
    assert bool(record.simhash) is (wish != "store")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"<p>", "text/html"), (b"<urlset><url><loc>http://a.test/1</loc></url>", "text/xml")],
)
async def test_links_inherit_the_context_of_their_page(body: bytes, content_type: str) -> None:
    """Session, stage and the like of a fetch hold for the links of a page and of a list."""
    context = m.Context(session="s", stage="list")
    room = await Room(with_links("http://a.test/x")).start()
    outlinks, _ = room.send(body, content_type=content_type, context=context)
    assert isinstance(outlinks, m.Outlinks)
    assert outlinks.context == context


async def test_no_links_no_outlinks() -> None:
    """A page without links is a record only."""
    room = await Room().start()
    assert [type(message) for message in room.send()] == [m.Record]


async def test_keep_links_puts_the_links_into_the_record() -> None:
    """--links stores what the frontier gets."""
    room = await Room(with_links(*LINKS)).start(crawl_job(uid="j", links=True))
    outlinks, record = room.send()
    assert isinstance(record, m.Record)
    assert record.links is outlinks


async def test_not_modified_keeps_the_stored_copy() -> None:
    """304: a row without text that says so, and no page pass."""
    room = await Room(with_links(*LINKS)).start()
    (record,) = room.send(b"", not_modified=True, status=304, etag='"x"')
    assert isinstance(record, m.Record)
    assert (record.outcome, record.reason, record.not_modified) == (m.Outcome.STORED, "not_modified", True)
    assert (record.sha256, record.text, record.etag, room.calls) == (b"", b"", '"x"', [])


@pytest.mark.parametrize(
    ("meta", "header", "followed"),
    [
        ("", "", True),
        ("noindex", "noindex", True),
        ("nofollow", "", False),
        ("index, none", "", False),
        ("", "noindex, nofollow", False),
        ("", "nephila: nofollow", False),
        ("", "otherbot: nofollow", True),
        ("", "otherbot: noindex, nofollow", True),
        ("", "otherbot: nofollow, nephila: noindex, nofollow", False),
        ("", "unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", False),
        ("max-snippet: -1, nofollow", "", False),
        ("", "otherbot: noindex\nnofollow", False),
    ],
)
async def test_nofollow_pages_pass_no_links_on(meta: str, header: str, followed: bool) -> None:
    """Bare directives and ours count, other agents' do not; noindex does not stop anything."""
    room = await Room(with_links(*LINKS, robots=meta)).start()
    out = room.send(robots_tag=header)
    assert (len(out) == 2) is followed
    assert isinstance(out[-1], m.Record)
    said = json.loads(out[-1].meta)
    assert (said.get("robots", ""), said.get("x_robots_tag", "")) == (meta, header)


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("0; url=/new", "http://h.test/new"),
        ("3;URL='../n?x'", "http://h.test/n?x"),
        ("nonsense\n1, /second", "http://h.test/second"),
        ("5", ""),
        ("0; url=mailto:x@y", ""),
    ],
)
@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "image/png"])
async def test_the_refresh_header_is_a_link(header: str, target: str, content_type: str) -> None:
    """Of any document, relative to its URL; the first header with a URL counts, and nofollow holds for it."""
    for robots_tag, urls in (("", [target] if target else []), ("nofollow", [])):
        room = await Room(with_links(*LINKS)).start()
        out = room.send(url="http://h.test/a/b", content_type=content_type, refresh=header, robots_tag=robots_tag)
        flags = bytes((KIND_REFRESH,))
        links = [one.urls.decode() for one in out if isinstance(one, m.Outlinks) and one.flags == flags]
        assert links == urls


async def test_ignore_robots_follows_all_the_same() -> None:
    """A job that does not consult robots does not consult meta robots either."""
    room = await Room(with_links(*LINKS, robots="nofollow")).start(
        crawl_job(uid="j", politeness=Politeness(delay="0", respect_robots=False))
    )
    assert len(room.send(robots_tag="none")) == 2


async def test_nofollow_page_keeps_its_links_in_the_record() -> None:
    """--links is about what the page has, not about what is followed."""
    room = await Room(with_links(*LINKS, robots="nofollow")).start(crawl_job(uid="j", links=True))
    (record,) = room.send()
    assert isinstance(record, m.Record)
    assert record.links is not None
    assert record.links.urls == "".join(LINKS).encode()


async def test_nofollow_links_keep_their_flag() -> None:
    """rel=nofollow is the scheduler's to judge."""
    room = await Room(with_links(*LINKS, flags=b"\x01\x00")).start()
    outlinks = room.send()[0]
    assert isinstance(outlinks, m.Outlinks)
    assert outlinks.flags == b"\x01\x00"


async def test_limits_reach_the_page_pass_and_bound_the_rest() -> None:
    """What one page may cost is configuration."""
    found = FakePass(title="t" * 50, lang="x" * 99, description="d" * 50)
    found.meta = [(f"og:{n}", "v") for n in range(9)]
    room = await Room(
        found, max_links=5, max_text_bytes=6, max_title_chars=7, max_meta_chars=8, max_meta_entries=4
    ).start()
    record = room.record()
    assert room.calls[0][3:] == (5, 6)
    assert (record.title, len(record.lang)) == ("t" * 7, 35)
    assert json.loads(record.meta) == {"encoding": "utf-8", "description": "d" * 8, "og:0": "v", "og:1": "v"}


async def test_body_may_be_any_bytes_like_object() -> None:
    """In one program the downloader hands over its buffer."""
    room = await Room().start()
    record = room.record(bytearray(b"<html>x"))
    assert record.size_bytes == 7
    assert room.calls[0][0] == b"<html>x"


async def test_page_is_acked_once_both_messages_are_taken_and_lets_its_body_go() -> None:
    """At-least-once: the page stays unacked until its effects are, but its bytes do not stay in memory."""
    room = await Room(with_links(*LINKS)).start()
    room.hold = True
    room.send()
    assert room.bus.unacked == 3
    room.held[0].ack()
    assert room.bus.unacked == 2
    room.held[1].ack()
    assert room.bus.unacked == 0


async def test_window_bounds_unacked_pages() -> None:
    """Credits: what is beyond the window waits in the bus."""
    room = await Room(window=2).start()
    room.hold = True
    for _ in range(5):
        room.send()
    assert len(room.log) == 2
    room.held[0].ack()
    assert len(room.log) == 3


async def test_the_row_has_the_main_text() -> None:
    """And its hash: a new footer is no change."""
    room = await Room(FakePass(text=b"menu\nsubject\nfooter", main_text=b"subject")).start()
    record = room.record(b"<html>")
    assert record.text == b"subject"
    assert record.text_hash == hashlib.sha256(b"subject").digest()[:8]


async def test_a_page_without_a_subject_keeps_all_its_text() -> None:
    """A front page of links has nothing else."""
    room = await Room(FakePass(text=b"menu\nfooter")).start()
    record = room.record(b"<html>")
    assert record.text == b"menu\nfooter"
    assert record.text_hash == hashlib.sha256(b"menu\nfooter").digest()[:8]


async def test_all_text_on_demand() -> None:
    """`full_text` keeps the frame in the row; what a recrawl compares stays the main text."""
    room = await Room(FakePass(text=b"menu\nsubject", main_text=b"subject"), full_text=True).start()
    record = room.record(b"<html>")
    assert record.text == b"menu\nsubject"
    assert record.text_hash == hashlib.sha256(b"subject").digest()[:8]
