"""WARC files read back: pages as they were, faults told, nothing behind a fault lost."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import tracemalloc
import zlib
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila_rules.stored_pages import pages_of
from nephila_rules.warcs import ArchivedPage, BadRecord, read_warc

HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=koi8-r\r\nX-Robots-Tag: none\r\n"


def record(block: bytes, kind: str = "response", url: str = "http://a.test/", **more: str) -> bytes:
    """One record; `length` may lie."""
    length = more.pop("length", str(len(block)))
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-02T10:00:00Z\r\n"
    head += "".join(f"WARC-{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + block + b"\r\n\r\n"


def page(body: bytes = b"<p>", extra: bytes = b"", **more: str) -> bytes:
    """A record with a response."""
    return record(HTTP + extra + b"\r\n" + body, **more)


def read(data: bytes, **limits: int) -> list[ArchivedPage | BadRecord]:
    """All there is."""
    return list(read_warc(io.BytesIO(data), **limits))


def bodies(data: bytes) -> list[bytes | str]:
    """Bodies of pages, reasons of faults."""
    return [one.body if isinstance(one, ArchivedPage) else one.reason for one in read(data)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_page_comes_out_as_it_went_in(pack) -> None:  # type: ignore[no-untyped-def]
    """Address, date, status, type and body; requests, revisits and the rest are passed over."""
    parts = [
        record(b"software: x\r\n", "warcinfo"),
        record(b"GET / HTTP/1.1\r\n\r\n", "request"),
        page(b"<p>1"),
        record(HTTP + b"\r\n", "revisit"),
        record(b"{}", "resource", "https://b.test/x", **{"Type-x": "y"}),
    ]
    found = read(b"".join(map(pack, parts)))
    first, second = found
    assert isinstance(first, ArchivedPage)
    assert isinstance(second, ArchivedPage)
    assert first._replace(offset=0) == ArchivedPage(
        "http://a.test/", 1714644000.0, 200, "text/html", "koi8-r", "none", b"<p>1", 0
    )
    assert (second.url, second.status, second.body) == ("https://b.test/x", 200, b"{}")
    assert first.offset == len(b"".join(map(pack, parts[:2])))


def test_one_member_for_all_records() -> None:
    """Against the standard, and common."""
    assert bodies(gzip.compress(b"".join(page(b"%d" % n) for n in range(50)))) == [b"%d" % n for n in range(50)]


@pytest.mark.parametrize(
    ("body", "extra", "expected"),
    [
        (b"4\r\nabcd\r\n3;x=y\r\nefg\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n", b"abcdefg"),
        (b"no chunks here", b"Transfer-Encoding: chunked\r\n", b"no chunks here"),
        (b"4\r\nabcd\r\nff\r\ntorn", b"Transfer-Encoding: chunked\r\n", b"abcdtorn"),
        (gzip.compress(b"abc"), b"Content-Encoding: gzip\r\n", b"abc"),
        (b"unpacked already", b"Content-Encoding: gzip\r\n", b"unpacked already"),
        (zlib.compress(b"abc"), b"Content-Encoding: deflate\r\n", b"abc"),
        (zlib.compress(b"abc")[2:-4], b"Content-Encoding: deflate\r\n", b"abc"),
        (gzip.compress(zlib.compress(b"abc")), b"Content-Encoding: deflate, gzip\r\n", b"abc"),
        (gzip.compress(b"abc")[:-3], b"Content-Encoding: gzip\r\n", b"abc"),
        (gzip.compress(b"abc")[:-9], b"Content-Encoding: gzip\r\n", "broken content: it ends early"),
        (b"abc", b"Content-Encoding: rot13\r\n", "content coding 'rot13' is not known"),
        (b"\x00\x01", b"Content-Encoding: deflate\r\n", "broken content: "),
    ],
    ids=range(12),
)
def test_bodies_as_a_browser_would_get_them(body: bytes, extra: bytes, expected: bytes | str) -> None:
    """Chunks and codings are taken off where they are, and the next record is read in any case."""
    first, second = bodies(page(body, extra) + page(b"next"))
    assert first == expected or (isinstance(first, str) and isinstance(expected, str) and first.startswith(expected))
    assert second == b"next"


def test_digests_are_held_against_the_bytes() -> None:
    """Of the block and of the body, in base 32 or hex; one that is wrong is told with the page."""
    block = HTTP + b"\r\n<p>"
    sha1 = base64.b32encode(hashlib.sha1(block, usedforsecurity=False).digest()).decode()
    good = [
        record(block, Block_Digest=f"sha1:{sha1}", Payload_Digest=f"sha256:{hashlib.sha256(b'<p>').hexdigest()}"),
        record(block, Block_Digest="sha1:nonsense", Payload_Digest="crc32:1"),
    ]
    bad = [record(block, Block_Digest=f"sha1:{'A' * 32}"), record(block, Payload_Digest=f"md5:{'0' * 32}")]
    problems = [one.problem for one in read(b"".join(good + bad)) if isinstance(one, ArchivedPage)]
    assert problems == ["", "", "its block digest is that of other bytes", "its payload digest is that of other bytes"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (b"junk that is no record\r\n", "no record begins here"),
        (record(b"x", length="many"), "no Content-Length"),
        (record(b"x", length="-1"), "no Content-Length"),
        (b"WARC/1.0\r\n" + b"A: b\r\n" * 2_000 + b"\r\n", "its header has no end"),
        (b"WARC/1.0\r\nA: " + b"x" * 100_000 + b"\r\n\r\n", "a header line is too long"),
        (record(b"no HTTP at all"), "no HTTP response"),
        (record(HTTP + b"\r\nmore than it says", length="20"), "no HTTP"),
    ],
    ids=["junk", "length", "negative", "header", "line", "http", "short"],
)
def test_reading_goes_on_behind_a_fault(fault: bytes, reason: str) -> None:
    """What is wrong is told with its place, and the page behind it comes out."""
    found = read(page(b"before") + fault + page(b"after"))
    assert [one.body for one in found if isinstance(one, ArchivedPage)][:1] == [b"before"]
    bad = [one for one in found if isinstance(one, BadRecord)]
    last = found[-1]
    assert isinstance(last, ArchivedPage)
    assert last.body == b"after"
    if reason != "no HTTP":
        assert bad[0].reason.startswith(reason)
        assert bad[0].offset == len(page(b"before"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_torn_end_is_told(pack) -> None:  # type: ignore[no-untyped-def]
    """Wherever it was torn: what was whole comes out, and one fault at most."""
    whole, last = pack(page(b"whole")), pack(page(b"torn" * 50))
    for cut in range(1, len(last) - 12, 7):
        found = read(whole + last[:cut])
        assert isinstance(found[0], ArchivedPage)
        assert [type(one) for one in found[1:]] in ([], [BadRecord])
    assert isinstance(read(whole + last[: len(last) // 2])[1], BadRecord)


def test_broken_member_costs_itself() -> None:
    """The pages of the members around it come out."""
    members = [gzip.compress(page(b"%d" % n * 300)) for n in range(5)]
    broken = bytearray(members[2])
    broken[40:60] = bytes(20)
    found = read(b"".join([*members[:2], bytes(broken), *members[3:]]))
    assert [one.body[:1] for one in found if isinstance(one, ArchivedPage)] == [b"0", b"1", b"3", b"4"]
    (bad,) = [one for one in found if isinstance(one, BadRecord)]
    assert (bad.offset, bad.reason[:7]) == (sum(map(len, members[:2])), "broken:")


@pytest.mark.parametrize("extra", [b"", b"Content-Encoding: gzip\r\n"])
def test_large_records_are_told_and_passed_over(extra: bytes) -> None:
    """Also those that only unpack to more than may be."""
    body = gzip.compress(bytes(50_000)) if extra else bytes(50_000)
    data = page(body, extra) + page(b"next")
    found = read(data, max_bytes=10_000)
    assert [one.reason if isinstance(one, BadRecord) else one.body for one in found] == [
        "more than 10,000 bytes",
        b"next",
    ]


def test_memory_is_that_of_one_record() -> None:
    """Whatever a header says, and however well an archive is packed."""
    bomb = gzip.compress(record(bytes(100_000_000), "metadata")) + gzip.compress(record(b"x", length=str(10**14)))
    tracemalloc.start()
    found = read(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [type(one) for one in found] == [BadRecord]
    assert peak < 8 << 20


def test_noise_never_fails() -> None:
    """Any bytes turned, cut or put in: pages or faults."""
    rng = random.Random(7)
    whole = b"".join(page(b"%d" % n * 20) for n in range(6))
    for _ in range(300):
        data = bytearray(gzip.compress(whole) if rng.random() < 0.5 else whole)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            choice = rng.random()
            if choice < 0.5:
                data[at] = rng.randrange(256)
            elif choice < 0.8:
                del data[at : at + rng.randrange(1, 30)]
            else:
                data[at:at] = rng.randbytes(rng.randrange(1, 30))
        assert len(read(bytes(data))) < 1_000


@pytest.mark.parametrize("data", [b"", b"\n", b"\x1f\x8b\x08", b"\x1f\x8b", b"WARC/1.0", b"\0" * 10_000])
def test_files_of_hardly_anything(data: bytes) -> None:
    """Nothing, or one fault."""
    assert len(read(data)) <= 1


def test_rules_are_tried_on_the_pages_of_an_archive(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those with status 200; what is left out is told, and an archive without a page is one line."""
    path = tmp_path / "a.warc"
    path.write_bytes(page(b"<p>1", url="http://a.test/1") + record(b"no HTTP") + page(b"<p>2", url="http://a.test/2"))
    assert [(one.url, one.charset, one.body) for one in pages_of(path)] == [
        ("http://a.test/1", "koi8-r", b"<p>1"),
        ("http://a.test/2", "koi8-r", b"<p>2"),
    ]
    assert "is left out: 'no HTTP response'" in caplog.text
    path.write_bytes(b"filedesc://x.arc 0.0.0.0 1 text/plain 10\n")
    with pytest.raises(UserError, match="has no page that can be read: ARC, not WARC"):
        list(pages_of(path))
