"""Sitemaps and feeds of crawler-commons, with what its own tests ask of them; and the billion laughs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nephila.parser.config import ParserConfig
from nephila.parser.documents.xml_text import read_xml
from nephila.parser.links.link_list import LinkList, run_to_end
from nephila.parser.lists.detection import form_of, read
from nephila.parser.single.extract import extract

pytestmark = pytest.mark.conformance

RESOURCES = Path("crawler-commons") / "src" / "test" / "resources"
NOW = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


def listing(data: Path, name: str, url: str = "") -> LinkList | None:
    """What a file lists, None when it is no list."""
    body = (data / RESOURCES / name).read_bytes()
    address = url or f"http://www.example.com/{Path(name).name}"
    form = form_of("", address, body)
    return None if form is None else run_to_end(read(form, body, address, "", ParserConfig(), NOW))


VIDEO = "http://www.example.com/videos/some_video_landing_page.html"
NEWS = "http://www.hebdenbridgetimes.co.uk/news/local/video-tour-de-yorkshire-in-calderdale-1-7242580"
TV = "https://example.org/my-tv-show/23/13/"


@pytest.mark.parametrize(
    ("name", "form", "count", "first", "date", "title"),
    [
        ("sitemaps/sitemap.ns.xml", "sitemap", 2, "http://www.example.com/1", 0, ""),
        ("sitemaps/sitemap.badns.xml", "sitemap", 2, "http://www.example.com/1", 0, ""),
        (
            "sitemaps/sitemap.index.xml",
            "sitemap index",
            15,
            "https://example.com/sitemap.jss?portalCode=10260&lang=en",
            0,
            "",
        ),
        ("sitemaps/sitemap.txt", "text sitemap", 2, "http://www.domain.com/page1.html", 0, ""),
        ("sitemaps/sitemap-with-bom.txt", "text sitemap", 2, "http://www.domain.com/page1.html", 0, ""),
        ("sitemaps/sitemap.txt.gz", "text sitemap", 5, "http://www.example.com/", 0, ""),
        ("sitemaps/xmlSitemap.gz", "sitemap", 5, "http://www.example.com/", 1104537600, ""),
        (
            "sitemaps/atom.xml",
            "atom",
            1,
            "http://example.org/2003/12/13/atom03",
            1071340202,
            "Atom-Powered Robots Run Amok",
        ),
        ("rss/feed.rss", "rss", 3, "https://www.example.com/blog/post/1", 1252254000, "Example entry"),
        ("rss/xmlRss_pubDate.xml", "rss", 7, "http://www.example.com/article_1", 1483619691, "News number 1"),
        ("sitemaps/extension/sitemap-links.xml", "sitemap", 6, "http://www.example.com/english/", 0, ""),
        ("sitemaps/extension/sitemap-mobile.xml", "sitemap", 3, "http://www.example.com/mobile-friendly-1/", 0, ""),
        ("sitemaps/extension/pagemaps-sitemap.xml", "sitemap", 2, "http://www.example.com/foo", 0, ""),
        (
            "sitemaps/extension/sitemap-news.xml",
            "sitemap",
            2,
            "http://www.example.org/business/article55.html",
            1229990400,
            "Companies A, B in Merger Talks",
        ),
        ("sitemaps/extension/sitemap-videos.xml", "sitemap", 3, VIDEO, 1194261630, "Grilling steaks for summer"),
        (
            "sitemaps/extension/sitemap-videos-tvshow.xml",
            "sitemap",
            1,
            TV,
            1749200400,
            "My TV Show! - Thu, Jun 05, 2025",
        ),
        (
            "sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml",
            "sitemap",
            74,
            NEWS,
            1430675510,
            "Tour De Yorkshire passes through Nutclough, Hebden Bridge",
        ),
    ],
)
def test_lists(conformance_data: Path, name: str, form: str, count: int, first: str, date: int, title: str) -> None:
    """Kind of list, number of links, and the first one's address, date and title."""
    found = listing(conformance_data, name)
    assert found is not None
    entry = found.entries[0]
    problem = "1 entry names no address" if name == "rss/feed.rss" else ""
    assert (found.form, len(found.entries), found.problem) == (form, count, problem)
    assert (entry.url, int(entry.lastmod), entry.title) == (first, date, title)


@pytest.mark.parametrize(
    ("name", "images", "videos"),
    [("images", 2, 0), ("videos", 3, 4), ("videos-tvshow", 1, 2), ("news", 0, 0), ("mobile", 0, 0)],
)
def test_pictures_and_videos(conformance_data: Path, name: str, images: int, videos: int) -> None:
    """Those of the extensions, in the answer for one document as well."""
    body = (conformance_data / RESOURCES / "sitemaps" / "extension" / f"sitemap-{name}.xml").read_bytes()
    found = extract(body, "http://www.example.com/s.xml")
    assert (len(found["images"]), len(found["videos"])) == (images, videos)
    assert all(url.startswith("http") for url in found["images"] + found["videos"])


def test_text_that_is_no_sitemap(conformance_data: Path) -> None:
    """A text file is one by its name alone; what in it is no address is left out."""
    body = (conformance_data / RESOURCES / "sitemaps" / "do-not-visit.txt").read_bytes()
    assert form_of("text/plain", "http://www.example.com/do-not-visit.txt", body) is None


def test_billion_laughs(conformance_data: Path) -> None:
    """Nothing is expanded, whatever it is taken for, and it takes no time."""
    (path,) = (conformance_data / "xml-attacks").rglob("billion_laughs.xml")
    body = path.read_bytes()
    before = time.process_time()
    assert b"lol" in body
    assert len(read_xml(body.decode(), 10).text) < len(body)
    for root in (b"<rss><channel>", b"<urlset><url><loc>", b""):
        found = extract(root + body, "http://a.test/", "text/xml")
        assert len(found["text"]) < 2 * len(body)
    assert time.process_time() - before < 2.0
