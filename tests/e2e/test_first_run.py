"""What a newcomer tries first just works, or says plainly why not."""

from __future__ import annotations

import json

import pytest

from tests.e2e.web import Reply, crawl, page, rows, run, run_json, serve

SITE = {"/": page("/a", "/b"), "/a": page("/b", "/missing"), "/b": page("/")}


def site(request):
    """Three pages and a missing one; no robots.txt."""
    return SITE.get(request.path)


def test_a_bare_host_name(tmp_path):
    """`nephila crawl www.test` crawls http://www.test/: rows, counts and the summary agree."""
    with serve(site) as web:
        done = crawl(web, "www.test", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) == [
        ("http://www.test/", "stored", ""),
        ("http://www.test/a", "stored", ""),
        ("http://www.test/b", "stored", ""),
        ("http://www.test/missing", "failed", "http_404"),
    ]
    book = run_json(tmp_path)
    assert book["outcomes"] == {"stored": 3, "failed": 1}
    assert (book["state"], book["left"]) == ("finished", 0)
    assert "o/nephila.db" in done.stdout
    assert "nephila export --out o" in done.stdout
    assert web.paths()[0] == "/robots.txt"


@pytest.mark.smoke
def test_title_text_and_metadata_are_stored(tmp_path):
    """The row has what the page says."""
    html = '<html lang="fr"><head><title>Été &amp; co</title><meta name=description content=d></head><body><p>Voilà</p>'
    with serve(lambda r: Reply(html) if r.path == "/" else None) as web:
        crawl(web, "http://a.test/", cwd=tmp_path)
    found = rows(tmp_path, "title, text, lang, status, depth, content_type, bytes, json_extract(meta, '$.description')")
    assert found == [("Été & co", "Voilà", "fr", 200, 0, "text/html", len(html.encode()), "d")]


def test_a_site_that_moved_to_www(tmp_path):
    """http://example.test/ → http://www.example.test/: the site is crawled, and the summary says what moved."""

    def answer(request):
        if request.host == "example.test":
            return Reply(status=301, headers={"Location": f"http://www.example.test{request.path}"})
        return site(request)

    with serve(answer) as web:
        done = crawl(web, "http://example.test/", cwd=tmp_path)
    assert ("http://example.test/", "dropped", "redirect") in rows(tmp_path)
    assert run_json(tmp_path)["outcomes"]["stored"] == 3
    assert done.returncode == 0


def test_a_seed_that_moved_to_another_host(tmp_path):
    """The new host counts as a seed host, and the summary says so."""

    def answer(request):
        if request.host == "old.test":
            return Reply(status=302, headers={"Location": "http://new.test/"})
        return site(request)

    with serve(answer) as web:
        done = crawl(web, "http://old.test/", cwd=tmp_path)
    assert run_json(tmp_path)["outcomes"]["stored"] == 3
    assert "count as seed hosts too: new.test" in done.stdout


def test_a_path_to_a_pdf(tmp_path):
    """A PDF given as a seed is stored with its type and size."""
    pdf = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF"
    with serve(lambda r: Reply(pdf, type="application/pdf") if r.path == "/d.pdf" else None) as web:
        done = crawl(web, "http://a.test/d.pdf", cwd=tmp_path)
    assert done.returncode == 0
    assert rows(tmp_path, "outcome, content_type, bytes") == [("stored", "application/pdf", len(pdf))]


def test_a_site_whose_robots_forbids_everything(tmp_path):
    """Said plainly, exit 3, one row denied(robots), nothing fetched but robots.txt."""

    def answer(request):
        if request.path == "/robots.txt":
            return Reply("User-agent: *\nDisallow: /\n", type="text/plain")
        return site(request)

    with serve(answer) as web:
        done = crawl(web, "http://a.test/", cwd=tmp_path)
        assert web.paths() == ["/robots.txt"]
        assert done.returncode == 3
        assert "robots.txt forbids it" in done.stdout
        assert rows(tmp_path) == [("http://a.test/", "denied", "robots")]


