"""Queries on the database."""

from __future__ import annotations

import sqlite3

import pytest
from nephila.kernel.messages import Outcome
from nephila.kernel.runtime.errors import UserError
from nephila.storage.read import reader

from tests.storage.storage_rig import JOB, key, record, running


async def make(directory, **config):
    """Three stored pages on two hosts, a denied one, a failed one of another job."""
    async with running(directory, **config) as rig:
        for number, host, prefix in ((1, "a.test", b"aaaa"), (2, "a.test", b"aaaa"), (3, "b.test:8080", b"bbbb")):
            rig.send(record(number, url=f"http://{host}/{number}", url_key=prefix + key(number)[4:]))
        denied = {"outcome": Outcome.DENIED, "reason": "robots"}
        rig.send(record(4, url="http://a.test/4", url_key=b"aaaa" + key(4)[4:], **denied))
        rig.send(record(5, url="http://c.test/", job="other", outcome=Outcome.FAILED, reason="timeout"))
        await rig.storage.flush()


@pytest.fixture
async def crawl(tmp_path):
    """A crawl in a directory."""
    await make(tmp_path)
    return tmp_path


@pytest.fixture
async def source(database_url, tmp_path):
    """The same crawl in a directory and on a server."""
    await make(tmp_path, store=database_url)
    return database_url or tmp_path


def test_a_summary_counts_outcomes_reasons_and_hosts(source):
    """Of all jobs, and of one job."""
    found = reader.summary(source)
    assert found.outcomes == {"stored": 3, "denied": 1, "failed": 1}
    assert found.reasons == {"stored": {"": 3}, "denied": {"robots": 1}, "failed": {"timeout": 1}}
    assert [(host.host, host.total) for host in found.hosts] == [("a.test", 3), ("b.test:8080", 1), ("c.test", 1)]
    assert found.hosts[0].outcomes == {"stored": 2, "denied": 1}
    assert found.bytes == 3006
    one = reader.summary(source, JOB, top=1)
    assert one.outcomes == {"stored": 3, "denied": 1}
    assert (len(one.hosts), one.hosts_total) == (1, 2)


def test_counts(source, tmp_path):
    """By outcome, by job, of all."""
    assert reader.count(source) == 5
    assert reader.count(source, "stored") == 3
    assert reader.count(source, "stored", "other") == 0
    assert reader.holds(source, "other")
    assert not reader.holds(source, "nobody")
    assert [path.name for path in tmp_path.iterdir() if source == tmp_path or path.name == "nephila.db"] == [
        "nephila.db"
    ] * (source == tmp_path), "a reader tidies up behind itself"


def test_one_row_and_its_history(source):
    """By job and url_key, or by url_key alone; None if there is none."""
    found = reader.row(source, "other", key(5))
    assert found is not None
    assert found["reason"] == "timeout"
    assert reader.row(source, None, key(5)) == found
    assert reader.row(source, JOB, key(5)) is None
    assert [fetch["reason"] for fetch in reader.history(source, "other", key(5))] == ["timeout"]


def test_nothing_to_read_is_one_line(tmp_path):
    """No directory, no database, an empty one, one of another version."""
    for directory in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="no database at"):
            reader.summary(directory)
    (tmp_path / "nephila.db").touch()
    with pytest.raises(UserError, match="is empty"):
        reader.count(tmp_path)


def test_another_version_is_refused(crawl):
    """Reading an unknown schema would give wrong results."""
    connection = sqlite3.connect(crawl / "nephila.db")
    connection.execute("UPDATE meta SET value = '9' WHERE name = 'schema_version'")
    connection.commit()
    connection.close()
    with pytest.raises(UserError, match="schema_version 9"):
        reader.count(crawl)


def test_a_log_left_by_a_kill_is_read(crawl, tmp_path):
    """Rows that are only in the write-ahead log are visible."""
    connection = sqlite3.connect(crawl / "nephila.db")
    connection.execute("UPDATE pages SET outcome = 'dropped' WHERE outcome = 'denied'")
    connection.commit()
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (crawl / "nephila.db", crawl / "nephila.db-wal"):
        (copy / path.name).write_bytes(path.read_bytes())
    connection.close()
    assert reader.count(copy, "dropped") == 1
