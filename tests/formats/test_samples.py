"""Every format: the frozen sample is read; another number is refused with one line, and nothing is changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from nephila import native
from nephila.cli.main import main
from nephila.kernel.documents import job_document
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.messages import Envelope, FrontierCommit, FrontierSnapshot, HostRecord, Seed
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import TOPICS
from nephila.native import KEY_VERSION
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.scheduler.durability import commit_log
from nephila.scheduler.durability.commit_log import VERSION as FRONTIER
from nephila.scheduler.durability.commit_log import frame
from nephila.scheduler.frontier import host_table
from nephila.scheduler.jobs import queue_entry
from nephila_cluster.kafka.wire import CODECS, UnknownFormat, headers_of, message_of, unseal
from nephila_stores.formats import markdown_file

from .samples import DATA, PAGES, SEED, URLS, crawl, killed_crawl, site, unpack, values

core_only = pytest.mark.skipif(native.IMPLEMENTATION != "rust", reason="the Rust core is not built here: no cargo")
RECORDS = json.loads((DATA / "records.json").read_text())
VALUES = json.loads((DATA / "crawl.json").read_text())
STRUCTS = {struct.__name__: struct for struct in CODECS}


def rows(out: Path) -> list[tuple[str, str, str]]:
    """URL, outcome and title of all pages."""
    with contextlib.closing(sqlite3.connect(out / "nephila.db")) as db:
        return db.execute("select url, outcome, title from pages order by 1").fetchall()


@core_only
def test_the_crawl_is_resumed(tmp_path: Path) -> None:
    """Log, snapshot, queues, seen URLs, rows and files: in the end all pages are stored, none twice."""
    out = unpack(tmp_path)
    assert 0 < len(rows(out)) < PAGES
    with site() as web:
        done = crawl(web, "--resume", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(web.requests) < PAGES
    assert rows(out) == [(url, "stored", f"Page {url.rpartition('/')[2]}") for url in sorted(URLS)]
    lines = [json.loads(line)["url"] for line in (out / "pages.jsonl").read_text().splitlines()]
    assert sorted(lines) == sorted(URLS)


def agrees(found: Any, frozen: Any) -> bool:
    """Whether the values of a sample are there; fields that were added since have their zero."""
    if isinstance(found, dict) and isinstance(frozen, dict):
        return all(key in found and agrees(found[key], value) for key, value in frozen.items())
    if isinstance(found, list) and isinstance(frozen, list):
        added = found[len(frozen) :]
        return len(found) >= len(frozen) and not any(added) and all(map(agrees, found, frozen))
    return bool(found == frozen)


@core_only
@pytest.mark.parametrize("section", VALUES)
def test_each_value_of_the_crawl_is_read(tmp_path: Path, section: str) -> None:
    """Not only the end of the resumed crawl is right, which options and rows alone could bring about."""
    assert agrees(values(unpack(tmp_path))[section], VALUES[section])


def test_the_values_are_those_of_the_site() -> None:
    """The frozen values are no echo of a broken reader."""
    assert VALUES["job"]["seeds"] == [{"url": SEED}]
    assert VALUES["job"]["scope"] == {"mode": "any"}
    assert VALUES["job"]["politeness"] == {"delay": "0s"}
    assert VALUES["run.json"]["options"]["format"] == "sqlite,jsonl,warc"
    assert [host[0] for host in VALUES["hosts"]] == ["h0.test", "h1.test", "h2.test"]
    stored = {row[0]: row for row in VALUES["rows"]}
    queued = {entry[7] for entry in VALUES["queues"]}
    assert stored.keys() | queued < URLS
    assert not stored.keys() & queued
    assert len(stored) + len(queued) <= len(VALUES["seen"]) // 32 <= PAGES
    assert stored[SEED][1:5] == ["stored", 0, 1, "Page 0"]
    assert stored[SEED][6].startswith("# Page 0\n\nSome words.")


def lossy(message_type: type, field: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A reader of the commit log or of snapshots that loses a field."""

    def breaks(patch: pytest.MonkeyPatch) -> None:
        read = commit_log._decode

        def decode(decoder: Any, *more: Any) -> Any:
            message = read(decoder, *more)
            if type(message) is message_type:
                setattr(message, field, type(getattr(message, field))())
            return message

        patch.setattr(commit_log, "_decode", decode)

    return breaks


