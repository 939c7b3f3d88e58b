"""The archive of a crawl holds every answer, whichever process has fetched it, and what was sent for it."""

from __future__ import annotations

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.e2e.web import Reply, crawl, page, serve


def site(request):
    """A page, a redirect, a 404 with words, a robots.txt."""
    return {
        "/robots.txt": Reply("User-agent: *\nDisallow: /no\n", type="text/plain"),
        "/": page("/moved", "/gone", "/there"),
        "/moved": Reply("over there", 301, headers={"Location": "/there"}),
        "/there": page(),
    }.get(request.path, Reply("no such page", 404))


@pytest.mark.parametrize("workers", ["0", "1"])
def test_every_answer_is_in_the_archive(tmp_path, workers):
    """Once as a request and once as a response, with its short body, in files named by job and start."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--format", "warc", "--workers", workers, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "o").glob("crawl-20*-00000.warc.gz")
    found, requests, metadata = {}, [], []
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, parse_http=False):
            url = record.headers.get("WARC-Target-URI", "")
            assert record.verify_block_digest()
            if record.is_http:
                record.parse_http()
            if record.record_type == WarcRecordType.response:
                found[url] = (record.http_headers.status_code, record.reader.read())
            elif record.record_type == WarcRecordType.request:
                requests.append(url)
            elif record.record_type == WarcRecordType.metadata:
                metadata.append(url)
    assert sorted(requests) == sorted(found)
    assert {url.removeprefix("http://a.test"): status for url, (status, _) in found.items()} == {
        "/robots.txt": 200,
        "/": 200,
        "/moved": 301,
        "/there": 200,
        "/gone": 404,
    }
    assert found["http://a.test/gone"][1] == b"no such page"
    assert found["http://a.test/moved"][1] == b"over there"
    assert sorted(metadata) == ["http://a.test/", "http://a.test/there"]
