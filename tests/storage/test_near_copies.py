"""Near-copies: marked or skipped, against pages of the batch, of earlier batches and of before a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.native import simhash
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.writer import FlushResult, Writer

from tests.storage.storage_rig import page, record

WORDS = [f"word{number}" for number in range(400)]
MARK, SKIP = m.NearCopies.MARK, m.NearCopies.SKIP


def fetched(number: int, words: list[str], mode: m.NearCopies = MARK, fetch_no: int = 0, **fields: Any) -> m.Record:
    """The record of a page with these words."""
    text = " ".join(words).encode()
    found = simhash(text)
    return record(
        number,
        fetch_no or number,
        text=text,
        text_hash=text[-8:],
        simhash=found.to_bytes(8, "big") if found else b"",
        near_copies=mode,
        **fields,
    )


def one_word_changed(words: list[str]) -> list[str]:
    """Nearly the same text, within the distance."""
    for at in range(len(words)):
        changed = [*words[:at], "another", *words[at + 1 :]]
        away = (simhash(" ".join(words).encode()) ^ simhash(" ".join(changed).encode())).bit_count()
        if 1 <= away <= 3:
            return changed
    raise AssertionError("no such text")


class Store:
    """A writer on a directory, opened."""

    def __init__(self, directory: Path, **config: Any) -> None:
        self.source = config.get("store") or directory
        self.writer = Writer(StorageConfig(directory=directory, fsync=False, **config))
        self.writer.open()

    def commit(self, *records: m.Record) -> FlushResult:
        """Commit the records in one flush."""
        result = self.writer.commit(records, [None] * len(records), [])
        self.writer.after_commit()
        return result

    def rows(self, columns: str) -> list[tuple[Any, ...]]:
        """Columns of all rows, by fetch number."""
        with open_for_reading(self.source) as connection:
            return [tuple(row) for row in connection.execute(f"SELECT {columns} FROM pages ORDER BY fetch_no", {})]


def test_a_near_copy_names_the_first_page_and_its_distance(tmp_path: Path) -> None:
    store = Store(tmp_path)
    result = store.commit(fetched(1, WORDS), fetched(2, one_word_changed(WORDS)))
    (first, second) = store.rows("url, near_copy_of, near_copy_bits, simhash")
    assert first[1:3] == ("", 0)
    assert second[1] == first[0]
    assert second[2] == (int(first[3], 16) ^ int(second[3], 16)).bit_count() > 0
    assert result.near_copies == {"marked": 1}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    "database", ["sqlite", *(pytest.param(name, marks=pytest.mark.whole) for name in ("postgres", "postgres by day"))]
)
def test_a_near_copy_is_found_in_a_later_flush_and_after_a_restart(
    tmp_path: Path, request: pytest.FixtureRequest, database: str, restart: bool
) -> None:
    url = request.getfixturevalue("store") if database != "sqlite" else ""
    config: dict[str, Any] = {"store": url, "writer": "one", "partition_by": "day" if "day" in database else ""}
    store = Store(tmp_path, **config)
    store.commit(fetched(1, WORDS), fetched(2, WORDS[::-1]))
    if restart:
        store.writer.close()
        store = Store(tmp_path, **config)
    store.commit(fetched(3, one_word_changed(WORDS)), fetched(4, [word + "x" for word in WORDS]))
    copies = [near for (near,) in store.rows("near_copy_of")]
    assert copies == ["", "", record(1).url, ""]
    store.writer.close()


def test_a_copy_of_a_copy_names_the_page_that_is_no_copy(tmp_path: Path) -> None:
    store = Store(tmp_path)
    changed = one_word_changed(WORDS)
    store.commit(fetched(1, WORDS), fetched(2, changed))
    store.commit(fetched(3, changed))
    assert [near for (near,) in store.rows("near_copy_of")] == ["", record(1).url, record(1).url]


def test_a_skipped_near_copy_ends_as_dropped_without_its_content(tmp_path: Path) -> None:
    store = Store(tmp_path)
    result = store.commit(fetched(1, WORDS, SKIP), fetched(2, WORDS, SKIP, items=[b'{"a":1}']))
    assert result.outcomes == [m.Outcome.STORED, m.Outcome.DROPPED]
    assert result.new == {"stored": 1, "dropped": 1}
    assert result.near_copies == {"skipped": 1}
    rows = store.rows("outcome, reason, text = '', sha256 = '', near_copy_of")
    assert rows[1] == ("dropped", "near_copy", 1, 1, record(1).url)


@pytest.mark.whole
def test_the_raw_page_of_a_skipped_near_copy_is_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path, formats=("warc",))
    records = [fetched(1, WORDS, SKIP), fetched(2, WORDS, SKIP)]
    store.writer.commit(records, [page(1, 1), page(2, 2)], [])
    store.writer.close()
    assert store.writer.raw
    assert [name for (name,) in store.rows("url")] == [one.url for one in records]
    from warcio.archiveiterator import ArchiveIterator

    urls = []
    for path in tmp_path.glob("*.warc.gz"):
        with path.open("rb") as stream:
            found = [one.rec_headers.get_header("WARC-Target-URI") for one in ArchiveIterator(stream)]
            urls += [url for url in found if url]
    assert records[0].url in urls
    assert records[1].url not in urls


def test_a_stored_page_that_becomes_a_near_copy_is_marked_and_keeps_its_new_text(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.commit(fetched(1, WORDS, SKIP), fetched(2, WORDS[::-1], SKIP))
    store.commit(fetched(2, WORDS, SKIP, fetch_no=3))
    outcome, text, near = store.rows("outcome, text, near_copy_of")[1]
    assert (outcome, text, near) == ("stored", " ".join(WORDS), record(1).url)


def test_a_page_is_no_near_copy_of_itself_or_of_its_own_earlier_text(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.commit(fetched(1, WORDS))
    store.commit(fetched(1, one_word_changed(WORDS), fetch_no=2))
    assert store.rows("near_copy_of") == [("",)]


@pytest.mark.parametrize("flushes", [1, 2, 3])
@pytest.mark.parametrize("now", [WORDS[::-1], ["too", "short"]], ids=["another text", "a short text"])
def test_a_text_that_a_page_has_lost_has_no_near_copies(tmp_path: Path, flushes: int, now: list[str]) -> None:
    """Also where the page loses it, or gets it, in the same flush: else a page would be dropped for a text that is
    stored nowhere."""
    store = Store(tmp_path)
    records = [fetched(1, WORDS, SKIP), fetched(1, now, SKIP, fetch_no=2), fetched(3, WORDS, SKIP)]
    parts = {1: [records], 2: [records[:1], records[1:]], 3: [[one] for one in records]}
    for part in parts[flushes]:
        store.commit(*part)
    assert store.rows("near_copy_of, outcome") == [("", "stored"), ("", "stored")]


def test_pages_of_another_job_short_texts_and_jobs_that_store_are_not_compared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.commit(
        fetched(1, WORDS),
        fetched(2, WORDS, job="job-2"),
        fetched(3, ["too", "short"]),
        fetched(4, ["too", "short"]),
        fetched(5, WORDS, m.NearCopies.UNSPECIFIED),
    )
    assert {near for (near,) in store.rows("near_copy_of")} == {""}
    simhashes = {bool(found) for (found,) in store.rows("simhash")}
    assert simhashes == {True, False}
