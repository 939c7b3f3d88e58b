"""Outputs, rules, links and another main text that are added to a crawl later: complete, or named as incomplete."""

from __future__ import annotations

import json
import sqlite3

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.e2e import web as little
from tests.e2e.web import Reply, page, run_json, serve

RULE = """apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: r}
spec: {match: {url: '/'}, fields: {heading: {css: h1}}}
"""
FORMATS = "jsonl,items,warc,raw,markdown,chunks"
ADDED = ("--format", FORMATS, "--rules", "rules", "--links", "--main-text", "all")
PATHS = ("/", "/a", "/b")


def crawl(web, *words, cwd):
    """In one process, which starts sooner."""
    return little.crawl(web, *words, "--workers", "0", cwd=cwd)


def site(request):
    """Three pages with an ETag; a conditional request is answered by 304."""
    if request.path not in PATHS:
        return None
    if request.headers.get("If-None-Match"):
        return Reply(status=304)
    links = PATHS[1:] if request.path == "/" else ()
    reply = page(*links, title=f"Page {request.path}")
    reply.headers["ETag"] = '"1"'
    return reply


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rule.yaml").write_text(RULE)


def content(directory):
    """What the outputs of a crawl hold, without times and numbers of fetches."""
    with sqlite3.connect(directory / "nephila.db") as db:
        texts = db.execute("SELECT url, text, rule FROM pages ORDER BY url").fetchall()
        links = db.execute("SELECT from_key, to_url FROM links ORDER BY 1, 2").fetchall()
        items = db.execute("SELECT url_key, data FROM items ORDER BY 1").fetchall()
    newest = {}
    for line in (directory / "pages.jsonl").read_text().splitlines():
        row = json.loads(line)
        newest[row["url"]] = (row["outcome"], row["text"], row.get("items"))
    (archive,) = directory.glob("*.warc.gz")
    with archive.open("rb") as stream:
        records = ArchiveIterator(stream, record_types=WarcRecordType.response)
        archived = {record.headers["WARC-Target-URI"] for record in records if record.http_headers.status_code == 200}
    markdown = sorted(path.name for path in (directory / "markdown").rglob("*.md"))
    chunks = {json.loads(line)["url"] for line in (directory / "chunks.jsonl").read_text().splitlines()}
    item_lines = len((directory / "items.r.jsonl").read_text().splitlines())
    return texts, links, items, newest, archived, markdown, chunks, item_lines, bool(list(directory.glob("raw-*.gz")))


def test_a_refresh_with_new_outputs_equals_a_crawl_with_them(tmp_path, rules):
    """The refresh asks without validators once; the next one is conditional again."""
    with serve(site) as web:
        other = tmp_path / "at-once"
        other.mkdir()
        (other / "rules").symlink_to(tmp_path / "rules")
        assert crawl(web, "http://a.test/", *ADDED, cwd=other).returncode == 0
        assert crawl(web, "http://a.test/", cwd=tmp_path).returncode == 0
        asked = len(web.requests)
        done = crawl(web, "--refresh", *ADDED, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not [one for one in web.requests[asked:] if "If-None-Match" in one.headers]
        assert content(tmp_path / "o") == content(other / "o")
        assert run_json(tmp_path)["incomplete"] == []
        asked = len(web.requests)
        assert crawl(web, "--refresh", cwd=tmp_path).returncode == 0
        conditional = [one.path for one in web.requests[asked:] if "If-None-Match" in one.headers]
        assert sorted(conditional) == sorted(PATHS)


def test_a_resume_names_what_new_outputs_lack_until_a_refresh(tmp_path, rules):
    """Also the refresh of a later day, without the options: they are in force since the resume."""
    with serve(site) as web:
        assert crawl(web, "http://a.test/", cwd=tmp_path).returncode == 0
        done = crawl(web, "--resume", *ADDED, cwd=tmp_path)
        (line,) = [line for line in done.stderr.splitlines() if "--refresh" in line]
        for word in ("3 pages", "jsonl", "warc", "markdown", "rules", "links", "main text"):
            assert word in line
        again = crawl(web, "--resume", cwd=tmp_path)
        assert line in again.stderr
        assert "warc" in run_json(tmp_path)["incomplete"]
        asked = len(web.requests)
        done = crawl(web, "--refresh", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert sorted(set(web.paths()[asked:]) & set(PATHS)) == sorted(PATHS)
        assert not [one for one in web.requests[asked:] if "If-None-Match" in one.headers]
        assert "--refresh" not in crawl(web, "--resume", cwd=tmp_path).stderr
    assert len(content(tmp_path / "o")[4] - {"http://a.test/robots.txt"}) == 3


def test_an_edited_rule_is_applied_to_unchanged_pages(tmp_path, rules):
    """Also where only a page's schedule says that it is not due."""
    with serve(site) as web:
        assert crawl(web, "http://a.test/", "--rules", "rules", cwd=tmp_path).returncode == 0
        (tmp_path / "rules" / "rule.yaml").write_text(RULE.replace("heading", "title"))
        assert crawl(web, "--refresh", cwd=tmp_path).returncode == 0
    with sqlite3.connect(tmp_path / "o" / "nephila.db") as db:
        items = [json.loads(data) for (data,) in db.execute("SELECT data FROM items")]
    assert sorted(item["title"] for item in items) == [f"Page {path}" for path in PATHS]


def test_the_end_of_the_first_run_names_what_needs_the_pages_again(tmp_path):
    """Once, and not where the bodies are kept."""
    with serve(site) as web:
        plain = crawl(web, "http://a.test/", cwd=tmp_path)
        again = crawl(web, "--refresh", cwd=tmp_path)
        kept = crawl(web, "http://a.test/", "--fresh", "--keep-raw", cwd=tmp_path)
    assert plain.stdout.splitlines()[-1].startswith("Bodies were not kept: a rule, format")
    assert plain.stderr == ""
    assert "not kept" not in again.stdout + again.stderr + kept.stdout + kept.stderr