BROKEN: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "a field of the log": ("log and snapshot", lossy(FrontierCommit, "queued")),
    "another field of the log": ("log and snapshot", lossy(FrontierCommit, "leased")),
    "the document of a job": ("job", lambda patch: patch.setattr(job_document, "_decoded", lambda _: JobSpec())),
    "a field of a snapshot": ("log and snapshot", lossy(FrontierSnapshot, "next_job")),
    "a queued URL": (
        "queues",
        lambda patch: patch.setattr(queue_entry, "_PACK", struct.Struct(queue_entry._PACK.format.replace("<", ">"))),
    ),
    "a host": ("hosts", lambda patch: patch.setattr(host_table, "_decode", lambda _: HostRecord())),
    "run.json": ("run.json", lambda patch: patch.setattr(OutputDirectory, "read", lambda _: RunFile())),
    "the structure of a page": ("rows", lambda patch: patch.setattr(markdown_file, "markdown", lambda *_: b"")),
}
"""A reader that loses or confuses a value → the section that it reads, and how it is broken."""


@core_only
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reader_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The sample fails, so it guards the reader."""
    section, breaks = BROKEN[name]
    breaks(monkeypatch)
    assert not agrees(values(unpack(tmp_path))[section], VALUES[section])


def number(glob: str, at: int, value: int) -> Callable[[Path], None]:
    """Write a number into files; `at` below 0 counts from their end."""

    def change(out: Path) -> None:
        paths = list(out.glob(glob))
        assert paths
        for path in paths:
            data = bytearray(path.read_bytes())
            start = at % len(data)
            data[start : start + 4] = struct.pack("<I", value)
            path.write_bytes(data)

    return change


def meta(name: str, value: int) -> Callable[[Path], None]:
    """Write a number into the table of versions."""

    def change(out: Path) -> None:
        with contextlib.closing(sqlite3.connect(out / "nephila.db")) as db:
            db.execute("update meta set value = ? where name = ?", (str(value), name))
            db.commit()

    return change


def run_file(value: int) -> Callable[[Path], None]:
    """Write a format into run.json."""

    def change(out: Path) -> None:
        text = (out / "run.json").read_text()
        assert '"format": 1' in text
        (out / "run.json").write_text(text.replace('"format": 1', f'"format": {value}'))

    return change


def outcome(out: Path) -> None:
    """Append a commit with an outcome that this program does not know."""
    ended = [b"k" * 16, "crawl", "h0.test", 1, 9]
    with sorted((out / "frontier").glob("*.log"))[-1].open("ab") as log:
        log.write(frame(msgspec.msgpack.encode([0, 0, 10**6, [], [], [ended]])))


FILES = {
    "log": (number("frontier/*.log", 8, 9), f"frontier format 9, this program reads {FRONTIER}"),
    "log, earlier": (number("frontier/*.log", 8, 0), f"frontier format 0, this program reads {FRONTIER}"),
    "log, keys": (number("frontier/*.log", 12, 1), f"URL keys of version 1, this program makes version {KEY_VERSION}"),
    "log, a value": (outcome, "Invalid enum value 9"),
    "snapshot": (number("frontier/*.snapshot", 8, 9), f"frontier format 9, this program reads {FRONTIER}"),
    "snapshot, keys": (
        number("frontier/*.snapshot", 12, 3),
        f"URL keys of version 3, this program makes version {KEY_VERSION}",
    ),
    "queues": (number("frontier/queue*.run", 8, 9), "host store format 9, this program reads 1"),
    "hosts": (number("frontier/*.hosts", 8, 0), "host store format 0, this program reads 1"),
    "seen": (number("frontier/seen*.run", -12, 9), "version 9, this program reads 1"),
    "rows": (meta("schema_version", 9), "has schema_version 9"),
    "rows, keys": (meta("key_version", 1), "has key_version 1"),
    "run.json": (run_file(9), "directory format 9, this program reads 1"),
    "run.json, earlier": (run_file(0), "directory format 0, this program reads 1"),
}
"""Format → how a file of another number of it is made, and what the line says."""


def content(out: Path) -> object:
    """Frontier and rows. Files of rows may be cut to their committed length, and run.json has the end of the run."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (out / "frontier").iterdir()}, rows(
        out
    )


