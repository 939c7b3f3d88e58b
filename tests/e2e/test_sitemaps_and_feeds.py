"""Sitemaps and feeds as seeds: what nothing links to is found by them."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.e2e.web import Reply, crawl, page, rows, run_json, serve

INDEX = """<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>http://a.test/maps/pages.xml.gz</loc></sitemap><sitemap><loc>http://a.test/gone.xml</loc></sitemap>
<sitemap><loc>http://a.test/index.xml</loc></sitemap></sitemapindex>"""
PAGES = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="i">
<url><loc>http://a.test/lonely?a=1&amp;b=2</loc><lastmod>2024-05-02</lastmod><image:image><image:loc>http://a.test/1.jpg
</image:loc></image:image></url><url><loc>http://a.test/alone</loc></url><url><loc>http://b.test/</loc></url></urlset>"""


def site(request):
    """An index, a packed sitemap under an archive's type, pages without a link to them, one that links on."""
    packed = Reply(gzip.compress(PAGES.encode()), type="application/x-gzip")
    return {
        "/index.xml": Reply(INDEX, type="text/html"),
        "/maps/pages.xml.gz": packed,
        "/files/backup.gz": packed,
        "/lonely?a=1&b=2": page("/deeper", "/files/backup.gz"),
        "/alone": page(),
        "/deeper": page(),
    }.get(request.path)


@pytest.mark.smoke
def test_index_to_sitemap_to_pages(tmp_path):
    """Every page listed is fetched once, with the depth of the seed; what is out of scope is not."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/index.xml", cwd=tmp_path)
        assert [web.paths().count(path) for path in ("/index.xml", "/maps/pages.xml.gz", "/alone")] == [1, 1, 1]
        assert not [request for request in web.requests if request.host == "b.test"]
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path, "url, outcome, reason, depth, content_type") == [
        ("http://a.test/alone", "stored", "", 0, "text/html"),
        ("http://a.test/deeper", "stored", "", 1, "text/html"),
        ("http://a.test/files/backup.gz", "dropped", "content_type", 1, "application/x-gzip"),
        ("http://a.test/gone.xml", "failed", "http_404", 0, "text/html"),
        ("http://a.test/index.xml", "stored", "", 0, "text/html"),
        ("http://a.test/lonely?a=1&b=2", "stored", "", 0, "text/html"),
        ("http://a.test/maps/pages.xml.gz", "stored", "", 0, "application/x-gzip"),
    ]
    said = {url: (text, meta) for url, text, meta in rows(tmp_path, "url, text, meta")}
    assert said["http://a.test/maps/pages.xml.gz"] == ("", '{"list":"sitemap","links":"3","images":"1"}')
    assert run_json(tmp_path)["left"] == 0


def test_max_depth_0_of_a_sitemap_is_what_it_lists(tmp_path):
    """Nothing that the pages link to."""
    with serve(site) as web:
        crawl(web, "http://a.test/index.xml", "--max-depth", "0", cwd=tmp_path)
    assert [row[0] for row in rows(tmp_path) if row[1] == "stored"] == [
        "http://a.test/alone",
        "http://a.test/index.xml",
        "http://a.test/lonely?a=1&b=2",
        "http://a.test/maps/pages.xml.gz",
    ]


def test_a_feed(tmp_path):
    """Its entries are fetched; the feed is a row without text."""
    feed = "<rss><channel><title>News</title><item><title>One</title><link>/1</link></item></channel></rss>"
    answers = {"/feed": Reply(feed, type="application/rss+xml"), "/1": page()}
    with serve(lambda request: answers.get(request.path)) as web:
        crawl(web, "http://a.test/feed", cwd=tmp_path)
    assert rows(tmp_path, "url, outcome, title, length(text) > 0") == [
        ("http://a.test/1", "stored", "A page", 1),
        ("http://a.test/feed", "stored", "News", 0),
    ]


def test_a_torn_packed_sitemap(tmp_path):
    """What can be read is crawled, and the row says what was wrong."""
    urls = "".join(f"<url><loc>http://a.test/{n}</loc></url>" for n in range(2000))
    packed = gzip.compress(f"<urlset>{urls}</urlset>".encode())
    answers = {"/s.xml.gz": Reply(packed[:-2000], type="application/gzip")}
    with serve(lambda request: answers.get(request.path) or page()) as web:
        crawl(web, "http://a.test/s.xml.gz", "--max-pages", "20", "--ignore-robots", cwd=tmp_path)
    found = dict(rows(tmp_path, "url, meta"))
    assert len(found) == 20
    assert json.loads(found["http://a.test/s.xml.gz"])["problem"] == "the gzip stream ends early"
