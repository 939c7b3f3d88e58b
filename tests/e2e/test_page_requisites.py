"""The archive of a crawl with `--page-requisites` has what a browser needs to show the stored pages."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pytest

from tests.e2e.web import Reply, crawl, page, serve

PAGE = """<html><head><title>Shop</title>
<link rel=stylesheet href=/site.css><link rel=icon href=/icon.png><link rel=alternate href=/feed.rss>
<style>body { background: url(/back.png) }</style><script src=//cdn.test/app.js></script></head>
<body><p>The words of the page itself are here.</p><a href=/more>More</a><a href=/large.png>Large</a>
<img src=/small.png srcset="/small.png 1x, /large.png 2x"><img src=/private/secret.png><img src=/missing.png>
<img src=/moved.png><video poster=/poster.png src=/film.mp4></video><img src="data:image/png;base64,AAAA">
</body></html>"""
STYLE = '@import "/deep/import.css"; @font-face { src: url("/font.woff2") } /* url(/comment.png) */'
IMPORTED = "@import url(/deep/second.css); p { background: url('back.png') }"
PICTURE = b"\x89PNG picture"


def site(request):
    """A page with requisites on two hosts, some of them forbidden, missing or moved to a third host."""
    found = {
        "/robots.txt": Reply("User-agent: *\nDisallow: /private/\n", type="text/plain"),
        "/": Reply(PAGE),
        "/more": Reply('<p>More words.</p><link rel=stylesheet href="/site.css">'),
        "/site.css": Reply(STYLE, type="text/css"),
        "/deep/import.css": Reply(IMPORTED, type="text/css"),
        "/deep/second.css": Reply("p { background: url(/never.png) }", type="text/css"),
        "/font.woff2": Reply(b"wOF2", type="font/woff2"),
        "/app.js": Reply("run()", type="text/javascript"),
        "/moved.png": Reply("", 302, headers={"Location": "http://images.test/moved.png"}),
        "/missing.png": Reply("no", 404),
    }.get(request.path)
    if request.host == "images.test" and request.path == "/moved.png":
        return Reply(PICTURE, type="image/png")
    if found is None and request.path.endswith(".png"):
        return Reply(PICTURE, type="image/png")
    return found


NEEDED = {
    "http://a.test" + path
    for path in ("/site.css", "/deep/import.css", "/deep/second.css", "/deep/back.png", "/font.woff2", "/icon.png")
} | {
    "http://a.test/back.png",
    "http://a.test/small.png",
    "http://a.test/large.png",
    "http://a.test/poster.png",
    "http://cdn.test/app.js",
    "http://images.test/moved.png",
}


def rows(directory):
    """URL → (outcome, reason)."""
    with sqlite3.connect(directory / "nephila.db") as table:
        found = table.execute("SELECT url, outcome, reason FROM pages").fetchall()
    return {url: (outcome, reason) for url, outcome, reason in found}


def archived(directory):
    """URL → status, of the index of the archive."""
    lines = [line for path in directory.glob("*.cdxj") for line in path.read_text().splitlines()]
    fields = [json.loads(line.split(" ", 2)[2]) for line in lines]
    assert len({one["url"] for one in fields}) == len(fields), "each answer once"
    return {one["url"]: one["status"] for one in fields}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_requisites_are_in_the_archive_and_end_with_a_reason_of_their_own(tmp_path, workers):
    """Also those on other hosts, and beyond the page budget; robots.txt and missing ones are as for pages."""
    with serve(site) as web:
        options = ("--format", "warc,raw", "--page-requisites", "--max-pages", "2", "--max-depth", "1")
        done = crawl(web, "http://a.test/", *options, "--workers", workers, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found, answers = rows(tmp_path / "o"), archived(tmp_path / "o")
    assert {url for url, end in found.items() if end == ("dropped", "requisite")} == NEEDED
    counts = json.loads((tmp_path / "o/run.json").read_bytes())
    assert (counts["outcomes"]["requisite"], counts["reasons"]["requisite"]) == (len(NEEDED), len(NEEDED))
    assert "dropped(requisite)" not in counts["reasons"]
    assert {url for url, status in answers.items() if status == "200"} >= NEEDED
    assert found["http://a.test/private/secret.png"] == ("denied", "robots")
    assert found["http://a.test/missing.png"] == ("failed", "http_404")
    assert found["http://a.test/moved.png"] == ("dropped", "redirect")
    assert {url for url, end in found.items() if end[0] == "stored"} == {"http://a.test/", "http://a.test/more"}
    asked = [path for path in web.paths() if path != "/robots.txt"]
    assert len(asked) == len(set(asked)) + 1, "each once; /moved.png on two hosts"
    assert not {"/private/secret.png", "/never.png", "/comment.png", "/film.mp4"} & set(asked)
    raw = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "o").glob("raw-*.gz"))
    assert PICTURE not in raw, "format raw has pages alone"


def test_without_the_option_no_requisite_is_requested(tmp_path):
    """The page is stored as before."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--format", "warc", "--max-depth", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(web.paths()) == {"/robots.txt", "/"}