def refused(out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The line with which `crawl --resume` refuses a directory; nothing is fetched, frontier and rows stay."""
    before = content(out)
    monkeypatch.chdir(out.parent)
    with site() as web:
        options = ["--out", "o", "--allow-private", "--host-map", web.host_map, "--format", "sqlite,jsonl,warc"]
        assert main(["crawl", "--resume", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert web.requests == []
    assert content(out) == before
    return line


@core_only
@pytest.mark.parametrize("name", FILES)
def test_another_number_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Exit code 1 and one line that names file, number and remedy."""
    change, words = FILES[name]
    out = unpack(tmp_path)
    change(out)
    line = refused(out, capsys, monkeypatch)
    assert words in line
    assert line.startswith(f"nephila: {'o was' if name.startswith('run.json') else 'o/'}")
    assert "the program" in line or "program version" in line or "backup" in line


@core_only
@pytest.mark.parametrize(
    ("writer", "reader"), [("the native core", "the Python fallback"), ("the Python fallback", "the native core")]
)
def test_a_frontier_of_the_other_implementation_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, writer: str, reader: str
) -> None:
    """The checkpoints of core and fallback differ; one line names both, and removing the frontier is the remedy."""
    out = tmp_path / "o"
    if writer == "the native core":
        unpack(tmp_path)
        with site() as web:
            done = crawl(web, "--resume", cwd=tmp_path, NEPHILA_NATIVE="python")
        assert done.returncode == 1
        line = done.stderr.strip()
    else:
        killed_crawl(tmp_path, NEPHILA_NATIVE="python")
        line = refused(out, capsys, monkeypatch)
    assert f"was written by {writer}, this program runs {reader}" in line
    assert "\n" not in line
    assert line.endswith("--resume then begins at the seeds again and keeps all rows")


def is_read_whole(name: str) -> bool:
    """Whether a record has the same values when it is decoded and encoded again; later fields may be absent."""
    record = bytes.fromhex(RECORDS[name])
    codec = CODECS[STRUCTS[name]]
    try:
        message = message_of(STRUCTS[name], *unseal(STRUCTS[name], record, headers_of(STRUCTS[name])))
    except PermanentError:
        return False
    again = codec.proto.FromString(codec.encode(message))
    # A field that this program does not know is in the sample only.
    (frame,) = CODECS[Envelope].proto.FromString(record).frames
    sample = codec.proto.FromString(zstandard.decompress(frame.message) if frame.encoding else frame.message)
    return bool(again.SerializeToString(deterministic=True) == sample.SerializeToString(deterministic=True))


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_record_is_read_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that loses any of its fields is noticed."""
    assert is_read_whole(name)
    codec = CODECS[STRUCTS[name]]
    nothing = STRUCTS[name]()
    for place, (field, write, _) in enumerate(codec._fields):
        fields = list(codec._fields)
        fields[place] = field, write, lambda _, field: getattr(nothing, field)
        monkeypatch.setattr(codec, "_fields", fields)
        assert not is_read_whole(name), field
        monkeypatch.undo()


def test_every_message_has_a_sample() -> None:
    """A new message needs one: make samples."""
    assert set(RECORDS) == set(STRUCTS)
    assert {topic.message.__name__ for topic in TOPICS} <= set(STRUCTS)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([("v", b"2"), headers_of(Seed)[1]], "format 2 of Seed, and this one reads 1"),
        ([("v", b"0"), headers_of(Seed)[1]], "format 0 of Seed"),
        ([headers_of(Seed)[0], ("k", b"9")], f"URL keys of version 9, not {KEY_VERSION}"),
        ([headers_of(Seed)[0]], f"URL keys of version none, not {KEY_VERSION}"),
    ],
)
def test_a_record_of_another_number_is_refused(headers: list[tuple[str, bytes]], words: str) -> None:
    """By its headers."""
    with pytest.raises(UnknownFormat, match=words):
        unseal(Seed, bytes.fromhex(RECORDS["Seed"]), headers)


def test_fields_of_a_later_program_are_skipped() -> None:
    """As protobuf, and in the log, where a message is an array by field number."""
    later = CODECS[Seed].encode(Seed("j", "u")) + b"\xfa\x7f\x03new"  # field 2047, bytes
    assert CODECS[Seed].decode(later) == Seed("j", "u")
    commit = FrontierCommit(1, 2, 3)
    array = msgspec.msgpack.decode(msgspec.msgpack.encode(commit))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode([*array, "new", {"more": 1}]), type=FrontierCommit) == commit
