"""Exports of finished and running crawls."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from nephila.kernel.messages import Outcome
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.read.export import Layout, export
from nephila.storage.rows import COLUMNS

from tests.storage.storage_rig import record, running


async def make(directory, **config):
    """450 stored rows, more than one chunk, and one denied row."""
    async with running(directory, **config) as rig:
        rig.send(*(record(n, text=f"żółć {n}".encode()) for n in range(450)))
        rig.send(record(1000, outcome=Outcome.DENIED, reason="robots", text=b"", meta="", fetched_at=0.0))
        await rig.storage.flush()


@pytest.fixture
async def crawl(tmp_path):
    """A crawl in a directory."""
    await make(tmp_path / "crawl")
    return tmp_path / "crawl"


@pytest.fixture
async def source(database_url, tmp_path):
    """The same crawl in a directory and on a server."""
    await make(tmp_path / "crawl", store=database_url)
    return database_url or tmp_path / "crawl"


def test_json_lines(source, tmp_path):
    """One object per stored row, in the form of pages.jsonl."""
    assert export(source, "jsonl", tmp_path / "o.jsonl") == 450
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert len({row["url"] for row in found}) == 450
    assert tuple(found[0]) == (*COLUMNS, "description")
    assert {row["text"] for row in found} == {f"żółć {n}" for n in range(450)}
    assert found[3]["meta"] == {"description": "d"}


async def test_facts_of_a_page(tmp_path):
    """Lines of JSON have dates, authors, section, image and comments; of these `meta` keeps all but the comments."""
    meta = {"article:published_time": "2026-11-22", "author": "Ann Lee and Bob Ray", "article:section": "Food"}
    meta |= {"article:modified_time": "2026-11-24", "og:image": "/a.jpg", "comments": "Very good.\nThanks"}
    async with running(tmp_path / "crawl") as rig:
        rig.send(record(1, meta=json.dumps(meta)))
        await rig.storage.flush()
    export(tmp_path / "crawl", "jsonl", tmp_path / "o.jsonl")
    found = json.loads((tmp_path / "o.jsonl").read_text())
    assert (found["published"], found["modified"]) == ("2026-11-22", "2026-11-24")
    assert (found["authors"], found["section"]) == (["Ann Lee", "Bob Ray"], "Food")
    assert re.fullmatch(r"https?://[^/]+/a\.jpg", found["image"])
    assert found["comments"] == "Very good.\nThanks"
    assert found["meta"]["author"]
    assert "comments" not in found["meta"]
    columns = ("published", "authors", "comments", "meta.author", "meta.x")
    export(tmp_path / "crawl", "csv", tmp_path / "o.csv", layout=Layout(columns))
    with (tmp_path / "o.csv").open(newline="") as file:
        names, values = csv.reader(file)
    assert tuple(names) == columns
    assert values == ["2026-11-22", '["Ann Lee", "Bob Ray"]', "Very good.\nThanks", "Ann Lee and Bob Ray", ""]


def test_all_outcomes(source, tmp_path):
    """Also the rows without a page."""
    assert export(source, "jsonl", tmp_path / "o.jsonl", all_outcomes=True) == 451
    assert export(source, "jsonl", tmp_path / "o.jsonl", all_outcomes=True, job="nobody") == 0


def test_csv(source, tmp_path):
    """RFC 4180: a header, CRLF, UTF-8."""
    assert export(source, "csv", tmp_path / "o.csv") == 450
    data = (tmp_path / "o.csv").read_bytes()
    assert data.startswith(b"url,url_key,")
    assert data.endswith(b"\r\n")
    found = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert len(found) == 450
    assert {row["text"] for row in found} == {f"żółć {n}" for n in range(450)}


async def test_csv_cells_are_no_formulas(tmp_path):
    """Text from the web is not computed in a spreadsheet, except with raw_csv."""
    async with running(tmp_path) as rig:
        rig.send(record(1, title="=HYPERLINK(1)", text=b'a "quoted", line\r\nand another'))
        await rig.storage.flush()
    export(tmp_path, "csv", tmp_path / "a.csv")
    export(tmp_path, "csv", tmp_path / "b.csv", layout=Layout(raw_csv=True))
    titles = []
    for name in ("a.csv", "b.csv"):
        with (tmp_path / name).open(newline="", encoding="utf-8") as stream:
            (row,) = csv.DictReader(stream)
            titles.append(row["title"])
            assert row["text"] == 'a "quoted", line\r\nand another'
    assert titles == ["'=HYPERLINK(1)", "=HYPERLINK(1)"]


@pytest.mark.whole
def test_parquet(crawl, tmp_path):
    """To a file; by default beside the database, since Parquet is of no use in a terminal."""
    assert export(crawl, "parquet", tmp_path / "o.parquet") == 450
    table = pyarrow.parquet.read_table(tmp_path / "o.parquet")
    assert table.column_names == list(COLUMNS)
    assert str(table.schema.field("fetched_at").type) == "timestamp[ms, tz=UTC]"
    assert export(crawl, "parquet") == 450
    assert (crawl / "export.parquet").is_file()


@pytest.mark.whole
def test_markdown_files(source, tmp_path):
    """A directory with a file per page, below its host."""
    assert export(source, "markdown", tmp_path / "md") == 450
    files = sorted((tmp_path / "md").rglob("*.md"))
    assert len(files) == 450
    assert files[0].parent.name == "h0.test"
    assert files[0].read_text().startswith('---\nurl: "http://h0.test/p/')


@pytest.mark.whole
async def test_markdown_names_are_harmless(tmp_path):
    """No path leaves the directory, for any URL."""
    async with running(tmp_path / "crawl") as rig:
        rig.send(
            record(1, url="http://../../etc/passwd"), record(2, url="http://a/../..%2f/%00\\x?y#z"), record(3, url="[")
        )
        await rig.storage.flush()
    assert export(tmp_path / "crawl", "markdown", tmp_path / "md") == 3
    assert len(list((tmp_path / "md").rglob("*.md"))) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl", "md"]


@pytest.mark.whole
def test_markdown_goes_to_a_directory(crawl, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"):
        export(crawl, "markdown", tmp_path / "file")


@pytest.mark.parametrize("format", ["jsonl", "csv", pytest.param("markdown", marks=pytest.mark.whole)])
def test_standard_output(crawl, capsysbinary, format):
    """The default, and "-"."""
    assert export(crawl, format) == 450
    first = capsysbinary.readouterr().out
    assert export(crawl, format, "-") == 450
    assert capsysbinary.readouterr().out == first != b""


def test_text_is_made_safe_for_a_terminal_only(crawl, capsysbinary, monkeypatch):
    """A pipe or a file gets every byte as it is stored."""
    export(crawl, "csv")
    plain = capsysbinary.readouterr().out.decode()
    export(crawl, "csv", layout=Layout(shown=str.upper))
    assert capsysbinary.readouterr().out.decode() == plain
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    export(crawl, "csv", layout=Layout(shown=str.upper))
    assert capsysbinary.readouterr().out.decode() == plain.upper() != plain


def test_a_reader_that_goes_away_is_no_error(crawl):
    """`nephila export … | head -1` ends quietly."""
    code = (
        "from nephila.storage.read.export import export; from pathlib import Path;"
        f" export(Path({str(crawl)!r}), 'jsonl')"
    )
    reader, writer = os.pipe()
    os.close(reader)
    path = ":".join(map(str, sys.path))
    ended = subprocess.run(
        [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, env={"PYTHONPATH": path}
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


async def test_a_running_crawl_can_be_exported(tmp_path):
    """The rows committed so far; the crawl continues."""
    async with running(tmp_path) as rig:
        rig.send(record(1))
        await rig.storage.flush()
        assert export(tmp_path, "jsonl", tmp_path / "o") == 1
        rig.send(record(2))
        await rig.storage.flush()
        assert export(tmp_path, "jsonl", tmp_path / "o") == 2


def test_an_export_that_fails_leaves_the_old_file(crawl, tmp_path, monkeypatch):
    """Written to a temporary file and renamed."""
    (tmp_path / "o.jsonl").write_text("old")

    def broken(*_, facts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nephila.storage.read.export.append_line", broken)
    with pytest.raises(UserError, match=r"disk full writing .* export again"):
        export(crawl, "jsonl", tmp_path / "o.jsonl")
    assert (tmp_path / "o.jsonl").read_text() == "old"
    assert not (tmp_path / "o.jsonl.part").exists()


def test_wrong_requests_are_one_line(crawl, tmp_path):
    """No database, unknown format, an output that cannot be written."""
    with pytest.raises(UserError, match=r"no database at .*nothing"):
        export(tmp_path / "nothing", "jsonl")
    with pytest.raises(UsageError, match="unknown format 'xml'"):
        export(crawl, "xml")
    with pytest.raises(UserError, match="cannot write"):
        export(crawl, "jsonl", tmp_path / "no" / "o.jsonl")
    with pytest.raises(UserError, match="is a directory"):
        export(crawl, "jsonl", tmp_path)
    Path(tmp_path / "nephila.db").write_bytes(b"no database " * 100)
    with pytest.raises(UserError, match="is not an SQLite database"):
        export(tmp_path, "csv")
