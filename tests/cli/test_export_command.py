"""`nephila export`: what the command adds to `nephila.storage.read.export`: options, messages, exit codes."""

from __future__ import annotations

import csv
import io
import json

import pytest
from nephila.kernel.messages import Outcome, Record
from nephila.native import parse_url

from tests.cli.crawled import store


@pytest.fixture
def directory(tmp_path):
    """A crawl with two stored pages and one that was denied."""
    rows = [
        Record("crawl", parse_url(url).fingerprint, url, 1, 1, outcome, reason, title=title, text=b"text")
        for url, outcome, reason, title in (
            ("http://a.test/", Outcome.STORED, "", "One"),
            ("http://a.test/2", Outcome.STORED, "", "=2+2"),
            ("http://a.test/3", Outcome.DENIED, "robots", ""),
        )
    ]
    store(tmp_path / "o", rows)
    return str(tmp_path / "o")


def test_json_lines_go_to_standard_output(nephila, directory):
    """Ready for a pipe: nothing else is printed."""
    ran = nephila("export", directory, "--format", "jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert [json.loads(line)["url"] for line in ran.out.splitlines()] == ["http://a.test/", "http://a.test/2"]


def test_all_outcomes_on_demand(nephila, directory):
    """With their reasons."""
    ran = nephila("export", directory, "--format", "jsonl", "--all")
    assert [json.loads(line)["reason"] for line in ran.out.splitlines()] == ["", "", "robots"]


def test_csv_is_harmless_unless_told_otherwise(nephila, directory):
    """A title that is a formula is not computed by whoever opens the file."""
    for option, title in (((), "'=2+2"), (("--raw-csv",), "=2+2")):
        ran = nephila("export", directory, "--format", "csv", *option)
        assert list(csv.DictReader(io.StringIO(ran.out)))[1]["title"] == title


@pytest.mark.parametrize("format", ["jsonl", "csv", pytest.param("parquet", marks=pytest.mark.whole)])
def test_a_file_is_named_with_its_rows(nephila, directory, tmp_path, format):
    """On standard error, as standard output is for data."""
    target = tmp_path / f"pages.{format}"
    ran = nephila("export", directory, "--format", format, "-o", str(target))
    assert (ran.code, ran.out, ran.err) == (0, "", f"nephila: 2 rows written to {target}\n")
    assert target.stat().st_size


@pytest.mark.whole
def test_markdown_makes_a_file_per_page(nephila, directory, tmp_path):
    """Below the given directory."""
    assert nephila("export", directory, "--format", "markdown", "-o", str(tmp_path / "md")).code == 0
    assert len(list((tmp_path / "md").rglob("*.md"))) == 2


def test_mistakes_are_explained(nephila, directory, tmp_path):
    """Usage is 2; a directory without a crawl or an output that cannot be written is 1."""
    assert nephila("export", directory).code == 2
    assert nephila("export", directory, "--format", "xml").err == (
        "nephila: --format 'xml' is none of jsonl, csv, parquet, markdown, chunks, blocks, cdxj, wacz\n"
    )
    assert nephila("export", directory, "--format", "jsonl", "--raw-csv").code == 2
    ran = nephila("export", str(tmp_path / "none"), "--format", "jsonl")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    ran = nephila("export", str(tmp_path), "--format", "jsonl")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    ran = nephila("export", directory, "--format", "csv", "-o", str(tmp_path / "no" / "x.csv"))
    assert (ran.code, ran.err.count("\n")) == (1, 1)


@pytest.mark.whole
def test_chunks_are_of_the_given_size(nephila, directory):
    """A size and an overlap that do not fit are refused with the names of the options."""
    lines = nephila("export", directory, "--format", "chunks", "--chunk-chars", "100", "--chunk-overlap", "0").out
    assert lines
    assert all(json.loads(line)["chars"] <= 100 for line in lines.splitlines())
    refused = nephila("export", directory, "--format", "chunks", "--chunk-overlap", "5000")
    assert refused.code == 2
    assert refused.err == ("nephila: --chunk-overlap 5000 is not between 0 and half of --chunk-chars 2000; set 200\n")
