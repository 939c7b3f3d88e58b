"""chunks.jsonl and the export of chunks: fields, Markdown and plain text, refused sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.read.export import Layout, export
from nephila.storage.writer import Writer

from tests.storage.storage_rig import key, record
from tests.storage.structured import structured


def crawl(directory: Path, *records: Any, **config: Any) -> list[dict[str, Any]]:
    """Write the records and read chunks.jsonl."""
    writer = Writer(StorageConfig(directory=directory, formats=("chunks",), fsync=False, **config))
    writer.open()
    writer.commit(records, [None] * len(records), [])
    writer.close()
    return [json.loads(line) for line in (directory / "chunks.jsonl").read_bytes().splitlines()]


def test_a_page_is_its_chunks_with_their_place(tmp_path):
    """Markdown of a row's structure, plain text of one without; a page that failed has none."""
    marked = record(1, **structured("<h1>Top</h1><h2>One</h2><p>First.</p><h2>Two</h2><p>Second."))
    found = crawl(tmp_path, marked, record(2), record(3, outcome=2, reason="http_404", sha256=b"", text=b""))
    assert [(one["headings"], one["position"], one["chunks"]) for one in found] == [
        (["Top", "One"], 0, 2),
        (["Top", "Two"], 1, 2),
        ([], 0, 1),
    ]
    assert found[1] == {
        **{name: found[1][name] for name in ("id", "fetched_at", "sha256")},
        "job": "job-1",
        "url": marked.url,
        "url_key": key(1).hex(),
        "title": "Page 1",
        "lang": "en",
        "fetch_no": 1,
        "headings": ["Top", "Two"],
        "position": 1,
        "chunks": 2,
        "chars": 15,
        "text": "## Two\n\nSecond.",
    }
    assert found[2]["text"] == "text of page 2\nfetch 1"


def test_an_export_gives_the_same_chunks(tmp_path):
    """From the rows, with the Markdown that it is given; to a file and in the same form."""
    found = crawl(tmp_path, record(1, text=b"One. Two. " * 50), chunk_chars=120, chunk_overlap=20)
    assert len(found) > 4
    export(tmp_path, "chunks", tmp_path / "out.jsonl", layout=Layout(chunk=(120, 20)))
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()] == found
    export(tmp_path, "chunks", tmp_path / "md.jsonl", layout=Layout(text=lambda row: "# H\n\nx"))
    assert [json.loads(line)["headings"] for line in (tmp_path / "md.jsonl").read_bytes().splitlines()] == [["H"]]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"chunk_chars": 50}, "storage.chunk_chars 50 is less than 100"),
        ({"chunk_chars": 1000, "chunk_overlap": 600}, "storage.chunk_overlap 600 is not between 0 and half of"),
        ({"chunk_overlap": -1}, "storage.chunk_overlap -1 is not between 0 and half of .* set 200"),
    ],
)
def test_bad_sizes_are_refused_in_one_line(tmp_path, config, message):
    """With the settings and a size that fits."""
    with pytest.raises(UsageError, match=message):
        crawl(tmp_path, **config)
