"""The change feed read from both databases: positions, filters, and the order of several writers."""

from __future__ import annotations

import random
import threading

import pytest
from nephila.kernel.messages import Outcome
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_harvest.change_feed import UnknownChange, changes

from tests.storage.storage_rig import record


@pytest.fixture
def place(database_url, tmp_path):
    """A directory and the URL of its database, if that is on a server."""
    return tmp_path / "o", database_url


def open_writer(place, clock=None, name=""):
    """A writer of the place."""
    one = Writer(StorageConfig(directory=place[0], store=place[1], writer=name, fsync=False), clock or ManualClock())
    one.open()
    return one


def write(one, *records):
    """Commit in one flush."""
    one.commit(records, [None] * len(records), [])


def gone(number, fetch_no):
    """A 404."""
    return record(number, fetch_no, outcome=Outcome.FAILED, status=404, sha256=b"", text=b"", reason="http_404")


def versions(part):
    """(URL number, fetch, change) of each row."""
    return [(int(row.change.url.rpartition("/")[2][:-5]), row.change.fetch_no, row.change.change) for row in part.rows]


def test_a_reader_continues_by_number_id_and_time(place):
    """Each change once, in the order of commits, whichever way the position is given."""
    clock = ManualClock()
    one = open_writer(place, clock)
    source = place[1] or place[0]
    write(one, record(1), record(2), record(3))
    clock.advance(60)
    write(one, record(1, 2, text=b"another text", text_hash=b"12345678"), record(2, 2), gone(3, 2))
    clock.advance(60)
    write(one, gone(3, 3), record(4))
    one.close()
    everything = changes(source)
    assert versions(everything) == [
        (1, 1, "new"),
        (2, 1, "new"),
        (3, 1, "new"),
        (1, 2, "changed"),
        (3, 2, "gone"),
        (4, 1, "new"),
    ]
    assert [row.seq for row in everything.rows] == sorted({row.seq for row in everything.rows})
    assert everything.rows[3].change.diff == "-text of page 1\n-fetch 1\n+another text"
    for number, row in enumerate(everything.rows):
        for since in (str(row.seq), row.change.id):
            assert changes(source, since=since).rows == everything.rows[number + 1 :]
    since = everything.rows[3].change.at
    assert changes(source, since=since).rows == everything.rows[3:]
    assert changes(source, since="2090-01-01").rows == []
    first = changes(source, limit=2)
    assert changes(source, since=str(first.position)).rows == everything.rows[2:]
    assert changes(source, limit=2, newest=True).rows == everything.rows[-2:]
    assert versions(changes(source, change="gone")) == [(3, 2, "gone")]
    assert changes(source, jobs=["none"]).rows == []


@pytest.mark.parametrize("since", ["yesterday", "-1", "12x", "0" * 33, "2026-13-01"])
def test_a_wrong_position_is_one_line(place, since):
    """It names the forms that are accepted."""
    open_writer(place).close()
    with pytest.raises(UsageError, match="is no time, number or id of a change; say"):
        changes(place[1] or place[0], since=since)


def test_an_unknown_id_is_one_line(place):
    """It is not read as the beginning."""
    open_writer(place).close()
    with pytest.raises(UnknownChange, match="there is no change with the id " + "a" * 32):
        changes(place[1] or place[0], since="a" * 32)


def test_a_reader_misses_no_change_of_concurrent_writers(tmp_path, store):
    """Numbers become visible in their order: what is read behind the last number is what was committed after it."""
    failed: list[BaseException] = []
    over = threading.Event()
    seen: list[str] = []

    def write_all(seed: int) -> None:
        try:
            one = open_writer((tmp_path / str(seed), store), name=str(seed))
            numbers = list(range(seed * 100, seed * 100 + 60))
            random.Random(seed).shuffle(numbers)
            for number in numbers:
                write(one, record(number))
            one.close()
        except BaseException as error:
            failed.append(error)

    def follow() -> None:
        position = "0"
        while True:
            last = over.is_set()
            part = changes(store, since=position)
            seen.extend(row.change.id for row in part.rows)
            position = str(part.position)
            if last and not part.rows:
                return

    open_writer((tmp_path / "first", store)).close()
    threads = [threading.Thread(target=write_all, args=(seed,)) for seed in (1, 2, 3)]
    reader = threading.Thread(target=follow)
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join(60)
    over.set()
    reader.join(60)
    assert not failed
    assert len(seen) == len(set(seen)) == 180
