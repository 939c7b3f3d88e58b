"""One suite for every output: the same records in, the same logical rows out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset
import pyarrow.parquet
import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.outputs import FORMATS
from nephila.storage.rows import COLUMNS
from nephila.storage.writer import Writer
from nephila_stores import raw_file as rawfile
from nephila_stores.postgres.link import fault
from warcio.archiveiterator import ArchiveIterator

from tests.search_server import SearchServer, running
from tests.storage.records import not_modified, put, record

Rows = dict[str, dict[str, Any]]
"""url_key → the row that holds."""

_MOVED = ("outcome", "reason", "status", "final_url", "fetched_at", "fetch_no", "fetch_id", "change")
"""What a fetch that brought no copy says of the row."""


def read_sqlite(directory: Path) -> Rows:
    """The table."""
    connection = sqlite3.connect(directory / "nephila.db")
    try:
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM pages").fetchall()
    finally:
        connection.close()
    return {row["url_key"]: row for row in (dict(zip(COLUMNS, values, strict=True)) for values in found)}


def read_jsonl(directory: Path) -> Rows:
    """The lines, folded; each fetch stands there once."""
    values = []
    data = (directory / "pages.jsonl").read_bytes()
    assert not data or data.endswith(b"\n")
    for value in map(json.loads, data.splitlines()):
        LINE_ITEMS[directory, value["fetch_id"]] = value.pop("items", [])
        assert tuple(value) == COLUMNS
        value["meta"] = json.dumps(value["meta"]) if value["meta"] else ""
        values.append(value)
    return folded(values)


def read_dataset(directory: Path) -> Rows:
    """All files, read as a dataset with job and day from the paths, then folded."""
    values = []
    found = pyarrow.dataset.dataset(directory / "dataset", partitioning=pyarrow.dataset.HivePartitioning(HIVE))
    for value in found.to_table().to_pylist():
        time = value["fetched_at"]
        value["fetched_at"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z") if time else ""
        assert value.pop("day") == (value["fetched_at"][:10] or None)
        values.append({name: value[name] for name in COLUMNS})
    assert not list(directory.glob("*.part"))
    return folded(sorted(values, key=itemgetter("fetch_no")))


HIVE = pyarrow.schema([("job", pyarrow.string()), ("day", pyarrow.string())])


def folded(values: list[dict[str, Any]]) -> Rows:
    """One row per URL from the rows of all its fetches, each of which is there once."""
    rows: Rows = {}
    seen = set()
    for value in values:
        assert value["fetch_id"] not in seen
        seen.add(value["fetch_id"])
        old = rows.get(value["url_key"])
        if old is not None and old["sha256"] and not value["sha256"]:
            value = {**old, **{name: value[name] for name in _MOVED}}
            value["reason"] = value["reason"].replace("not_modified", "")
        if old is None or value["fetch_no"] >= old["fetch_no"]:
            rows[value["url_key"]] = value
    return rows


def read_parquet(directory: Path) -> Rows:
    """The files in order; the highest fetch_no holds."""
    rows: Rows = {}
    for path in sorted(directory.glob("pages-*.parquet")):
        for value in pyarrow.parquet.read_table(path).to_pylist():
            time = value["fetched_at"]
            value["fetched_at"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z") if time else ""
            old = rows.get(value["url_key"])
            if old is None or value["fetch_no"] >= old["fetch_no"]:
                rows[value["url_key"]] = value
    return rows


def read_warc(directory: Path) -> Rows:
    """Responses and revisits: url, fetch and body of each URL that had a page."""
    rows: Rows = {}
    seen = set()
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for found in ArchiveIterator(stream, check_digests="raise"):
                if found.rec_type not in ("response", "revisit"):
                    continue
                fetch_id = found.rec_headers.get_header("Nephila-Fetch-ID")
                assert fetch_id not in seen
                seen.add(fetch_id)
                key, fetch_no, _ = fetch_id.split("-")
                body = found.content_stream().read().decode()
                if found.rec_type == "revisit":
                    body = rows[key]["text"] if key in rows else ""
                url = found.rec_headers.get_header("WARC-Target-URI")
                rows[key] = {"url_key": key, "url": url, "fetch_no": int(fetch_no), "fetch_id": fetch_id, "text": body}
    return rows


def read_raw(directory: Path) -> Rows:
    """Bodies: url, fetch and body of each URL that had one."""
    rows: Rows = {}
    seen = set()
    for path in sorted(directory.glob("raw-*.gz")):
        for found in rawfile.read(path):
            assert isinstance(found, rawfile.RawPage)
            head = found.head
            fetch_id = f"{head.url_key}-{head.fetch_no}-{head.attempt}"
            assert fetch_id not in seen
            seen.add(fetch_id)
            reported = {"url_key": head.url_key, "url": head.url, "fetch_no": head.fetch_no, "fetch_id": fetch_id}
            rows[head.url_key] = {**reported, "text": found.body.decode()}
    return rows


def read_chunks(directory: Path) -> Rows:
    """Copies: the fields of the row and the text, one chunk as long as the text is short."""
    rows: Rows = {}
    seen = set()
    for value in map(json.loads, (directory / "chunks.jsonl").read_bytes().splitlines()):
        assert (value["id"], value["fetch_no"]) not in seen
        seen.add((value["id"], value["fetch_no"]))
        assert value["chars"] == len(value["text"]) <= 2000
        row = {name: value[name] for name in ("job", "url", "url_key", "title", "fetch_no", "sha256", "text")}
        old = rows.get(row["url_key"])
        if old is None or row["fetch_no"] >= old["fetch_no"]:
            rows[row["url_key"]] = row
    return rows


def read_postgres(directory: Path) -> Rows:
    """The table on the server."""
    with psycopg.connect(STORES[directory]) as connection:
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM pages").fetchall()
    return {row["url_key"]: row for row in (dict(zip(COLUMNS, values, strict=True)) for values in found)}


def read_ledger(directory: Path) -> Rows:
    """The table, wherever it is."""
    return read_postgres(directory) if directory in STORES else read_sqlite(directory)


LINE_ITEMS: dict[tuple[Path, str], list[Any]] = {}
"""Items of each line of pages.jsonl, by its fetch."""
STORES: dict[Path, str] = {}
"""Directories of tests whose rows are on a server."""


def read_search(directory: Path) -> Rows:
    """The documents of the server."""
    found = SEARCH[directory].documents.values()
    for one in found:
        one.pop("items", None)
    return {one["url_key"]: {**one, "fetched_at": one["fetched_at"] or ""} for one in found}


SEARCH: dict[Path, SearchServer] = {}
"""Directories of tests whose documents are on a server."""

READERS: dict[str, Callable[[Path], Rows]] = {
    "sqlite": read_sqlite,
    "postgres": read_postgres,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "dataset": read_dataset,
    "chunks": read_chunks,
    "opensearch": read_search,
    "warc": read_warc,
    "raw": read_raw,
}
COMBINED = (
    "postgres+jsonl",
    "postgres+warc",
    "postgres+dataset",
    "postgres+opensearch",
    "by_day+postgres",
    "by_day+jsonl",
)
"""Files beside a database on a server; by_day: its tables are partitioned by day. Each fetch is a day after the one
before."""
BY_DAY: set[Path] = set()
"""Directories of tests whose database is partitioned."""
APPEND_ONLY = ("jsonl", "chunks", "warc", "raw")
COPIES = ("warc", "raw", "chunks")
"""They keep what was on the wire, not what has become of it; a 304 leaves nothing in raw and chunks."""


def opened(directory: Path, name: str) -> Writer:
    """A writer with one sink besides the ledger."""
    config = StorageConfig(
        directory=directory,
        formats=(name,),
        fsync=False,
        store=STORES.get(directory, ""),
        partition_by="day" if directory in BY_DAY else "",
        dataset=str(directory / "dataset"),
        opensearch_url=SEARCH[directory].url if directory in SEARCH else "",
        writer="test",
    )
    writer = Writer(config)
    writer.open()
    return writer


def written(directory: Path, name: str, *flushes: list[m.Record]) -> Rows:
    """Flush after flush, then close and read."""
    writer = opened(directory, name)
    for flush in flushes:
        put(writer, *flush)
    writer.close()
    return READERS[name](directory)


def same(name: str, directory: Path) -> None:
    """What the output gives back equals the ledger, as far as it keeps it."""
    mine, ledger = READERS[name](directory), read_ledger(directory)
    if name in COPIES:
        ledger = {key: row for key, row in ledger.items() if row["outcome"] == "stored"}
    if name in ("raw", "chunks"):  # a 304 leaves nothing there
        ledger = {key: row for key, row in ledger.items() if row["reason"] != "not_modified"}
        moved = {key for key, row in ledger.items() if row["status"] == 304}
        for key in moved & mine.keys():
            mine[key] = {column: mine[key][column] for column in ("url_key", "url", "text")}
    assert set(mine) == set(ledger)
    for key, row in mine.items():
        assert row == {column: ledger[key][column] for column in row}


WITHOUT_ROWS = ("items", "markdown", "search")
"""Neither rows nor fetches can be read back from them: items without pages (tests/storage/sinks/test_item_files.py), a
file per page (test_markdown_sink.py), an index (tests/stores/search)."""


@pytest.fixture(params=[*(name for name in FORMATS if name not in WITHOUT_ROWS), *COMBINED])
def name(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Every output there is, and files beside a server."""
    ledger, _, sink = str(request.param).partition("+")
    if ledger in ("postgres", "by_day"):
        STORES[tmp_path] = request.getfixturevalue("store")
    if ledger == "by_day":
        BY_DAY.add(tmp_path)
    if (sink or ledger) != "opensearch":
        yield sink or ledger
        return
    with running() as SEARCH[tmp_path]:
        yield "opensearch"


