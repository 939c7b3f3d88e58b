"""The ledger on a server: two concurrent writers, crashing servers, unusable databases."""

from __future__ import annotations

import asyncio
import gzip
import random
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from nephila.kernel.messages import Outcome, Outlinks
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extras import install_line
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.ledgers.versions import versions
from nephila.storage.read import reader
from nephila.storage.read.export import export
from nephila.storage.writer import Writer
from nephila_stores.postgres.ledger import Postgres
from nephila_stores.postgres.link import connect
from nephila_stores.postgres.schema import STEPS, migrate

from tests.storage.storage_rig import JOB, Rig, key, lines, page, record, running


def table(store: str, name: str = "pages", order: str = "url_key") -> list[dict[str, Any]]:
    """All rows of a table."""
    with psycopg.connect(store, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute(f"SELECT * FROM {name} ORDER BY {order}").fetchall()


def change(store: str, statement: str) -> None:
    """Changes to the database by another program."""
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute(statement)


def writer(tmp_path: Any, store: str, **config: Any) -> Writer:
    """An open writer without a service."""
    found = Writer(StorageConfig(directory=tmp_path, store=store, fsync=False, **config))
    found.open()
    return found


async def until(condition: Callable[[], bool], rig: Rig) -> None:
    """Run the event loop and advance the clock until the condition holds."""
    async with asyncio.timeout(60):
        while not condition():
            rig.clock.advance(1)
            await asyncio.to_thread(int)


# ---- two writers


def test_two_writers_with_the_same_keys_neither_deadlock_nor_duplicate(tmp_path, store):
    """Two writers write the same fetches concurrently in different orders: each URL has one row, each fetch one
    line."""
    fetches = [record(number, fetch_no) for number in range(60) for fetch_no in (1, 2, 3)]
    failed: list[BaseException] = []
    outcomes: list[list[Outcome]] = []

    def shard(seed: int) -> None:
        source = random.Random(seed)
        mine = source.sample(fetches, len(fetches))
        try:
            shard_writer = writer(tmp_path / str(seed), store, writer=str(seed))
            for start in range(0, len(mine), 20):
                batch = mine[start : start + 20]
                outcomes.append(shard_writer.commit(batch, [None] * len(batch), []).outcomes)
            shard_writer.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=shard, args=(seed,)) for seed in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    assert sum(map(len, outcomes)) == 3 * len(fetches)
    rows = table(store)
    assert [row["url_key"] for row in rows] == sorted(key(number).hex() for number in range(60))
    assert {row["fetch_no"] for row in rows} == {3}
    history = table(store, "fetches", "id")
    assert len({(fetch["url_key"], fetch["fetch_no"]) for fetch in history}) == len(history)
    # The change of each fetch was computed against the rows committed before it.
    for number in range(60):
        reported = [fetch["change"] for fetch in history if fetch["url_key"] == key(number).hex()]
        assert reported[0] == "new"
        assert "new" not in reported[1:]


def test_two_programs_that_start_at_once_make_the_tables_once(tmp_path, store):
    """Both open an empty database."""
    failed: list[BaseException] = []

    def start(number: int) -> None:
        try:
            writer(tmp_path / str(number), store).close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    assert {row["name"] for row in table(store, "meta", "name")} == {"schema_version", "key_version", "created_by"}


def test_files_of_two_writers_have_lengths_of_their_own(tmp_path, store):
    """Each has a pages.jsonl with its own length in the shared table `sinks`."""
    for name, numbers in (("a", [1]), ("b", [2, 3])):
        one = writer(tmp_path / name, store, writer=name, formats=("jsonl",))
        one.commit([record(number) for number in numbers], [None] * len(numbers), [])
        one.close()
    assert {(row["writer"], row["length"]) for row in table(store, "sinks", "writer")} == {
        (name, (tmp_path / name / "pages.jsonl").stat().st_size) for name in "ab"
    }
    writer(tmp_path / "a", store, writer="a", formats=("jsonl",)).close()
    with pytest.raises(UserError, match="not of this crawl"):
        writer(tmp_path / "a", store, writer="c", formats=("jsonl",))


# ---- a lost server


