"""The sink markdown: a file per stored page, of its newest copy."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.storage.config import StorageConfig
from nephila.storage.rows import COLUMNS
from nephila.storage.writer import Writer
from nephila_stores.formats import markdown_file
from nephila_stores.formats.markdown import STAGED

from tests.storage.records import not_modified, put, record


@pytest.fixture
def writer(tmp_path):
    """A writer with the sink beside its database."""
    opened = Writer(StorageConfig(directory=tmp_path, formats=("markdown",), fsync=False, writer="test"))
    opened.open()
    yield opened
    opened.close()


def texts(directory):
    """Text of each file by the last part of its page's URL."""
    found = {}
    for path in (directory / "markdown").rglob("*.md"):
        front, _, text = path.read_text("utf-8").removeprefix("---\n").partition("---\n\n")
        (url,) = [line for line in front.splitlines() if line.startswith("url: ")]
        found[url.rstrip('"').rpartition("/")[2]] = text
    return found


def test_a_stored_page_has_a_file_and_its_next_copy_replaces_it(tmp_path, writer):
    put(writer, record(1), record(2))
    assert set(texts(tmp_path)) == {"1", "2"}
    assert "text 1 of fetch 1, żółć" in texts(tmp_path)["1"]
    put(writer, record(1, 2))
    assert "text 1 of fetch 2" in texts(tmp_path)["1"]
    assert "text 2 of fetch 1" in texts(tmp_path)["2"]


def test_a_304_keeps_the_file(tmp_path, writer):
    put(writer, record(1))
    put(writer, not_modified(1, 2))
    assert "text 1 of fetch 1" in texts(tmp_path)["1"]


def test_pages_that_were_not_stored_have_no_file(tmp_path, writer):
    put(writer, record(1, outcome=m.Outcome.FAILED, reason="http_404", status=404, text=b"", sha256=b""))
    assert texts(tmp_path) == {}


def test_no_half_file_is_left(tmp_path, writer):
    put(writer, record(1), record(2, text=b"x" * 1_000_000))
    assert [path for path in (tmp_path / "markdown").rglob("*") if path.is_file() and path.suffix != ".md"] == []


def test_a_flush_that_was_not_committed_leaves_no_file_without_a_row(tmp_path, monkeypatch):
    """After a kill between files and rows: the page may be a near-copy of another one when it is fetched again."""
    writer = Writer(StorageConfig(directory=tmp_path, formats=("markdown",), fsync=False, writer="test"))
    writer.open()
    put(writer, record(1))

    def kill(lengths):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer._ledger, "commit", kill)
    with pytest.raises(KeyboardInterrupt):
        put(writer, record(1, 2), record(2))
    assert set(texts(tmp_path)) == {"1", "2"}
    writer.close()
    again = Writer(StorageConfig(directory=tmp_path, formats=("markdown",), fsync=False, writer="test"))
    again.open()
    again.close()
    assert set(texts(tmp_path)) == {"1"}
    assert [path.name for path in (tmp_path / "markdown").iterdir() if path.is_file()] == []


def test_control_characters_are_left_out(tmp_path, writer):
    """Of text and front matter: escape sequences, line ends of other systems, marks that change the direction."""
    hostile = "\x1b[31mred\x07\x9b2J\r\u202eback\u2066\ttab"
    put(writer, record(1, text=f"{hostile}\nsecond".encode(), title=hostile))
    (path,) = (tmp_path / "markdown").rglob("*.md")
    text = path.read_text("utf-8")
    assert not [one for one in text if (ord(one) < 32 and one not in "\n\t") or one in "\x7f\x9b\u202e\u2066"]
    assert "[31mred2Jback\ttab\nsecond" in text


def test_a_journal_of_somebody_else_deletes_no_file_outside_the_folder(tmp_path, writer):
    put(writer, record(1))
    writer.close()
    victim = tmp_path / "victim.md"
    victim.write_text("theirs")
    journal = tmp_path / "markdown" / STAGED
    journal.write_bytes(msgspec.json.encode([("j", "00", "../victim.md"), ("j", "00", str(victim))]))
    again = Writer(StorageConfig(directory=tmp_path, formats=("markdown",), fsync=False, writer="test"))
    again.open()
    again.close()
    assert victim.read_text() == "theirs"
    assert not journal.exists()


def test_markdown_front_matter_is_yaml():
    """No character of a title is forbidden in YAML or read as a line end."""
    title = "a" + "".join(map(chr, (*range(0x80, 0xA1), 0x7F, 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF))) + "--- ż😀"
    row = tuple(title if name == "title" else "" for name in COLUMNS)
    line = markdown_file.document(row).decode().split("\n")[1]
    assert json.loads(line.removeprefix("title: ")) == title
    assert line.endswith('--- ż😀"')
    assert not re.search("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", line)