def test_every_backend_has_a_reader_here():
    """A new row of LEDGERS or SINKS comes with its reader in this suite."""
    assert {*READERS, *WITHOUT_ROWS} == set(FORMATS)


def test_rows_of_all_outcomes_come_back(tmp_path, name):
    """Stored, denied, failed and dropped rows of several flushes."""
    others = [
        record(100, outcome=m.Outcome.DENIED, reason="robots", status=0, text=b"", fetched_at=0.0),
        record(101, outcome=m.Outcome.FAILED, reason="http_404", status=404, text=b""),
        record(102, outcome=m.Outcome.DROPPED, reason="redirect", final_url="http://x/", text=b"", status=301),
    ]
    rows = written(tmp_path, name, [record(n) for n in range(150, 400)], others, [record(1)])
    same(name, tmp_path)
    assert len(rows) == 251 + (0 if name in COPIES else 3)


def test_a_fetch_that_is_delivered_again_is_kept_once(tmp_path, name):
    """In the same flush, in a later one, by a later attempt, and after a restart: the first stays."""
    writer = opened(tmp_path, name)
    put(writer, record(1), record(1))
    assert put(writer, record(1, attempt=2, text=b"other")) == [m.Outcome.STORED]
    writer.close()
    rows = written(tmp_path, name, [record(1), record(2)])
    same(name, tmp_path)
    assert len(rows) == 2
    assert "fetch 1" in rows[record(1).url_key.hex()]["text"]


