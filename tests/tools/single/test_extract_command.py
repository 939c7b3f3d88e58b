"""`nephila extract`: one document, without a crawl."""

from __future__ import annotations

import json

import pytest

PAGE = (
    b"<html lang=en><title>A \x1b[31mtitle</title><body><article><p>" + b"The main text of the page. " * 20 + b"</p>"
    b"<a href=/next>Next</a></article>"
)


@pytest.fixture
def page(tmp_path):
    """A document on disk."""
    path = tmp_path / "page.html"
    path.write_bytes(PAGE)
    return str(path)


def test_json_holds_the_fields_of_the_contract(nephila, page):
    """Title, main text, language, links resolved against --url."""
    ran = nephila("extract", page, "--url", "http://a.test/x/", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert {"title", "text", "lang", "published", "author", "links", "images", "videos"} <= set(found)
    assert found["lang"] == "en"
    assert found["links"][0]["url"] == "http://a.test/next"


def test_people_read_fields_then_text(nephila, page):
    """Nothing of the page reaches the terminal as a control sequence."""
    out = nephila("extract", page).out
    assert out.startswith("title: A title\nlang:  en\n")
    assert "The main text of the page." in out
    assert "\x1b" not in out


def test_standard_input_may_be_the_document(nephila):
    """`curl … | nephila extract -`, with the Content-Type the server sent."""
    ran = nephila("extract", "-", "--content-type", "text/plain; charset=latin1", "--json", stdin=b"caf\xe9")
    assert json.loads(ran.out)["text"] == "café"


def test_every_line_of_a_batch_is_answered(nephila, page, tmp_path):
    """In order, with an error where there is no document."""
    rows = [{"file": page, "url": "http://a.test/"}, {"file": str(tmp_path / "none")}, {"url": "http://a.test/"}]
    ran = nephila("extract", "--batch", stdin=b"\n".join(json.dumps(row).encode() for row in rows))
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [("error" in answer) for answer in answers] == [False, True, True]


def test_a_document_without_text_is_said_to_have_none(nephila, tmp_path):
    """An answer, not a failure."""
    path = tmp_path / "image.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    ran = nephila("extract", str(path))
    assert ran.code == 0
    assert "has no text" in ran.err


def test_mistakes_are_explained(nephila, page, tmp_path):
    """Usage is 2, a file that cannot be read is 1."""
    assert nephila("extract").code == 2
    assert nephila("extract", page, "--batch").code == 2
    assert nephila("extract", page, "--url", "nonsense").code == 2
    ran = nephila("extract", str(tmp_path / "none"))
    assert (ran.code, ran.err) == (1, f"nephila: cannot read {tmp_path / 'none'}: No such file or directory\n")


def test_a_batch_honours_the_options(nephila, tmp_path):
    """--markdown, --url and --content-type hold for every line that does not say otherwise."""
    path = tmp_path / "page"
    path.write_bytes("<h1>H</h1><p>caf\xe9 <a href=x>y</a>".encode("latin-1"))
    rows = [{"file": str(path)}, {"file": str(path), "url": "http://b.test/", "markdown": False}]
    stdin = b"\n".join(json.dumps(row).encode() for row in rows)
    options = ("--markdown", "--url", "http://a.test/", "--content-type", "text/html; charset=latin1")
    ran = nephila("extract", "--batch", *options, stdin=stdin)
    first, second = (json.loads(line) for line in ran.out.splitlines())
    assert "café [y](http://a.test/x)" in first["markdown"]
    assert second["links"][0]["url"] == "http://b.test/x"
    assert "markdown" not in second
