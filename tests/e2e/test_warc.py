"""The archive of a crawl holds every answer, whichever process has fetched it, and what was sent for it."""

from __future__ import annotations

import gzip
import json
import sqlite3

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


def test_the_password_of_a_seed_is_sent_and_stored_nowhere_else(tmp_path):
    """Pages below it are fetched with it; rows, links, archive, index and run.json have the URLs without it."""
    seen = {}

    def private(request):
        seen[request.path] = {name.lower(): value for name, value in request.headers.items()}.get("authorization", "")
        return (
            page("/a", "/b?c")
            if request.path == "/"
            else page()
            if request.path in ("/a", "/b?c")
            else Reply("no", 404)
        )

    url = "http://jo:s3cr%20t@a.test/"
    with serve(private) as web:
        options = ("--format", "warc,jsonl,raw,markdown", "--links", "--workers", "0")
        done = crawl(web, url, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        again = crawl(web, "--resume", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
    assert set(seen.values()) == {"", "Basic am86czNjciB0"}, "robots.txt is fetched without"
    assert not seen["/robots.txt"]
    rows = sqlite3.connect(tmp_path / "o" / "nephila.db")
    assert {one for (one,) in rows.execute("SELECT url FROM pages WHERE outcome = 'stored'")} == {
        "http://a.test/",
        "http://a.test/a",
        "http://a.test/b?c",
    }
    rows.close()
    for path in (tmp_path / "o").rglob("*"):
        if path.is_file() and "frontier" not in path.parts:
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            assert b"s3cr" not in text, path
            assert b"jo:" not in text, path
    assert json.loads((tmp_path / "o" / "run.json").read_text())["seeds"] == ["http://...@a.test/"]