def test_the_durable_outcome_is_what_a_late_failure_is_told(tmp_path, name):
    """A stored page stays stored when the same fetch, repeated after a crash, fails."""
    writer = opened(tmp_path, name)
    put(writer, record(1))
    assert put(writer, record(1, attempt=2, outcome=m.Outcome.FAILED, reason="timeout")) == [m.Outcome.STORED]
    writer.close()
    same(name, tmp_path)


def test_the_highest_fetch_wins(tmp_path, name):
    """A newer fetch replaces the row, an older one that comes late does not; in one flush and over two."""
    rows = written(
        tmp_path,
        name,
        [record(1, 1), record(1, 2), record(2, 3), record(2, 2)],
        [record(1, 3), record(2, 1)],
    )
    same(name, tmp_path)
    assert {row["fetch_no"] for row in rows.values()} == {3}


def test_a_304_moves_the_fetch_and_keeps_the_content(tmp_path, name):
    """In a later flush and in the same one."""
    rows = written(tmp_path, name, [record(1), record(2), not_modified(2, 2)], [not_modified(1, 2)])
    same(name, tmp_path)
    newest = 1 if name in ("raw", "chunks") else 2
    assert {(row["fetch_no"], "fetch 1" in row["text"]) for row in rows.values()} == {(newest, True)}


