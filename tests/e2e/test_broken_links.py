"""Broken links of a crawl as a table, with links that lead out of it on request."""

from __future__ import annotations

import csv
import io

from tests.e2e.web import Reply, crawl, page, run, serve


def site(request):
    """A host with broken links, and two others that the crawl does not follow."""
    if request.path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /secret\n", type="text/plain")
    if request.host.startswith("out.test"):
        pages = {"/ok": page(), "/moved": Reply("", 301, headers={"Location": "/ok"}), "/secret": page()}
        return pages.get(request.path, Reply("no", 410))
    links = ("/ok", "/gone", "/moved", "/error", "//out.test/ok", "//out.test/gone", "//out.test/moved")
    return {
        "/": page(*links, "//out.test/secret", "//dead.example/", "/gone"),
        "/ok": page("/gone"),
        "/moved": Reply("", 302, headers={"Location": "/gone"}),
    }.get(request.path, Reply("no", 500 if request.path == "/error" else 404))


def test_broken_links(tmp_path):
    """A link to a redirect that ends at a 404 is broken. External links are requested once, also by two exports."""

    def export(*words):
        done = run("export", "o", "--broken-links", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return [tuple(row.values()) for row in csv.DictReader(io.StringIO(done.stdout))]

    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--links", "--workers", "0", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        inside = [
            ("http://a.test/", "http://a.test/error", "500", "http_500"),
            ("http://a.test/", "http://a.test/gone", "404", "http_404"),
            ("http://a.test/", "http://a.test/moved", "404", "http_404"),
            ("http://a.test/ok", "http://a.test/gone", "404", "http_404"),
        ]
        rows = export()
        assert [row[:4] for row in rows] == inside
        assert {row[5] for row in rows} == {"False"}
        before = len(web.requests)
        rows = export("--check-external", "--format", "csv")
        outside = [
            ("http://a.test/", "http://dead.example/", "0", "dns"),
            ("http://a.test/", "http://out.test/gone", "410", "http_410"),
        ]
        assert [row[:4] for row in rows if row[5] == "False"] == inside
        assert [row[:4] for row in rows if row[5] == "True"] == outside, "what robots.txt forbids may work"
        asked = sorted(one.path for one in web.requests[before:])
        assert asked == ["/gone", "/moved", "/ok", "/ok", "/robots.txt"]
        assert export("--check-external") == rows
        assert len(web.requests) == before + len(asked), "nothing is requested twice"


LINKS = ("/moved#here", "/moved#gone", "/b#c%20d", "/b#named", "/b#%C3%B1:~:text=x", "#top", "#me", "#/route", "/b")
PAGES = {
    "/": Reply(
        "<title>a</title><p id=me>"
        + "".join(f"<a href='{url}'>x</a>" for url in LINKS)
        + "<img src=/ok.png srcset='/no.png 2x, /out (x,y)'><link rel=stylesheet href=/no.css>"
    ),
    "/b": Reply(
        "<title>b</title><p id='c d'>x<a name=ñ href='#lost'>y</a><script src=/no.js></script><img src=/no.png>"
    ),
    "/moved": Reply("", 301, headers={"Location": "/new"}),
    "/new": Reply("<title>new</title><p id=here>x"),
    "/ok.png": Reply("x", type="image/png"),
}


def test_requisites_and_places_are_checked_where_the_bodies_are_kept(tmp_path):
    """Each is requested once, by whichever page; a place is looked for in the page at the end of the redirects."""
    with serve(lambda request: PAGES.get(request.path, Reply("no", 404))) as web:
        assert crawl(web, "http://a.test/", "--links", "--keep-raw", "--workers", "0", cwd=tmp_path).returncode == 0
        before = len(web.requests)
        done = run("export", "o", "--broken-links", "--check-requisites", "--check-fragments", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows = [tuple(row.values()) for row in csv.DictReader(io.StringIO(done.stdout))]
        requested = sorted(one.path for one in web.requests[before:] if one.path != "/robots.txt")
    assert requested == ["/no.css", "/no.js", "/no.png", "/ok.png"]
    a, b = "http://a.test/", "http://a.test/b"
    assert [(row[0], row[1].removeprefix(a), *row[2:4], row[6]) for row in rows] == [
        (a, "no.css", "404", "http_404", "requisite"),
        (a, "no.png", "404", "http_404", "requisite"),
        (b, "no.js", "404", "http_404", "requisite"),
        (b, "no.png", "404", "http_404", "requisite"),
        (a, "moved#gone", "200", "fragment", "fragment"),
        (a, "b#named", "200", "fragment", "fragment"),
        (b, "b#lost", "200", "fragment", "fragment"),
    ]
    assert "checking what 3 kept pages refer to" in done.stderr


def test_checks_of_pages_need_their_bodies(tmp_path):
    with serve(site) as web:
        crawl(web, "http://a.test/", "--links", "--workers", "0", cwd=tmp_path)
    done = run("export", "o", "--broken-links", "--check-fragments", cwd=tmp_path)
    assert done.returncode == 2
    assert "--keep-raw" in done.stderr


def test_without_links_the_remedy_is_named(tmp_path):
    """An empty table would look like a site without a broken link."""
    with serve(site) as web:
        crawl(web, "http://a.test/", "--workers", "0", "--max-pages", "1", cwd=tmp_path)
    done = run("export", "o", "--broken-links", cwd=tmp_path)
    assert done.returncode == 1
    assert "has no links; crawl with --links" in done.stderr
    done = run("export", "o", "--check-external", cwd=tmp_path)
    assert done.returncode == 2
    assert run("export", "o", cwd=tmp_path).returncode == 2