def test_the_user_agent_is_who_robots_speaks_to(tmp_path):
    """--user-agent MyBot/1.0 is judged by the group of mybot."""

    def answer(request):
        if request.path == "/robots.txt":
            return Reply("User-agent: mybot\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n", type="text/plain")
        return site(request)

    with serve(answer) as web:
        crawl(web, "http://a.test/", "--user-agent", "MyBot/1.0 (+https://my.test/bot)", cwd=tmp_path)
    assert ("http://a.test/a", "denied", "robots") in rows(tmp_path)
    assert ("http://a.test/b", "stored", "") in rows(tmp_path)
    assert {r.headers["User-Agent"] for r in web.requests} == {"MyBot/1.0 (+https://my.test/bot)"}


def test_an_unreachable_host_fails_as_what_it_is(tmp_path):
    """Nobody listens there: failed(connect) after three tries, and the program says that nothing was stored."""
    done = run(
        "crawl", "http://127.0.0.1:9/", "--out", "o", "--allow-private", "--delay", "0", cwd=tmp_path,
        NEPHILA_SCHEDULER__RETRY_DELAY_S="0.1",
    )  # fmt: skip
    assert done.returncode == 3
    assert rows(tmp_path) == [("http://127.0.0.1:9/", "failed", "connect")]
    assert "No page was stored" in done.stdout


@pytest.mark.smoke
def test_private_addresses_are_refused_by_default(tmp_path):
    """Without --allow-private nothing is sent to loopback; the row and the summary say so."""
    with serve(site) as web:
        done = run("crawl", f"http://127.0.0.1:{web.port}/", "--out", "o", cwd=tmp_path)
        # A program whose server had this port before may still ask for a name of its own.
        assert web.paths(f"127.0.0.1:{web.port}") == []
    assert [r[1:] for r in rows(tmp_path)] == [("denied", "address")]
    assert "--allow-private" in done.stdout


def test_a_mapped_host_is_subject_to_the_guard(tmp_path):
    """--host-map alone opens nothing: the address it names is checked like any other."""
    with serve(site) as web:
        run("crawl", "http://a.test/", "--out", "o", "--host-map", web.host_map, cwd=tmp_path)
        assert web.requests == []
    assert rows(tmp_path) == [("http://a.test/", "denied", "address")]


@pytest.mark.smoke
def test_json_summary(tmp_path):
    """--json prints one object and nothing else on standard output."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--json", cwd=tmp_path)
    facts = json.loads(done.stdout)
    assert facts["outcomes"] == {"stored": 3, "failed": 1}
    assert facts["window"] > 0
    assert done.stderr == ""


def test_quiet_prints_nothing(tmp_path):
    """--quiet is quiet."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_hostile_title_cannot_write_to_the_terminal(tmp_path):
    """Escape sequences of a URL are not passed on by the summary."""
    with serve(lambda r: page("http://a.test/%1b]0;owned%07") if r.path == "/" else None) as web:
        done = crawl(web, "http://a.test/", cwd=tmp_path)
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    "formats", ["jsonl", "warc", "parquet", pytest.param("sqlite,jsonl,warc,parquet", marks=pytest.mark.smoke)]
)
def test_formats(tmp_path, formats):
    """Every format that was asked for lies in DIR, with a row for each stored page."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--format", formats, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {
        path.name.split(".", 1)[1] for path in (tmp_path / "o").iterdir() if path.is_file() and "." in path.name[1:]
    }
    for name, suffix in {"jsonl": "jsonl", "warc": "warc.gz", "parquet": "parquet"}.items():
        assert (suffix in names) == (name in formats)
    if "jsonl" in formats:
        lines = [json.loads(line) for line in (tmp_path / "o" / "pages.jsonl").read_text().splitlines()]
        assert sorted(line["url"] for line in lines if line["outcome"] == "stored") == [
            "http://a.test/",
            "http://a.test/a",
            "http://a.test/b",
        ]


def test_links_table(tmp_path):
    """--links keeps each link with its anchor text."""
    import sqlite3

    with serve(site) as web:
        crawl(web, "http://a.test/", "--links", cwd=tmp_path)
    db = sqlite3.connect(tmp_path / "o" / "nephila.db")
    found = set(db.execute("select to_url, anchor from links").fetchall())
    db.close()
    assert ("http://a.test/a", "to /a") in found
    assert len(found) == 4