def test_a_copy_outlives_what_comes_after_it(tmp_path, name):
    """The row says how the newest fetch ended; the text stays, whether the next one fails, is a 304 or is a copy."""
    lost = {"status": 404, "text": b"", "title": "", "sha256": b"", "meta": ""}
    gone = [record(n, 2, outcome=m.Outcome.FAILED, reason="http_404", **lost) for n in (1, 2, 3)]
    rows = written(tmp_path, name, [record(n) for n in (1, 2, 3, 4)], gone, [not_modified(2, 3), record(3, 3)])
    if name not in COPIES:
        same(name, tmp_path)
    ledger = read_ledger(tmp_path)
    reported = [tuple(ledger[record(n).url_key.hex()][c] for c in ("outcome", "reason", "status")) for n in (1, 2, 3)]
    assert reported == [("failed", "http_404", 404), ("stored", "", 304), ("stored", "", 200)]
    assert ["fetch 1" in ledger[record(n).url_key.hex()]["text"] for n in (1, 2, 3)] == [True, True, False]
    assert rows


def read_items(directory: Path) -> dict[str, list[Any]]:
    """url_key → (rule, version, data) of its items in their order, from the ledger."""
    query = "SELECT url_key, rule, rule_version, data FROM items WHERE job = 'job' ORDER BY url_key, ordinal"
    if directory in STORES:
        with psycopg.connect(STORES[directory]) as server:
            rows = server.execute(query).fetchall()
    else:
        connection = sqlite3.connect(directory / "nephila.db")
        rows = connection.execute(query).fetchall()
        connection.close()
    found: dict[str, list[Any]] = {}
    for key, rule, version, data in rows:
        found.setdefault(key, []).append((rule, version, data))
    return found


def with_items(number: int, fetch_no: int, *data: bytes, rule: str = "shop", **fields: Any) -> m.Record:
    """A page that a rule made items of; the version is a hash, above 2^31."""
    return record(number, fetch_no, rule=rule, rule_version=0xFFFF_FFF0 + fetch_no, items=list(data), **fields)


def test_items_are_those_of_the_newest_copy(tmp_path, name):
    """Replaced as a whole by the next copy, in a flush or over two; what brings no copy leaves them."""
    first = [with_items(n, 1, b'{"a":1}', b'{"a":2}') for n in (1, 2, 3, 4)]
    gone = record(4, 2, outcome=m.Outcome.FAILED, reason="http_404", text=b"", sha256=b"", title="", meta="")
    later = [with_items(1, 2, b'{"b":"\\u0000 \xc5\xbc"}', rule="other"), record(2, 2), not_modified(3, 2), gone]
    written(tmp_path, name, first, later, [record(5), with_items(5, 2, b"{}"), with_items(1, 1, b'{"old":1}')])
    two = [("shop", 0xFFFF_FFF1, '{"a":1}'), ("shop", 0xFFFF_FFF1, '{"a":2}')]
    assert read_items(tmp_path) == {
        record(1).url_key.hex(): [("other", 0xFFFF_FFF2, '{"b":"\\u0000 ż"}')],
        record(3).url_key.hex(): two,
        record(4).url_key.hex(): two,
        record(5).url_key.hex(): [("shop", 0xFFFF_FFF2, "{}")],
    }
    if name == "jsonl":
        fetches = [LINE_ITEMS[tmp_path, f"{record(n).url_key.hex()}-{no}-1"] for n, no in ((1, 1), (1, 2), (2, 2))]
        assert fetches == [[{"a": 1}, {"a": 2}], [{"b": "\0 ż"}], []]
    if name != "warc":
        rule, version = (read_ledger(tmp_path)[record(1).url_key.hex()][column] for column in ("rule", "rule_version"))
        assert (rule, version) == ("other", 0xFFFF_FFF2)


def test_many_items_of_a_page_are_one_transaction(tmp_path, name):
    """Ten thousand, some of them large, and none when the batch fails."""
    many = [b'{"n":%d,"t":"%s"}' % (n, b"x" * (n % 50) * 100) for n in range(10_000)]
    written(tmp_path, name, [with_items(1, 1, *many), record(2)])
    found = read_items(tmp_path)[record(1).url_key.hex()]
    assert [data.encode() for _, _, data in found] == many


