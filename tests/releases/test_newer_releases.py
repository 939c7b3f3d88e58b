"""What a release to come has written in a directory is refused in one line, and left as it is."""

from __future__ import annotations

import contextlib
import sqlite3
import struct

import msgspec
import pytest
from nephila.cli.main import main
from nephila.scheduler.durability.commit_log import frame

from tests.releases.past import releases, site, unpack_data

LATER = struct.pack("<I", 9)


def number(glob, at):
    """Write another version into a file; `at` below 0 counts from its end."""

    def change(out):
        for path in out.glob(glob):
            data = bytearray(path.read_bytes())
            start = at % len(data)
            data[start : start + 4] = LATER
            path.write_bytes(data)

    return change


def outcome(out):
    """A commit with an outcome that is not known yet."""
    ended = [b"k" * 16, "crawl", "h0.test", 1, 9]
    with sorted((out / "frontier").glob("*.log"))[-1].open("ab") as log:
        log.write(frame(msgspec.msgpack.encode([0, 0, 10**6, [], [], [ended]])))


def schema(out):
    """Tables of a later schema."""
    with contextlib.closing(sqlite3.connect(out / "nephila.db")) as db:
        db.execute("update meta set value = '9' where name = 'schema_version'")
        db.commit()


def run_file(out):
    """A run.json of a later layout."""
    text = (out / "run.json").read_text()
    (out / "run.json").write_text(text.replace('"format": 1', '"format": 9'))


FILES = {
    "log": (number("frontier/*.log", 8), "frontier format 9, this program reads 3"),
    "log, a value": (outcome, "Invalid enum value 9"),
    "snapshot": (number("frontier/*.snapshot", 8), "frontier format 9, this program reads 3"),
    "queues": (number("frontier/queue*.run", 8), "host store format 9, this program reads 1"),
    "hosts": (number("frontier/*.hosts", 8), "host store format 9, this program reads 1"),
    "seen": (number("frontier/seen*.run", -12), "version 9, this program reads 1"),
    "rows": (schema, "has schema_version 9"),
    "run.json": (run_file, "directory format 9, this program reads 1"),
}
"""Format → how a file of a later version of it is made, and what the line says of it."""


NAMED = {"run.json": "o was"}


def content(out):
    """Frontier and rows. The files of rows may be cut to what was committed, and run.json says how a run has ended."""
    frontier = {path.name: path.read_bytes() for path in (out / "frontier").iterdir()}
    with contextlib.closing(sqlite3.connect(out / "nephila.db")) as db:
        rows = db.execute("select url, outcome, fetch_no from pages order by 1").fetchall()
    return frontier, rows


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_release_to_come(tmp_path, capsys, monkeypatch, name):
    """Exit code 1 and one line that names file and number; no page is asked for, frontier and rows stay as they are."""
    change, words = FILES[name]
    unpack_data(releases()[-1].data / "crawl.tar.xz", tmp_path)
    change(tmp_path / "o")
    before = content(tmp_path / "o")
    monkeypatch.chdir(tmp_path)
    with site() as web:
        options = ["--out", "o", "--allow-private", "--host-map", web.host_map, "--format", "sqlite,jsonl,warc"]
        assert main(["crawl", "--resume", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert line.startswith(f"nephila: {NAMED.get(name, 'o/')}")
    assert "the program" in line or "backup" in line
    assert web.requests == []
    assert content(tmp_path / "o") == before
