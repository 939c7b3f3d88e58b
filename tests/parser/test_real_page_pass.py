"""The parser over the native core that is installed: hostile documents, and what a page becomes for real."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, JOBS, OUTLINKS, PAGES, RECORDS
from nephila.native import parse_url
from nephila.parser.config import ParserConfig
from nephila.parser.service import build
from nephila.parser.single import child as extract_child
from nephila.parser.single.extract import extract


async def parse(*bodies: bytes, job: m.CrawlJob | None = None, **fields: str) -> list[m.Outlinks | m.Record]:
    """What the built service publishes for these bodies."""
    clock = ManualClock()
    bus = LocalBus(clock)
    out: list[m.Outlinks | m.Record] = []
    for topic in (OUTLINKS, RECORDS):
        bus.subscribe(topic, "test", lambda delivery: (out.append(delivery.message), delivery.ack())[1], credits=10)
    dead: list[m.DeadLetter] = []
    bus.subscribe(DEAD, "test", lambda delivery: (dead.append(delivery.message), delivery.ack())[1], credits=10)
    parser = build(ParserConfig(), bus, clock)
    await parser.start()
    if job is not None:
        bus.publish(JOBS, 0, job)
    values = {"url": "http://a.test/dir/", "content_type": "text/html", **fields}
    key = parse_url(values["url"]).fingerprint
    for body in bodies:
        bus.publish(PAGES, 0, m.Page(job="j", url_key=key, status=200, body=body, **values))
    await parser.drain(5.0)
    await parser.close()
    assert (bus.unacked, dead) == (0, [])
    return out


async def record_of(body: bytes, **fields: str) -> m.Record:
    """The record of one body."""
    record = (await parse(body, **fields))[-1]
    assert isinstance(record, m.Record)
    assert record.outcome is m.Outcome.STORED
    record.text.decode()
    return record


def urls(outlinks: m.Outlinks | m.Record) -> list[str]:
    """The URLs of packed links."""
    assert isinstance(outlinks, m.Outlinks)
    ends = struct.unpack(f"<{len(outlinks.url_ends) // 4}I", outlinks.url_ends)
    return [outlinks.urls[a:b].decode() for a, b in zip((0, *ends[:-1]), ends, strict=True)]


async def test_a_page_for_real() -> None:
    """Links resolved and fingerprinted, refresh among them, canonical as metadata only."""
    outlinks, record = await parse(
        b"<html lang=de><title> T  t </title><link rel=canonical href=/c><meta http-equiv=refresh content='5; url=/r'>"
        b"<a href=x>one</a><a href=//b.test/y rel=nofollow>two</a>"
    )
    assert isinstance(record, m.Record)
    assert isinstance(outlinks, m.Outlinks)
    assert sorted(urls(outlinks)) == ["http://a.test/dir/x", "http://a.test/r", "http://b.test/y"]
    keys = [outlinks.fingerprints[at : at + 16] for at in range(0, 48, 16)]
    assert keys == [parse_url(url).fingerprint for url in urls(outlinks)]
    flags = dict(zip(urls(outlinks), outlinks.flags, strict=True))
    assert (flags["http://b.test/y"] & 1, flags["http://a.test/r"] >> 1) == (1, 5)
    assert (record.title, record.lang) == ("T t", "de")
    said = json.loads(record.meta)
    assert (said["canonical"], said["refresh"]) == ("http://a.test/c", "http://a.test/r")


async def test_meta_robots_for_us_counts() -> None:
    """<meta name=nephila content=nofollow> is addressed to us, another crawler's is not."""
    assert len(await parse(b"<meta name=nephila content=NoFollow><a href=x>x</a>")) == 1
    assert len(await parse(b"<meta name=googlebot content=nofollow><a href=x>x</a>")) == 2


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", ""),
        (b"\x00", ""),
        (b"<p>a\x00b<p>c\x00", "ab\nc"),
        (b"<", "<"),
        (b"<div>" * 300 + b"deep", "deep"),
        (b"<div>" * 100_000 + b"deep", "deep"),
        (b"<b><p>" * 20_000 + b"deep", "deep"),
        (b"<table><tr><td>" * 5_000 + b"deep", "deep"),
        (b"<!--", ""),
        (b"<script>" * 10_000, ""),
        (b"<a href=" + b"x" * 100_000, ""),
        (b"&" * 100_000, "&" * 100_000),
    ],
)
async def test_hostile_documents_are_stored_pages(body: bytes, text: str) -> None:
    """Depth, NULs, unfinished constructs: a row with the text that is there."""
    assert (await record_of(body)).text.decode() == text


async def test_binary_declared_as_html() -> None:
    """Random bytes without a known signature go through the page pass and come out as some text."""
    await record_of(bytes(range(256)) * 2_000)


async def test_twenty_megabytes() -> None:
    """A huge page is bounded, not refused: links and text up to the limits, the rest not at all."""
    body = b"".join(b'<p>paragraph %d <a href="/%d">link</a></p>' % (n, n) for n in range(420_000))
    assert len(body) > 20_000_000
    outlinks, record = await parse(body)
    assert isinstance(record, m.Record)
    assert len(urls(outlinks)) == ParserConfig().max_links
    assert 3_900_000 < len(record.text) <= ParserConfig().max_text_bytes
    assert record.size_bytes == len(body)


@pytest.mark.parametrize(
    ("body", "charset", "encoding", "text"),
    [
        ("<p>東京都は新しい道路".encode("shift_jis"), "", "shift_jis", "東京都は新しい道路"),
        ("<p>Größe".encode("utf-16"), "iso-8859-1", "utf-16le", "Größe"),
        ("<p>Größe".encode(), "iso-8859-1", "windows-1252", "GrÃ¶ÃŸe"),
        ("<meta charset=utf-8><p>Größe".encode("cp1252"), "", "utf-8", "Gr\ufffd\ufffde"),
        ("<meta charset=koi8-r><p>Да".encode("koi8-r"), "", "koi8-r", "Да"),
        ("<meta charset=koi8-r><p>Да".encode("cp1251"), "windows-1251", "windows-1251", "Да"),
        (b"<p>x", "no-such-charset", "utf-8", "x"),
        (b"<?xml version='1.0' encoding='iso-8859-2'?><p>\xb1", "", "iso-8859-2", "ą"),
        (b"<p>x", "hz-gb-2312", "replacement", ""),
    ],
)
async def test_charsets(body: bytes, charset: str, encoding: str, text: str) -> None:
    """Mark, header, <meta>, XML declaration, look; a wrong declaration is believed, as browsers do."""
    record = await record_of(body, charset=charset)
    assert json.loads(record.meta)["encoding"] == encoding
    assert text in record.text.decode()


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 100_000 + b"<img src=x>",
        b"<div></x>" * 100_000 + b"<img src=x>",
        b"<p " + b" ".join(b"a%d" % number for number in range(300_000)) + b">",
        b"\x00" * 1000 + b"<h1>\x00</h1>",
        b"<p>" + bytes(range(256)) * 100,
        b"<",
    ],
)
def test_extract_survives_hostile_documents(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page whose tree takes too long is read without one."""
    monkeypatch.setattr(extract_child, "EXTRACT", replace(extract_child.EXTRACT, wall_s=0.3))
    found = extract(body, "http://a.test/")
    assert found["url"] == "http://a.test/"
    assert json.loads(json.dumps(found)) == found