def test_a_304_without_an_earlier_row_is_stored_as_such(tmp_path, name):
    """The row says not_modified; a later full fetch replaces it."""
    written(tmp_path, name, [not_modified(1, 2), not_modified(2, 2)], [record(2, 3)])
    same(name, tmp_path)
    assert read_ledger(tmp_path)[record(1).url_key.hex()]["reason"] == "not_modified"


@pytest.mark.parametrize(
    "text",
    [b"a\0b", b"\xff\xfe broken \xc3", b"\xed\xa0\x80", "\u2028 \x1f \x7f".encode(), b"x" * 10_000_000],
    ids=["nul", "invalid", "surrogate", "control", "huge"],
)
def test_hostile_text_neither_breaks_the_batch_nor_the_file(tmp_path, name, text):
    """The neighbours are written, and what comes back is valid text."""
    hostile = record(2, text=text, title="T\0\ud800=\n", url="http://x/\r\nWARC-Type: response", meta='{"a":')
    if name in COPIES:  # they keep bytes as they are: other tests
        hostile.text, hostile.url = b"plain", "http://x/"
    rows = written(tmp_path, name, [record(1), hostile, record(3)])
    assert len(rows) == 3
    for row in rows.values():
        assert "\0" not in json.dumps(row, ensure_ascii=False)
        row["text"].encode()


def test_a_failed_commit_leaves_nothing(tmp_path, name, monkeypatch):
    """Sinks go back to the committed length at once, rows are rolled back, and the writer takes no more."""
    writer = opened(tmp_path, name)
    put(writer, record(1))
    before = {
        path.name: path.stat().st_size for path in tmp_path.iterdir() if path.suffix in (".jsonl", ".gz", ".spool")
    }

    def full(lengths: object) -> None:
        if tmp_path in STORES:
            raise fault(psycopg.errors.DiskFull("could not extend file"), STORES[tmp_path])
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(writer._ledger, "commit", full)
        with pytest.raises(
            UserError, match=r"disk full (writing|on the server of) .*; free space .*run again with --resume"
        ):
            put(writer, record(2))
    with pytest.raises(UserError, match="disk full"):
        put(writer, record(3))
    assert before == {path: (tmp_path / path).stat().st_size for path in before}
    writer.close()
    rows = written(tmp_path, name, [record(4)])
    same(name, tmp_path)
    assert set(rows) == {record(1).url_key.hex(), record(4).url_key.hex()}


@pytest.mark.parametrize("append_only", APPEND_ONLY)
def test_a_torn_tail_is_cut_on_open(tmp_path, append_only):
    """Bytes beyond the committed length are a crash's and go."""
    written(tmp_path, append_only, [record(1)])
    (path,) = [path for path in tmp_path.iterdir() if path.suffix in (".jsonl", ".gz")]
    with path.open("ab") as file:
        file.write(b'{"torn": ')
    assert len(written(tmp_path, append_only, [record(2)])) == 2
    same(append_only, tmp_path)


@pytest.mark.parametrize("append_only", APPEND_ONLY)
@pytest.mark.parametrize("how", ["short", "gone"])
def test_lost_bytes_are_refused_and_nothing_is_overwritten(tmp_path, append_only, how):
    """A file shorter than committed is left as it is."""
    written(tmp_path, append_only, [record(1)])
    (path,) = [path for path in tmp_path.iterdir() if path.suffix in (".jsonl", ".gz")]
    data = path.read_bytes()[:20]
    path.write_bytes(data)
    if how == "gone":
        path.unlink()
    with pytest.raises(UserError, match=f"{path.name} .* committed") as caught:
        opened(tmp_path, append_only)
    assert "\n" not in str(caught.value)
    assert not path.exists() if how == "gone" else path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("jsonl", "pages.jsonl"),
        ("chunks", "chunks.jsonl"),
        ("warc", "nephila-00000.warc.gz"),
        ("raw", "raw-00000.gz"),
        ("parquet", "pages-00000.parquet"),
    ],
)
def test_a_strangers_file_is_refused(tmp_path, name, file):
    """A file that this crawl has not begun is nobody's to cut."""
    (tmp_path / file).write_bytes(b"precious")
    with pytest.raises(UserError, match="not of this crawl"):
        opened(tmp_path, name)
    assert (tmp_path / file).read_bytes() == b"precious"