def test_requisites_without_an_archive_are_refused(tmp_path):
    """In one line that names the remedy."""
    with serve(lambda request: page()) as web:
        done = crawl(web, "http://a.test/", "--page-requisites", cwd=tmp_path)
    assert done.returncode == 2
    assert "--format warc" in done.stderr
    assert web.paths() == []


def test_a_requisite_that_failed_is_fetched_again_as_one(tmp_path):
    """`--retry-failed` and `--refresh` make no page of it: its row and the archive are as if it had come at once."""
    there = False

    def answer(request):
        if request.path == "/":
            return Reply('<p>Words of the page.</p><link rel=stylesheet href="http://cdn.test/site.css">')
        if request.path == "/site.css" and there:
            return Reply("p { background: url(/back.png) }", type="text/css")
        return Reply(PICTURE, type="image/png") if request.path == "/back.png" else None

    options = ("--format", "warc", "--page-requisites")
    with serve(answer) as web:
        assert crawl(web, "http://a.test/", *options, cwd=tmp_path).returncode == 0
        assert rows(tmp_path / "o")["http://cdn.test/site.css"] == ("failed", "http_404")
        there = True
        done = crawl(web, "--retry-failed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "o") == {
        "http://a.test/": ("stored", ""),
        "http://cdn.test/site.css": ("dropped", "requisite"),
        "http://cdn.test/back.png": ("dropped", "requisite"),
    }


RENDERED = """<html><head><link rel=stylesheet href=/site.css><script src=/app.js></script></head>
<body><p>The words of the page itself are here.</p><p id=more></p><img src=/small.png></body></html>"""
SCRIPT = "fetch('/data.json').then(one => one.text()).then(text => document.getElementById('more').textContent = text)"


@pytest.mark.usefixtures("chromium")
def test_the_archive_of_a_rendered_page_has_what_its_browser_loaded(tmp_path):
    """Also what scripts requested, and pictures, which a browser is refused otherwise. Each is requested once."""

    def answer(request):
        return {
            "/robots.txt": Reply("", type="text/plain"),
            "/": Reply(RENDERED),
            "/site.css": Reply("p { color: red }", type="text/css"),
            "/app.js": Reply(SCRIPT, type="text/javascript"),
            "/data.json": Reply('"from the script"', type="application/json"),
            "/small.png": Reply(PICTURE, type="image/png"),
        }.get(request.path)

    options = ("--format", "warc", "--page-requisites", "--render", "always", "--max-depth", "0")
    with serve(answer) as web:
        done = crawl(web, "http://a.test/", *options, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    needed = {"http://a.test" + path for path in ("/", "/site.css", "/app.js", "/data.json", "/small.png")}
    statuses = archived(tmp_path / "o")
    assert needed <= {url for url, status in statuses.items() if status == "200"}
    assert set(rows(tmp_path / "o")) == {"http://a.test/"}
    asked = [path for path in web.paths() if path != "/favicon.ico"]
    assert sorted(asked) == sorted(["/robots.txt", "/", "/site.css", "/app.js", "/data.json", "/small.png"])
