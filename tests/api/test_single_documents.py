"""`nephila.fetch` and `nephila.extract`: one page, and a document that one has."""

from __future__ import annotations

import nephila
import pytest

from tests.e2e.web import Reply, serve


def test_a_page_is_fetched(options):
    """With robots.txt asked first."""
    page = nephila.fetch("http://a.test/3", allow_private=True, host_map=options["host_map"])
    assert (page.status, page.title, page.css("a::attr(href)").get()) == (200, "A page", "/")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://a.test/private/1", r"denied\(robots\)"),
        ("http://a.test/none", r"failed\(http_404\), status 404"),
        ("http://127.0.0.1:9/", r"failed\(connect\)"),
    ],
)
def test_why_there_is_no_page(options, url, reason):
    """In one line."""
    with pytest.raises(nephila.UserError, match=reason):
        nephila.fetch(url, allow_private=True, host_map=options["host_map"])


def test_private_addresses_are_refused():
    """The egress guard is the crawl's."""
    with serve(lambda request: Reply("<title>Private</title>")) as web:
        with pytest.raises(nephila.UserError, match=r"denied\(address\)"):
            nephila.fetch(f"http://127.0.0.1:{web.port}/")
        assert web.paths(f"127.0.0.1:{web.port}") == []


def test_a_redirect_to_another_host_is_followed():
    """The page is that of the target."""

    def answer(request):
        if request.path == "/robots.txt":
            return Reply("")
        if request.host.startswith("old"):
            return Reply(status=302, headers={"Location": "http://new.test/there"})
        return Reply("<title>There</title>")

    with serve(answer) as web:
        page = nephila.fetch("http://old.test/", allow_private=True, host_map=[web.host_map])
    assert (page.url, page.title) == ("http://new.test/there", "There")


@pytest.mark.whole
def test_rules_on_one_page(options):
    """As in a crawl."""
    rule = {"match": {"url": "."}, "fields": {"name": {"css": "h1"}}}
    page = nephila.fetch("http://a.test/3", rules=rule, allow_private=True, host_map=options["host_map"])
    assert page.items == [{"name": "A page"}]


@pytest.mark.whole
def test_rules_with_python_functions_on_one_page(options, tmp_path):
    """The program names the directory, as a text or a path."""
    (tmp_path / "names.py").write_text("def lower(value):\n    return value.lower()\n")
    rule = {"match": {"url": "."}, "fields": {"name": {"css": "h1", "py": "names:lower"}}}
    reached = {"allow_private": True, "host_map": options["host_map"]}
    page = nephila.fetch("http://a.test/3", rules=rule, rule_functions=tmp_path, **reached)
    assert page.items == [{"name": "a page"}]
    with pytest.raises(nephila.UsageError, match="none does not exist"):
        nephila.fetch("http://a.test/3", rules=rule, rule_functions=str(tmp_path / "none"), **reached)


def test_a_document_is_extracted():
    """Text and bytes; relative links need the URL."""
    html = "<html lang=de><title>Über</title><article><h1>Über</h1><p>Ein Satz mit <a href=x>Link</a>.</p></article>"
    page = nephila.extract(html, "http://a.test/y/")
    assert (page.title, page.lang, page.url) == ("Über", "de", "http://a.test/y/")
    assert page.links == [nephila.Link("http://a.test/y/x", "Link", False, "a", "main")]
    assert page.html == html
    assert nephila.extract(html.encode("latin-1"), content_type="text/html; charset=latin-1").title == "Über"
    assert nephila.extract(html).links == []


def test_a_document_of_no_crawl_follows_nothing():
    """And says so."""
    with pytest.raises(nephila.UsageError, match="not of a crawl"):
        nephila.extract("<p>x", "http://a.test/").follow("/y")


def test_json_is_a_document():
    """With its value."""
    page = nephila.extract(b'{"a": [1]}', "http://a.test/x.json", content_type="application/json")
    assert page.json() == {"a": [1]}