async def test_a_server_that_crashes_and_comes_back_costs_no_row(tmp_path, mortal):
    """kill -9 of the server between two flushes: the next flush waits, the wait is logged, and the rows are written
    once."""
    async with running(tmp_path, store=mortal.dsn(), formats=("jsonl",), patience_s=0, fsync=True) as rig:
        rig.send(*(record(number) for number in range(10)))
        await rig.storage.flush()
        mortal.kill()
        receipts = rig.send(*(record(number) for number in range(5, 20)))
        rig.clock.advance(1)
        await until(lambda: bool(rig.storage.trouble), rig)
        assert "127.0.0.1" in rig.storage.trouble
        assert "not-a-secret" not in rig.storage.trouble
        assert not any(receipt.done for receipt in receipts)
        mortal.start()
        await until(lambda: len(rig.receipts) == 25, rig)
        assert rig.storage.trouble == ""
        assert not rig.fatal
    assert len(table(mortal.dsn())) == 20
    assert len(table(mortal.dsn(), "fetches", "id")) == 20
    assert sorted(line["url_key"] for line in lines(tmp_path)) == sorted(key(number).hex() for number in range(20))


async def test_a_server_that_is_away_at_the_start_is_waited_for(tmp_path, mortal):
    """A separate service receives records and reports why it is not ready; the records are written once after the
    server starts."""
    mortal.kill()
    async with running(tmp_path, store=mortal.dsn(), patience_s=0, wait_at_start=True) as rig:
        assert "127.0.0.1" in rig.storage.trouble
        assert "not-a-secret" not in rig.storage.trouble
        rig.send(*(record(number) for number in range(5)))
        rig.clock.advance(10)
        mortal.start()
        await until(lambda: len(rig.receipts) == 5, rig)
        assert rig.storage.trouble == ""
        assert not rig.fatal
    assert len(table(mortal.dsn())) == 5


async def test_a_server_that_stays_away_ends_the_service_in_time(tmp_path, mortal):
    """After `patience_s`, with one line; a service that is closed before ends without one."""
    mortal.kill()
    async with running(tmp_path / "a", store=mortal.dsn(), patience_s=30, wait_at_start=True) as rig:
        await until(lambda: bool(rig.fatal), rig)
        assert "cannot connect to" in str(rig.fatal[0])
        assert "s, run again with --resume" in str(rig.fatal[0])
    async with running(tmp_path / "b", store=mortal.dsn(), patience_s=0, wait_at_start=True) as rig:
        await rig.storage.drain(1)
    assert not rig.fatal


