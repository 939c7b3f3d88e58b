"""A crawl with --format markdown: a file per page, and exports of it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.web import Reply, crawl, run, serve

WORDS = "A sentence that is long enough to be a part of the main text of a page. "
PAGE = (
    f"<html lang=en><title>A page</title><article><h1>Head<a class=headerlink href='#h'>¶</a></h1><p>{WORDS * 3}"
    f"<ul><li>{WORDS}<ul><li>{WORDS}</ul></ul><pre class='language-python'>if a:\n    b()</pre>"
    f"<p>{WORDS * 2}<a href='/two#part'>two</a> {WORDS}</article>"
)
BODY = (
    f"# Head\n\n{(WORDS * 3).strip()}\n\n- {WORDS.strip()}\n  - {WORDS.strip()}\n\n```python\nif a:\n    b()\n```\n\n"
    f"{(WORDS * 2).strip()}[two](http://a.test/two#part) {WORDS.strip()}"
)


@pytest.fixture
def web():
    """A page of every kind of markup, and a text."""

    def answer(request):
        if request.path == "/":
            return Reply(PAGE)
        return Reply("plain words", type="text/plain") if request.path == "/two" else None

    with serve(answer) as running:
        yield running


def body(text):
    """Without the front matter."""
    return text.split("---\n\n", 1)[1].strip().replace(". [two]", ".[two]")


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_per_page(web, tmp_path, workers):
    """Below the host's name; what is no HTML is its text."""
    done = crawl(web, "http://a.test/", "--format", "markdown", "--workers", workers, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pages in o/markdown, counts in" in done.stdout
    first, second = sorted((tmp_path / "o/markdown/a.test").iterdir())
    assert first.name.startswith("index-")
    assert body(first.read_text()) == BODY
    assert second.name.startswith("two-")
    assert body(second.read_text()) == "plain words"


def test_an_export_needs_no_bodies(web, tmp_path):
    """Markdown of the rows: as files, lines and one stream, with links in three styles."""
    assert crawl(web, "http://a.test/", cwd=tmp_path).returncode == 0
    done = run("export", "o", "--format", "markdown", "-o", "md", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "nephila: 2 rows written to md\n")
    (index,) = (tmp_path / "md/a.test").glob("index-*.md")
    assert body(index.read_text()) == BODY
    done = run("export", "o", "--format", "markdown", "-o", "pages.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert [line["url"] for line in lines] == ["http://a.test/", "http://a.test/two"]
    assert lines[0]["markdown"].replace(". [two]", ".[two]") == BODY
    assert "```python\n" in run("export", "o", "--format", "markdown", cwd=tmp_path).stdout
    assert "](" not in run("export", "o", "--format", "markdown", "--links", "none", cwd=tmp_path).stdout
    assert (
        "\n[1]: http://a.test/two#part\n"
        in run("export", "o", "--format", "markdown", "--links", "reference", cwd=tmp_path).stdout
    )


def test_extract_fetches_a_url(web, tmp_path):
    """As a crawl would: robots.txt and guard first."""
    mapped = ("--allow-private", "--host-map", web.host_map)
    done = run("extract", "http://a.test/", "--markdown", *mapped, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "```python\nif a:\n    b()\n```" in done.stdout
    assert web.paths()[:2] == ["/robots.txt", "/"]
    assert (
        json.loads(run("extract", "http://a.test/two", "--json", *mapped, cwd=tmp_path).stdout)["text"] == "plain words"
    )
    done = run("extract", "http://a.test/none", *mapped, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "nephila: http://a.test/none: failed(http_404), status 404\n")
    done = run("extract", "http://127.0.0.1:9/", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "nephila: http://127.0.0.1:9/: denied(address): a private or otherwise non-public address; "
        "--allow-private opens it\n",
    )


def test_robots_check_fetches(tmp_path):
    """The robots.txt of the URL's host; one that cannot be had forbids, one that is not there allows."""

    def answer(request):
        if request.host.startswith("a."):
            return Reply("User-agent: *\nDisallow: /no", type="text/plain")
        return Reply("later", 503) if request.host.startswith("b.") else None

    with serve(answer) as web:
        mapped = ("--allow-private", "--host-map", web.host_map)
        done = run("robots", "check", "http://a.test/no/x", *mapped, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "verdict:    denied\nbecause:    line 2: Disallow: /no\n" in done.stdout
        assert "http://a.test/robots.txt (rules, status 200)" in done.stdout
        assert run("robots", "check", "http://b.test/", "--quiet", *mapped, cwd=tmp_path).returncode == 1
        assert run("robots", "check", "c.test/x", "--quiet", *mapped, cwd=tmp_path).returncode == 0
