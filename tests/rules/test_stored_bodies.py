"""Bodies by URL: raw and WARC files of a directory that grows, and files that are damaged or gone."""

from __future__ import annotations

import gzip

import pytest
from nephila_rules.stored_bodies import StoredBodies
from nephila_stores.raw_file import RawPageHead, member


def raw(url: str, body: bytes = b"<p>x", **head) -> bytes:
    """A member of a raw file."""
    values = {"url": url, "content_type": "text/html", **head}
    return gzip.compress(member(RawPageHead(**values), body))


def warc(url: str, body: bytes) -> bytes:
    """A record of a WARC file."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(answer)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + answer + b"\r\n\r\n")


def test_a_directory_that_grows_gives_its_new_pages(tmp_path):
    """And of a URL that was fetched again the last body; what is no page of HTML is left out."""
    file = tmp_path / "raw-00000.gz"
    file.write_bytes(raw("http://a.test/1") + raw("http://a.test/i", content_type="image/png"))
    bodies = StoredBodies(tmp_path)
    assert bodies.urls() == (["http://a.test/1"], True)
    with file.open("ab") as stream:
        stream.write(raw("http://a.test/2", b"two") + raw("http://a.test/1", b"new"))
        stream.write(raw("http://a.test/404", status=404) + raw("http://a.test/big", left_out="too large"))
    assert bodies.page("http://a.test/2").body == b"two"
    assert bodies.page("http://a.test/1").body == b"new"
    assert bodies.urls() == (["http://a.test/1", "http://a.test/2"], True)


def test_warc_files_are_read_and_read_on(tmp_path):
    """Where there is no raw file."""
    file = tmp_path / "job-00000.warc.gz"
    file.write_bytes(warc("http://a.test/1", b"one") + warc("http://a.test/2", b"two"))
    bodies = StoredBodies(tmp_path)
    assert bodies.page("http://a.test/2").body == b"two"
    with file.open("ab") as stream:
        stream.write(warc("http://a.test/3", b"three"))
    assert bodies.urls() == ([f"http://a.test/{number}" for number in (1, 2, 3)], True)
    assert bodies.page("http://a.test/3").body == b"three"
    assert bodies.page("http://a.test/1").body == b"one"


def test_a_damaged_member_hides_no_other(tmp_path):
    """Nor does a file that is gone raise."""
    file = tmp_path / "raw-00000.gz"
    broken = bytearray(raw("http://a.test/1"))
    broken[20] ^= 0xFF
    file.write_bytes(bytes(broken) + raw("http://a.test/2"))
    bodies = StoredBodies(tmp_path)
    assert bodies.page("http://a.test/2") is not None
    assert bodies.page("http://a.test/1") is None
    file.unlink()
    assert bodies.page("http://a.test/2") is None


@pytest.mark.parametrize("directory", [None, "missing"])
def test_without_a_directory_there_are_no_pages(tmp_path, directory):
    """A system over Kafka has none."""
    bodies = StoredBodies(tmp_path / directory if directory else None)
    assert bodies.urls() == ([], True)
    assert bodies.page("http://a.test/1") is None
