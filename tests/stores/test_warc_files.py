"""Raw pages: written with their record, acknowledged with it, readable by common tools."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest
import warcio
from fastwarc.warc import ArchiveIterator, WarcRecordType
from nephila.kernel.messages import Capture, Outlinks
from nephila.kernel.topics import PAGES
from nephila_stores.warcs import warc_records

from tests.storage.storage_rig import page, record, rows, running

WARC = ("sqlite", "warc")


def read(directory):
    """(type, headers, body) of every record after the warcinfo, digests checked."""
    found = []
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for item in ArchiveIterator(stream, parse_http=True):
                if item.record_type == WarcRecordType.warcinfo:
                    assert item.headers["WARC-Filename"] == path.name
                    continue
                if item.record_type == WarcRecordType.metadata:
                    continue
                found.append((item.record_type, dict(item.headers), dict(item.http_headers or {}), item.reader.read()))
    return found


async def test_a_page_is_acked_together_with_its_record(tmp_path):
    """Neither is acknowledged before both are durable."""
    async with running(tmp_path, formats=WARC) as rig:
        (raw,) = rig.send_page(page(1))
        await rig.storage.flush()
        assert not raw.done
        (row,) = rig.send(record(1))
        assert not row.done
        await rig.storage.flush()
        assert raw.done
        assert row.done
    kinds = [kind for kind, *_ in read(tmp_path)]
    assert kinds == [WarcRecordType.request, WarcRecordType.response]


async def test_what_a_browser_made_of_a_page_is_in_resource_records(tmp_path):
    """The document after its scripts and each capture, concurrent to the answer of the server; without a body: none."""
    captures = [
        Capture("xhr", "http://api.test/x", "application/json", b"{}"),
        Capture("screenshot", "http://h1.test/p/1.html", "image/png", b"PNG"),
        Capture("pdf", "http://h1.test/p/1.html", "application/pdf", b""),
    ]
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1, rendered=True, wire_body=b"<p>as sent", captures=captures))
        rig.send(record(1))
        await rig.storage.flush()
    (_, (_, answer, *_), *resources) = read(tmp_path)
    body = page(1).body
    assert [(kind, headers["WARC-Target-URI"], found) for kind, headers, _, found in resources] == [
        (WarcRecordType.resource, "urn:document:http://h1.test/p/1.html", body),
        (WarcRecordType.resource, "http://api.test/x", b"{}"),
        (WarcRecordType.resource, "urn:screenshot:http://h1.test/p/1.html", b"PNG"),
    ]
    assert {headers["WARC-Concurrent-To"] for _, headers, *_ in resources} == {answer["WARC-Record-ID"]}


async def test_without_a_raw_sink_pages_are_not_read(tmp_path):
    """They use no credit."""
    async with running(tmp_path, formats=("sqlite", "jsonl")) as rig:
        (raw,) = rig.send_page(page(1))
        assert raw.done


async def test_a_page_that_comes_after_its_row_is_written_alone(tmp_path):
    """The group had no credit when the page was published: the archive still contains it."""
    async with running(tmp_path, formats=WARC, raw_credits=1) as rig:
        first, second = rig.send_page(page(1), page(2))
        rig.send(record(2))
        await rig.storage.flush()
        assert len(rows(tmp_path)) == 1
        rig.send(record(1))
        await rig.storage.flush()
        await rig.storage.flush()
        assert first.done
        assert second.done
    assert len(read(tmp_path)) == 4


async def test_rows_without_a_page_leave_nothing_in_the_archive(tmp_path):
    """Denied and failed rows of the scheduler."""
    from nephila.kernel.messages import Outcome

    async with running(tmp_path, formats=WARC) as rig:
        rig.send(record(1, outcome=Outcome.DENIED, reason="robots"))
        await rig.storage.flush()
    assert read(tmp_path) == []


async def test_files_rotate_and_all_of_them_are_checked_on_open(tmp_path):
    """A new file at the size limit; each begins with a warcinfo."""
    async with running(tmp_path, formats=WARC, warc_bytes=1) as rig:
        for number in range(3):
            rig.send_page(page(number))
            rig.send(record(number))
            await rig.storage.flush()
    assert [path.name for path in sorted(tmp_path.glob("*.gz"))] == [f"nephila-0000{n}.warc.gz" for n in range(3)]
    assert len(read(tmp_path)) == 6
    (tmp_path / "nephila-00000.warc.gz").unlink()
    with pytest.raises(Exception, match=r"nephila-00000\.warc\.gz is gone"):
        async with running(tmp_path, formats=WARC):
            pass


async def test_the_body_on_the_wire_is_kept_when_it_is_there(tmp_path):
    """Content-Encoding is still correct; Transfer-Encoding was removed and is renamed."""
    wire = gzip.compress(b"<html>hello</html>")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n"
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1, body=b"<html>hello</html>", wire_body=wire, response_head=head))
        rig.send(record(1))
        await rig.storage.flush()
    _, headers, http, body = read(tmp_path)[1]
    assert body == wire
    assert http == {
        "Content-Encoding": "gzip",
        "X-Crawler-Transfer-Encoding": "chunked",
        "X-A": "1",
        "Content-Length": str(len(wire)),
    }
    assert headers["WARC-IP-Address"] == "192.0.2.7"


async def test_a_decoded_body_renames_the_headers_that_are_no_longer_true(tmp_path):
    """Readers must not decode it again."""
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\nContent-Length: 7\r\n"
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1, body=memoryview(b"<html>hello</html>"), response_head=head))
        rig.send(record(1))
        await rig.storage.flush()
    _, _, http, body = read(tmp_path)[1]
    assert body == b"<html>hello</html>"
    assert http == {"X-Crawler-content-encoding": "br", "X-Crawler-Content-Length": "7", "Content-Length": "18"}


async def test_a_304_is_a_revisit(tmp_path):
    """No body; the profile for a 304."""
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1, 2, status=304, body=b"", not_modified=True, response_head=b"HTTP/1.1 304 No\r\nETag: x"))
        rig.send(record(1, 2, not_modified=True))
        await rig.storage.flush()
    kind, headers, _, body = read(tmp_path)[1]
    assert kind == WarcRecordType.revisit
    assert headers["WARC-Profile"].endswith("server-not-modified")
    assert body == b""


async def test_hostile_urls_and_heads_stay_inside_their_record(tmp_path):
    """A line break in a URL creates no header, an invalid address is left out, any head is stored in one piece."""
    async with running(tmp_path, formats=WARC) as rig:
        bad = page(
            1, url="http://x/\r\nWARC-Type: warcinfo\r\n ż", address="\r\nX: 1", response_head=b"\xff\n\x00garbage"
        )
        rig.send_page(bad, page(2, response_head=b"", request_head=b""))
        rig.send(record(1), record(2))
        await rig.storage.flush()
    found = read(tmp_path)
    assert len(found) == 3
    assert found[0][1]["WARC-Target-URI"] == "http://x/%0D%0AWARC-Type:%20warcinfo%0D%0A%20ż"
    assert "WARC-IP-Address" not in found[0][1]


def test_a_member_is_plain_gzip_whichever_library_made_it(monkeypatch):
    """igzip where it is installed, zlib elsewhere."""
    data = b"abc" * 1000
    assert gzip.decompress(warc_records.gzip_member(data)) == data
    monkeypatch.setattr(warc_records, "_isal", None)
    assert zlib.decompress(warc_records.gzip_member(data), 31) == data


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_lenient_head_is_read_as_the_fetcher_read_it(line_end):
    """Bare line feeds and empty lines before the status hide no wrong header."""
    lines = (b"", b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked", b"Content-Encoding: br", b"X: 1", b"", b"")
    head = warc_records.true_head(line_end.join(lines), 5, True)
    assert head == (
        b"HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nX-Crawler-Content-Encoding: br\r\nX: 1\r\n"
        b"Content-Length: 5\r\n\r\n"
    )


def test_a_true_head_is_kept_byte_for_byte():
    """If nothing has to be renamed even unusual line ends stay."""
    head = b"HTTP/1.1 200 OK\nContent-Length: 5\nX: 1\r\n\r\n"
    assert warc_records.true_head(head, 5, True) == head


async def test_a_revisit_names_the_record_it_confirms(tmp_path):
    """Date and digest of the last complete answer, of this run or read from the archive of an earlier run."""
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1), page(2))
        rig.send(record(1), record(2))
        await rig.storage.flush()
        rig.send_page(page(1, 2, status=304, body=b"", not_modified=True))
        rig.send(record(1, 2, not_modified=True))
        await rig.storage.flush()
    async with running(tmp_path, formats=WARC, warc_bytes=1) as rig:
        for number in (2, 7):
            rig.send_page(page(number, 2, status=304, body=b"", not_modified=True))
            rig.send(record(number, 2, not_modified=True))
            await rig.storage.flush()
    found = read(tmp_path)
    captured = {headers["WARC-Target-URI"]: headers for kind, headers, *_ in found if kind == WarcRecordType.response}
    revisits = [headers for kind, headers, *_ in found if kind == WarcRecordType.revisit]
    for headers in revisits[:2]:
        first = captured[headers["WARC-Refers-To-Target-URI"]]
        assert headers["WARC-Refers-To-Date"] == first["WARC-Date"]
        assert headers["WARC-Payload-Digest"] == first["WARC-Payload-Digest"]
    assert len(revisits) == 3
    assert "WARC-Refers-To-Date" not in revisits[2]


async def test_answers_that_are_no_pages(tmp_path):
    """A redirect, a 404 with its body, a truncated answer: each at once, without a row."""
    head = b"HTTP/1.1 %d X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
    async with running(tmp_path, formats=(*WARC, "raw")) as rig:
        sent = rig.send_exchange(
            page(1, status=301, body=b"", response_head=head % (301, 0)),
            page(2, status=404, body=b"", wire_body=b"gone", response_head=head % (404, 4)),
            page(3, status=500, body=b"", truncated="length", response_head=head % (500, 10**6)),
        )
        await rig.storage.flush()
        assert all(one.done for one in sent)
        assert rows(tmp_path) == []
    found = read(tmp_path)
    assert [kind for kind, *_ in found] == [WarcRecordType.request, WarcRecordType.response] * 3
    assert [body for _, _, _, body in found[1::2]] == [b"", b"gone", b""]
    assert [headers.get("WARC-Truncated") for _, headers, *_ in found[1::2]] == [None, None, "length"]
    assert found[5][2]["X-Crawler-Content-Length"] == "1000000"


async def test_files_have_job_and_start_in_their_names_and_a_warcinfo(tmp_path):
    """File names differ between crawls; a resumed run continues the same file."""
    for number, archive in enumerate(("news/1-20270115080000", "news/1-20280115080000")):
        async with running(tmp_path, formats=WARC, archive=archive) as rig:
            rig.send_page(page(number, request_head=b"GET / HTTP/1.1\r\nuser-agent: Bot/1\r\n\r\n"))
            rig.send(record(number))
            await rig.storage.flush()
    (path,) = tmp_path.glob("*.warc.gz")
    assert path.name == "news_1-20270115080000-00000.warc.gz"
    assert len(read(tmp_path)) == 4
    with path.open("rb") as stream:
        info = next(iter(ArchiveIterator(stream))).reader.read().decode()
    fields = dict(line.split(": ", 1) for line in info.splitlines())
    assert {"software", "format", "conformsTo", "hostname", "isPartOf", "http-header-user-agent"} <= fields.keys()
    assert fields["http-header-user-agent"] == "Bot/1"


async def test_a_page_has_a_metadata_record(tmp_path):
    """Depth and, if links are stored, outlinks; it refers to its response, and a title creates no field."""
    ends = struct.pack("<2I", 9, 18)
    links = Outlinks(fingerprints=b"a" * 32, urls=b"http://a/http://b/", url_ends=ends, anchor_ends=bytes(8))
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1))
        rig.send(record(1, depth=3, title="x\r\noutlink: http://evil/", links=links))
        await rig.storage.flush()
    found = {}
    for path in tmp_path.glob("*.warc.gz"):
        with path.open("rb") as stream:
            for item in ArchiveIterator(stream, parse_http=False):
                found[item.headers["WARC-Type"]] = (dict(item.headers), item.reader.read().decode())
    headers, block = found["metadata"]
    assert headers["WARC-Refers-To"] == found["response"][0]["WARC-Record-ID"]
    assert block.splitlines() == [
        "hopsFromSeed: 3",
        "fetchNo: 1",
        "title: x outlink: http://evil/",
        "outlink: http://a/",
        "outlink: http://b/",
    ]


async def test_warcio_check_passes(tmp_path):
    """Every digest of every record type, as `warcio check` does."""
    async with running(tmp_path, formats=WARC) as rig:
        rig.send_page(page(1), page(2, wire_body=gzip.compress(b"x" * 900)))
        rig.send(record(1), record(2))
        rig.send_exchange(page(3, status=404, body=b"", wire_body=b"gone"))
        await rig.storage.flush()
        rig.send_page(page(1, 2, status=304, body=b"", not_modified=True))
        rig.send(record(1, 2, not_modified=True))
        await rig.storage.flush()
    kinds = []
    for path in tmp_path.glob("*.warc.gz"):
        with path.open("rb") as stream:
            for item in warcio.ArchiveIterator(stream, check_digests=True):
                item.content_stream().read()
                assert item.digest_checker.passed is not False, item.digest_checker.problems
                kinds.append(item.rec_type)
    assert sorted(set(kinds)) == ["metadata", "request", "response", "revisit", "warcinfo"]


async def test_pages_of_a_dead_process_are_not_written(tmp_path):
    """Their records do not come any more, and they are fetched again; pages of other partitions wait for theirs."""
    async with running(tmp_path, formats=WARC) as rig:
        lost, other, whole = (rig.bus.publish(PAGES, number, page(at)) for at, number in ((1, 1), (2, 2), (3, 1)))
        rig.send(record(3))
        rig.storage.abandon_pages(range(2), {(record(3).job, record(3).url_key)})
        assert [receipt.done for receipt in (lost, other, whole)] == [True, False, False]
        rig.send_page(page(1, attempt=2))
        rig.send(record(1, attempt=2), record(2))
        await rig.storage.flush()
    assert len(read(tmp_path)) == 6
