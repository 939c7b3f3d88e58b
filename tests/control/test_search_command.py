"""`nephila search` over the directory of a crawl that has ended, and the same from Python."""

from __future__ import annotations

import json

import nephila
import pytest
from nephila.cli.main import main
from nephila_control.screen_types import SearchResults

from tests.cli.crawled import store
from tests.storage.storage_rig import record


@pytest.fixture
def out(tmp_path):
    """A directory with two pages, one of them by a stranger."""
    evil = "\x1b[31mred\x1b[0m fox \u202eevil"
    store(tmp_path, [record(1, title="Foxes", text=b"Many a fox."), record(2, title=evil, text=evil.encode())])
    return tmp_path


def test_pages_are_printed_the_best_first(out, capsys):
    """Title, URL, passage; nothing of a page reaches the terminal as a command."""
    assert main(["search", "fox", "--out", str(out)]) == 0
    found = capsys.readouterr()
    assert [line for line in found.out.splitlines() if "http" in line] == [
        "  http://h2.test/p/2.html  2027-01-15", "  http://h1.test/p/1.html  2027-01-15"]  # fmt: skip
    assert "\x1b[31m" not in found.out
    assert "\u202e" not in found.out
    assert "Many a fox." in found.out
    assert "2 pages" in found.err


def test_json_is_the_answer_of_the_api(out, capsys):
    """Word for word."""
    assert main(["search", "fox", "-evil", "--json", "--out", str(out)]) == 2  # an option of that name is none
    assert main(["search", "--json", "--out", str(out), "--", "fox", "-evil"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {*answer} == {*SearchResults.__struct_fields__}
    assert [hit["url"] for hit in answer["hits"]] == ["http://h1.test/p/1.html"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["fox", '"open'], "not closed"), ([], "no word to look for"), (["lang:de"], "is no field")],
)
def test_a_search_that_cannot_be_read_is_one_line(out, capsys, words, problem):
    """And exit code 2."""
    assert main(["search", *words, "--out", str(out)]) == 2
    assert problem in capsys.readouterr().err
    assert not (out / "search.db").exists()


def test_the_index_is_made_without_a_search(out, capsys):
    """With --index, also again."""
    for _ in range(2):
        assert main(["search", "--index", "--out", str(out)]) == 0
        assert (out / "search.db").exists()
    assert main(["search", "--index", "--server", "http://127.0.0.1:9"]) == 2
    assert "--index makes the index of a directory" in capsys.readouterr().err


def test_python_finds_the_same(out):
    """Fragments of plain text."""
    found = nephila.search("fox -evil", out)
    assert [hit.url for hit in found.hits] == ["http://h1.test/p/1.html"]
    assert [one for one in found.hits[0].passage if one.hit] == [nephila.Fragment("fox", True)]
    with pytest.raises(nephila.UsageError):
        nephila.search('"', out)
