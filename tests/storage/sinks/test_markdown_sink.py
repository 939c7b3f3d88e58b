"""The sink markdown: a file per stored page, of its newest copy."""

from __future__ import annotations

import pytest
from nephila.kernel import messages as m
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer

from tests.contracts.test_storage_outputs import not_modified, put, record


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
