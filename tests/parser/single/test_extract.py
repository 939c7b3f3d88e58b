"""One document to title, text, metadata, links and media; JSON lines in, JSON lines out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nephila.native import UrlError
from nephila.parser.single.extract import extract, extract_batch

PAGE = """<!doctype html><html lang=en><head><title>Spiders spin | The Site</title>
<meta property=og:title content="Spiders spin"><meta property=og:image content=/og.png>
<meta property=article:published_time content=2026-01-02><meta name=author content="A. Writer">
<meta name=description content="About spiders"><link rel=canonical href=/spiders></head>
<body><nav><a href=/home>Home</a> <a href=/about>About</a></nav>
<article><h1>Spiders spin</h1>
<p>A golden orb-weaver builds the largest webs of all spiders, and it repairs them every single night of the year.</p>
<p>Some of them are <a href="http://b.test/x" rel=nofollow>golden</a>, and most of them live in the warmer regions.</p>
<img src=/a.png><img data-src=lazy.jpg src="data:image/gif;base64,AAAA"><video src=/v.mp4 poster=/poster.jpg></video>
<video><source src=/w.webm></video><iframe src="https://www.youtube.com/embed/abc"></iframe></article>
<footer>Copyright somebody, all rights reserved, and so on.</footer></body></html>"""


def test_a_page() -> None:
    """Everything that the contract names, absolute where it is a URL."""
    found = extract(PAGE.encode(), "http://a.test/dir/page")
    text = found.pop("text")
    assert text.startswith("Spiders spin\nA golden orb-weaver")
    assert "Home" not in text
    assert "Copyright" not in text
    assert found.pop("media")[1:3] == [
        {"kind": "image", "url": "http://a.test/a.png"},
        {"kind": "image", "url": "http://a.test/dir/lazy.jpg"},
    ]
    assert found == {
        "url": "http://a.test/dir/page",
        "title": "Spiders spin",
        "lang": "en",
        "published": "2026-01-02",
        "modified": "",
        "author": "A. Writer",
        "authors": ["A. Writer"],
        "section": "",
        "image": "http://a.test/og.png",
        "description": "About spiders",
        "canonical": "http://a.test/spiders",
        "encoding": "utf-8",
        "links": [
            {"url": "http://a.test/home", "text": "Home", "nofollow": False, "kind": "a", "place": "nav"},
            {"url": "http://a.test/about", "text": "About", "nofollow": False, "kind": "a", "place": "nav"},
            {"url": "http://b.test/x", "text": "golden", "nofollow": True, "kind": "a", "place": "main"},
            {
                "url": "https://www.youtube.com/embed/abc",
                "text": "",
                "nofollow": False,
                "kind": "iframe",
                "place": "other",
            },
        ],
        "images": [
            "http://a.test/og.png",
            "http://a.test/a.png",
            "http://a.test/dir/lazy.jpg",
            "http://a.test/poster.jpg",
        ],
        "videos": ["http://a.test/v.mp4", "http://a.test/w.webm", "https://www.youtube.com/embed/abc"],
    }


def test_a_stated_title_goes_before_the_documents() -> None:
    """And a document that states none is called by its <title>, without the site."""
    stated = b"<title>Other</title><meta property=og:title content='Said so'><h1>x</h1>"
    assert extract(stated, "")["title"] == "Said so"
    assert extract(b"<title>Why all the spiders spin | Spider News</title>", "")["title"] == "Why all the spiders spin"


def test_without_a_url_relative_links_are_left_out() -> None:
    """Nothing is known to resolve them against; absolute ones stay."""
    found = extract(PAGE.encode(), "")
    assert (found["url"], found["canonical"], found["images"]) == ("", "", [])
    assert [link["url"] for link in found["links"]] == ["http://b.test/x", "https://www.youtube.com/embed/abc"]


def test_bad_url_is_an_error() -> None:
    """A URL that is given must be absolute http(s)."""
    with pytest.raises(UrlError):
        extract(b"<p>", "nonsense")


@pytest.mark.parametrize(
    ("data", "author", "published"),
    [
        ('{"@type":"NewsArticle","datePublished":"2026-03-04","author":{"name":"J. Doe"}}', "J. Doe", "2026-03-04"),
        ('{"@graph":[{"x":1},{"headline":"h","author":[{"name":"A"},"B"]}]}', "A, B", ""),
        ('{"author":{"name":"no article"}}', "", ""),
        ('{"headline":"h","author":"https://a.test/me"}', "", ""),
        ("{not json", "", ""),
        ("[" * 100_000, "", ""),
        ('{"headline":{"a":[]},"author":[[[["x"]]]],"datePublished":5}', "", ""),
    ],
)
def test_json_ld_gives_author_and_date(data: str, author: str, published: str) -> None:
    """Only where <meta> says nothing, and never an error."""
    found = extract(f'<script type="application/ld+json">{data}</script><p>x'.encode(), "http://a.test/")
    assert (found["author"], found["published"]) == (author, published)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"", "", ""),
        (b"%PDF-1.7", "", ""),
        ("Größe\n1 < 2".encode(), "text/plain", "Größe\n1 < 2"),
        (b"<section>fragment</section>", "", "fragment"),
    ],
)
def test_what_is_no_page(body: bytes, content_type: str, text: str) -> None:
    """All keys are there, empty where there is nothing."""
    found = extract(body, "http://a.test/", content_type)
    assert found["text"] == text
    assert found["links"] == []


def test_links_of_a_sitemap_have_their_dates() -> None:
    """A link without a date has no key for it."""
    body = (
        b"<urlset><url><loc>http://a.test/new</loc><lastmod>2024-05-02</lastmod></url>"
        b"<url><loc>http://a.test/undated</loc></url></urlset>"
    )
    assert extract(body, "http://a.test/sitemap.xml", "text/xml")["links"] == [
        {"url": "http://a.test/new", "text": "", "nofollow": False, "lastmod": 1_714_608_000.0},
        {"url": "http://a.test/undated", "text": "", "nofollow": False},
    ]


def test_batch_answers_every_line_in_order(tmp_path: Path) -> None:
    """One answer a line; what fails says why and stops nothing."""
    (tmp_path / "a.html").write_text(PAGE)
    (tmp_path / "b.txt").write_text("1 < 2\n<b>")
    requests: list[Any] = [
        {"file": str(tmp_path / "a.html"), "url": "http://a.test/"},
        {"file": str(tmp_path / "missing.html")},
        {"file": str(tmp_path / "b.txt")},
        {"file": str(tmp_path / "a.html"), "url": "mailto:x"},
        {"file": str(tmp_path / "a.html"), "url": 5},
        {"url": "http://a.test/"},
        [],
    ]
    answers = [json.loads(line) for line in extract_batch([*map(json.dumps, requests), "{", "\ud800"])]
    assert len(answers) == len(requests) + 2
    assert answers[0]["title"] == "Spiders spin"
    assert answers[2]["text"] == "1 < 2\n<b>"
    assert "cannot read" in answers[1]["error"]
    assert all(list(answer) == ["error"] for answer in answers[3:])


def test_markdown_on_demand() -> None:
    """Beside the plain text; never without being asked."""
    body = b"<h1>Head</h1><p>A sentence that is long enough to be a sentence.</p>"
    assert "markdown" not in extract(body, "http://a.test/")
    assert "A sentence that" in extract(body, "http://a.test/", markdown=True)["markdown"]


def test_tables_of_the_markdown() -> None:
    """The rows of the text are one line each; the Markdown has their cells."""
    prose = "The spider repairs its web every night, and nobody has counted how many insects end in it. " * 3
    rows = "".join(f"<tr><td>Valley {n}<td>{n} webs" for n in range(4))
    found = extract(f"<main><h1>Webs</h1><p>{prose}</p><table>{rows}</table>".encode(), "", markdown=True)
    assert "Valley 1 | 1 webs\nValley 2 | 2 webs" in found["text"]
    assert "| Valley 1 | 1 webs |\n" in found["markdown"]