async def test_a_server_that_is_away_at_the_start_of_one_program_is_an_error(tmp_path, mortal):
    """In one program the user sees the error."""
    mortal.kill()
    rig = Rig(tmp_path, store=mortal.dsn())
    with pytest.raises(StoreLost, match="cannot connect to"):
        await rig.storage.start()
    await rig.storage.close()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_a_commit_whose_answer_is_lost_is_neither_repeated_nor_forgotten(tmp_path, store, committed, late, monkeypatch):
    """The connection breaks during COMMIT, before or after the server's commit; the files follow the database."""
    raw = writer(tmp_path, store, formats=("jsonl", "warc"))
    raw.commit([record(1)], [page(1)], [])
    raw.after_commit()
    real = Postgres.commit

    def broken(self: Postgres, lengths: Any) -> None:
        connection = self._connection
        assert connection is not None
        if committed:
            real(self, lengths)
        change(store, f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        with self._speaking():
            connection.execute("COMMIT")

    batch: tuple[Any, ...] = ([record(2), record(3)], [page(2), page(3)], [page(4)] if late else [])
    with monkeypatch.context() as patch:
        patch.setattr(Postgres, "commit", broken)
        with pytest.raises(StoreLost):
            raw.commit(*batch)
    result = raw.commit(*batch)
    raw.after_commit()
    assert result.outcomes == [Outcome.STORED, Outcome.STORED]
    raw.commit([record(5)], [page(5)], [])
    raw.close()
    assert len(table(store)) == len(table(store, "fetches", "id")) == len(lines(tmp_path)) == 4
    data = b"".join(path.read_bytes() for path in tmp_path.glob("*.warc.gz"))
    assert gzip.decompress(data).count(b"WARC-Type: response") == (5 if late else 4)
    again = writer(tmp_path, store, formats=("jsonl", "warc"))  # nothing to truncate, nothing missing
    again.close()
    assert b"".join(path.read_bytes() for path in tmp_path.glob("*.warc.gz")) == data


async def test_a_session_ended_by_the_administrator_is_reopened(tmp_path, store):
    """pg_terminate_backend of every session: only the log shows it."""
    async with running(tmp_path, store=store) as rig:
        for number in range(3):
            rig.send(record(number))
            await until(lambda wanted=number: len(rig.receipts) > wanted, rig)
            change(store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nephila'")
        assert not rig.fatal
    assert len(table(store)) == 3


async def test_a_lost_database_ends_the_run_after_patience_s(tmp_path, mortal):
    """After `patience_s` the run fails with one line; nothing was receipted, and a resumed run writes all records."""
    async with running(tmp_path, store=mortal.dsn(), patience_s=60) as rig:
        mortal.kill()
        rig.send(record(1))
        await until(lambda: bool(rig.fatal), rig)
        (error,) = rig.fatal
        assert isinstance(error, UserError)
        assert not isinstance(error, StoreLost)
        assert "--resume" in str(error)
        assert "\n" not in str(error)
        assert not rig.receipts
    mortal.start()
    async with running(tmp_path, store=mortal.dsn()) as rig:
        rig.send(record(1))
        await rig.storage.flush()
    assert len(table(mortal.dsn())) == 1


async def test_a_service_that_waits_can_be_closed(tmp_path, mortal):
    """It ends at once; waiting records are fetched again after a resume."""
    async with running(tmp_path, store=mortal.dsn()) as rig:
        mortal.kill()
        rig.send(record(1))
        await until(lambda: bool(rig.storage.trouble), rig)
    assert not rig.fatal
    assert not rig.receipts


def test_a_frozen_writer_does_not_hold_its_locks(tmp_path, store):
    """The server ends a session that is idle in a transaction; another writer of these keys continues."""
    frozen, other = writer(tmp_path / "a", store), writer(tmp_path / "b", store)
    assert isinstance(frozen._ledger, Postgres)
    assert frozen._ledger._connection is not None
    (limit,) = frozen._ledger._connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() or ("",)
    assert limit == "15s"
    frozen._ledger._connection.execute("SET idle_in_transaction_session_timeout = '200ms'")
    frozen._ledger.durable({JOB: [key(1).hex()]})
    other.commit([record(1)], [None], [])
    with pytest.raises(StoreLost):
        frozen._ledger.commit({})
    assert len(table(store)) == 1
    other.close()
    frozen.close()


# ---- unusable databases


def refusal(tmp_path: Any, store: str) -> str:
    """The error line of an open; it contains no password."""
    with pytest.raises(UserError) as caught:
        writer(tmp_path, store)
    line = str(caught.value)
    assert "\n" not in line
    assert "not-a-secret" not in line
    assert "wrong-one" not in line
    return line


def test_a_server_that_is_not_there(tmp_path, store, postgres):
    """No server at the port."""
    line = refusal(tmp_path, postgres.dsn(port=1))
    assert "cannot connect to postgresql://nephila@127.0.0.1:1/postgres" in line
    assert "is the server running" in line


def test_a_wrong_password(tmp_path, store):
    """The remedy lists the sources of passwords."""
    line = refusal(tmp_path, store.replace("not-a-secret", "wrong-one"))
    assert "password authentication failed" in line
    assert "NEPHILA_STORAGE__STORE" in line


def test_a_database_that_does_not_exist(tmp_path, postgres):
    """The remedy is createdb."""
    line = refusal(tmp_path, postgres.dsn("nowhere"))
    assert "does not exist" in line
    assert "createdb" in line


@pytest.mark.parametrize("url", ["postgresql://u:not-a-secret@[/x", "postgresql://h:port/x?what=1"])
def test_an_invalid_url(tmp_path, url):
    """The line shows the form of a URL, and no secret part of the given one."""
    assert "postgresql://user@host:5432/database" in refusal(tmp_path, url)


def test_a_path_instead_of_a_url(tmp_path):
    """A path in the place of a URL."""
    with pytest.raises(UsageError, match="no URL of the form postgresql://"):
        Writer(StorageConfig(directory=tmp_path, store="/var/lib/db"))
    with pytest.raises(UsageError, match="--store"):
        Writer(StorageConfig(directory=tmp_path, formats=("postgres",)))


def test_without_the_driver(tmp_path, monkeypatch):
    """The remedy is an extra of nephila."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for use in (lambda: writer(tmp_path, "postgresql://h/d"), lambda: reader.count("postgresql://h/d")):
        with pytest.raises(UserError, match=re.escape(install_line("postgres"))):
            use()


@pytest.mark.parametrize(("what", "needed"), [("schema_version", "1"), ("key_version", "2")])
def test_a_database_of_another_version(tmp_path, store, what, needed):
    """A newer version is refused and not changed."""
    writer(tmp_path, store).close()
    change(store, f"UPDATE meta SET value = '77' WHERE name = '{what}'")
    line = refusal(tmp_path, store)
    assert f"{what} 77 (written by nephila" in line
    assert f"needs {needed}" in line
    assert {"name": what, "value": "77"} in table(store, "meta", "name")


def test_tables_of_another_program(tmp_path, store):
    """Tables with the same names are refused, others are ignored."""
    change(store, "CREATE TABLE bookmarks (url text)")
    change(store, "CREATE TABLE links (url text)")
    assert "tables of another program" in refusal(tmp_path, store)
    change(store, "DROP TABLE links")
    writer(tmp_path, store).close()


def test_a_database_that_is_not_utf8(tmp_path, postgres):
    """Half of the web would be refused row by row; the database is refused at once."""
    change(postgres.dsn(), "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
    assert "has encoding LATIN1" in refusal(tmp_path, postgres.dsn("latin"))


def test_a_user_who_may_not_make_tables(tmp_path, store):
    """The remedy is a grant."""
    change(store, "CREATE ROLE reader LOGIN PASSWORD 'not-a-secret'")
    try:
        change(store, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        assert "grant this user the right" in refusal(tmp_path, store.replace("nephila:", "reader:"))
    finally:
        change(store, "DROP ROLE reader")


def test_a_full_disk_of_the_server(tmp_path, store):
    """An error of the server: one line, nothing durable, no further batch."""
    full = writer(tmp_path, store)
    full.commit([record(1)], [None], [])
    change(
        store,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
        " 'could not extend file \"base/1/2\": No space left on device' USING ERRCODE = 'disk_full'; END $$",
    )
    change(store, "CREATE TRIGGER full_disk BEFORE INSERT ON fetches EXECUTE FUNCTION full_disk()")
    for _ in range(2):
        with pytest.raises(UserError, match=r"disk full on the server of postgresql://.*; free space there") as caught:
            full.commit([record(2)], [None], [])
        assert not isinstance(caught.value, StoreLost)
    full.close()
    assert len(table(store)) == 1


def test_steps_are_made_in_order_and_all_or_none(store):
    """A database gets the steps that it lacks; a failing step changes nothing."""
    with connect(store) as connection:
        migrate(connection, store, "test")
        bad = {**STEPS, 2: ("CREATE TABLE extra (x text)", "SELECT 1 / 0")}
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(connection, store, "test", bad)
        good = {**STEPS, 3: ("ALTER TABLE extra ADD y text",), 2: ("CREATE TABLE extra (x text)",)}
        migrate(connection, store, "test", good)
        migrate(connection, store, "test", good)
        assert connection.execute("SELECT x, y FROM extra").fetchall() == []
    assert {"name": "schema_version", "value": "3"} in table(store, "meta", "name")


# ---- rows


def test_what_postgresql_would_refuse_is_the_same_as_in_sqlite(tmp_path, store):
    """NUL, lone surrogates and invalid UTF-8 become U+FFFD in both ledgers."""
    names = ("title", "final_url", "content_type", "lang", "reason", "etag", "meta", "url")
    hostile = dict.fromkeys(names, "a\0b\ud800c")
    item = record(1, text=b"a\0b\xff\xed\xa0\x80", **hostile)
    found = []
    for place, url in ((tmp_path / "a", ""), (tmp_path / "b", store)):
        one = writer(place, url)
        one.commit([item, record(2)], [None, None], [])
        one.close()
        found.append(reader.row(url or place, JOB, key(1)))
    assert found[0] == found[1]
    assert found[0] is not None
    assert found[0]["title"] == "a\ufffdb\ufffdc"
    assert found[0]["text"].startswith("a\ufffdb\ufffd")


def test_links_are_replaced_per_fetch(tmp_path, store):
    """A refetched page has the links of the newest copy only."""

    def links(*urls: str) -> Outlinks:
        texts = [url.encode() for url in urls]
        ends = [sum(map(len, texts[: index + 1])) for index in range(len(texts))]
        packed = b"".join(end.to_bytes(4, "little") for end in ends)
        return Outlinks(urls=b"".join(texts), url_ends=packed, fingerprints=bytes(16 * len(urls)))

    one = writer(tmp_path, store)
    one.commit([record(1, links=links("http://a/", "http://b/")), record(2, links=links("http://c/"))], [None] * 2, [])
    one.commit([record(1, 2, links=links("http://d/")), record(1, 3, links=links("http://e/"))], [None] * 2, [])
    one.close()
    reported = {(row["from_key"], row["to_url"]) for row in table(store, "links", "to_url")}
    assert reported == {(key(1).hex(), "http://e/"), (key(2).hex(), "http://c/")}


def test_changes_are_reported_as_in_a_directory(tmp_path, store):
    """The table `changes` and the export of changes agree."""
    fetches = [
        [record(1), record(2), record(3)],
        [
            record(1, 2, text_hash=b"12345678"),
            record(2, 2),
            record(3, 2, outcome=Outcome.FAILED, status=404, sha256=b""),
        ],
    ]
    reported, exported = [], []
    for place, url in ((tmp_path / "a", ""), (tmp_path / "b", store)):
        one = writer(place, url)
        for batch in fetches:
            one.commit(batch, [None] * 3, [])
        one.close()
        with open_for_reading(url or place) as connection:
            reported.append(
                connection.execute(
                    "SELECT job, url, url_key, id, change, diff, title FROM changes ORDER BY seq", {}
                ).fetchall()
            )
        for since in ("", "2027-01-15T08:00:02Z"):
            export(url or place, "jsonl", tmp_path / "out", changes=True, since=since)
            exported.append(sorted((tmp_path / "out").read_text().splitlines()))
    assert [tuple(row) for row in reported[0]] == [tuple(row) for row in reported[1]]
    assert [row[4] for row in reported[0]].count("changed") == 1
    assert exported[:2] == exported[2:]
    assert exported[0]


def test_the_text_before_the_present_one_is_kept(tmp_path, store):
    """One earlier text of each changed page, also after several changes in one batch."""
    one = writer(tmp_path, store)
    for fetch_no, word in enumerate((b"one", b"two", b"two", b"three"), 1):
        fetches = [record(number, fetch_no, text=word, text_hash=word, sha256=word.ljust(32)) for number in (1, 2)]
        one.commit(fetches, [None] * len(fetches), [])
    last = [record(2, fetch_no, text=b"x", text_hash=bytes([fetch_no])) for fetch_no in (5, 6)]
    one.commit(last, [None, None], [])
    one.close()
    page = versions(store, JOB, key(1))
    assert page is not None
    assert page.before is not None
    assert (page.before.text, page.now.text) == ("two", "three")
    assert (page.before.fetch_no, page.now.fetch_no) == (3, 4)
    assert versions(store, None, key(2)) is not None
    assert versions(store, JOB, key(3)) is None


def test_a_young_table_is_analysed_after_its_first_thousand_rows(tmp_path, store):
    """Autovacuum comes a minute later; here it never comes."""
    writer = Writer(StorageConfig(directory=tmp_path, formats=("postgres",), store=store, fsync=False, writer="w"))
    writer.open()

    def analysed() -> float:
        with psycopg.connect(store) as connection:
            return connection.execute("SELECT reltuples FROM pg_class WHERE relname = 'pages'").fetchone()[0]  # type: ignore[index]

    for first in range(0, 1000, 250):
        assert analysed() <= 0
        writer.commit([record(number) for number in range(first, first + 250)], [None] * 250, [])
        writer.after_commit()
    assert analysed() == 1000
    writer.close()
