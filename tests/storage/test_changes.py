"""The change of each fetch: in the history, in receipts, in exports."""

from __future__ import annotations

import hashlib
import json

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import RECEIPTS
from nephila.storage.changes import change_of
from nephila.storage.read.export import export
from nephila.storage.text_diff import text_diff

from tests.storage.storage_rig import JOB, Rig, key, lines, record, rows, running

HOUR_S = 3600.0
NOON = 1_800_014_400.0


def fetch(number, fetch_no, text, **fields):
    """A fetch one hour after the previous one, which brought this text."""
    body = {"text": text, "text_hash": hashlib.sha256(text).digest()[:8], "sha256": hashlib.sha256(text).digest()}
    at = {"fetched_at": NOON + fetch_no * HOUR_S}
    return record(number, fetch_no, **{**body, **at, **fields})


def confirmed(number, fetch_no):
    """A 304."""
    return fetch(number, fetch_no, b"", title="", text_hash=b"", sha256=b"", not_modified=True, status=304)


def missing(number, fetch_no, status=404):
    """An answer without a page."""
    reason = f"http_{status}"
    return fetch(
        number, fetch_no, b"", title="", text_hash=b"", sha256=b"", outcome=m.Outcome.FAILED, reason=reason,
        status=status,
    )  # fmt: skip


def redirected(number, fetch_no, target="http://b.test/there"):
    """An answer that leads elsewhere."""
    return fetch(
        number, fetch_no, b"", title="", text_hash=b"", sha256=b"", outcome=m.Outcome.DROPPED, reason="redirect",
        status=301, final_url=target,
    )  # fmt: skip


LIFE = [
    (fetch(1, 1, b"one"), "new"),
    (fetch(1, 2, b"one", title="another title"), "same"),
    (confirmed(1, 3), "same"),
    (fetch(1, 4, b"two"), "changed"),
    (missing(1, 5, 503), ""),
    (missing(1, 6), "gone"),
    (missing(1, 7, 410), "gone"),
    (fetch(1, 8, b"two"), "same"),
    (fetch(1, 9, b"one"), "changed"),
]
"""The fetches of a page, and the change of each."""


@pytest.mark.parametrize("flushes", [1, len(LIFE)], ids=["one flush", "a flush each"])
async def test_every_fetch_has_its_change(tmp_path, flushes):
    """Compared with the stored copy, whatever failed since."""
    async with running(tmp_path, formats=("sqlite", "jsonl")) as rig:
        for item, _ in LIFE:
            rig.send(item)
            if flushes > 1:
                await rig.storage.flush()
        await rig.storage.flush()
        assert rig.storage.outcomes == {"stored": 1, "failed": 0}
    history = rows(tmp_path, "fetches", "id")
    assert sorted((row["fetch_no"], row["change"]) for row in history) == [
        (number, change) for number, (_, change) in enumerate(LIFE, 1)
    ]
    assert all(bool(row["old_hash"]) == (row["change"] == "changed") for row in history)
    assert sorted((line["fetch_no"], line["change"]) for line in lines(tmp_path)) == sorted(
        (row["fetch_no"], row["change"]) for row in history
    )
    (row,) = rows(tmp_path)
    assert (row["first_at"], row["changed_at"]) == ("2027-01-15T13:00:00.000Z", "2027-01-15T21:00:00.000Z")


async def test_the_change_feed_has_each_change_once(tmp_path):
    """With the hashes before and after; a page that is gone is gone once, and returns with its text."""
    async with running(tmp_path) as rig:
        rig.send(*(item for item, _ in LIFE), record(2, outcome=m.Outcome.DENIED, sha256=b""))
        await rig.storage.flush()
    one, two = (hashlib.sha256(text).hexdigest()[:16] for text in (b"one", b"two"))
    found = rows(tmp_path, "changes", "fetch_no")
    assert [(row["fetch_no"], row["change"], row["old_hash"], row["text_hash"]) for row in found] == [
        (1, "new", "", one),
        (4, "changed", one, two),
        (6, "gone", "", ""),
        (8, "returned", "", two),
        (9, "changed", two, one),
    ]
    assert [row["diff"] for row in found] == ["", "-one\n+two", "", "", "-two\n+one"]
    assert found[2]["title"] == "Page 1"
    assert {(row["job"], row["url"], row["url_key"]) for row in found} == {(JOB, record(1).url, key(1).hex())}


MOVES = [
    (fetch(1, 1, b"one"), "new"),
    (redirected(1, 2), "moved"),
    (redirected(1, 3), "moved"),
    (missing(1, 4, 503), ""),
    (fetch(1, 5, b"one"), "same"),
    (redirected(1, 6), "moved"),
    (missing(1, 7), "gone"),
    (fetch(1, 8, b"two"), "changed"),
]
"""The fetches of a page that becomes a redirect, and the change of each."""


@pytest.mark.parametrize("flushes", [1, len(MOVES)], ids=["one flush", "a flush each"])
async def test_a_page_that_becomes_a_redirect_has_moved(tmp_path, flushes):
    """Once, with the target and its last title; it returns with its text, or is changed. A page that moved and is gone
    later was reported already."""
    async with running(tmp_path) as rig:
        rig.send(redirected(2, 1))
        for item, _ in MOVES:
            rig.send(item)
            if flushes > 1:
                await rig.storage.flush()
        await rig.storage.flush()
    history = {
        row["fetch_no"]: row["change"] for row in rows(tmp_path, "fetches", "id") if row["url_key"] == key(1).hex()
    }
    assert history == {number: change for number, (_, change) in enumerate(MOVES, 1)}
    found = rows(tmp_path, "changes", "fetch_no")
    assert [(row["fetch_no"], row["change"], row["title"], row["diff"]) for row in found] == [
        (1, "new", "Page 1", ""),
        (2, "moved", "Page 1", "+http://b.test/there"),
        (5, "returned", "Page 1", ""),
        (6, "moved", "Page 1", "+http://b.test/there"),
        (8, "changed", "Page 1", "-one\n+two"),
    ]


async def test_a_page_is_gone_when_it_was_missing_often_enough(tmp_path):
    """The scheduler counts: until then a 404 is no change, and the page that comes back has not returned."""
    async with running(tmp_path) as rig:
        rig.send(
            fetch(1, 1, b"one"), _pending(missing(1, 2)), fetch(1, 3, b"one"), _pending(missing(1, 4)), missing(1, 5)
        )
        await rig.storage.flush()
    assert [(row["fetch_no"], row["change"]) for row in rows(tmp_path, "changes", "fetch_no")] == [
        (1, "new"),
        (5, "gone"),
    ]


def _pending(item):
    item.gone_pending = True
    return item


async def test_a_receipt_contains_hash_and_validators(tmp_path):
    """The scheduler uses it for the next fetch; for a body without text it is the hash of the body."""
    rig = Rig(tmp_path)
    receipts = []
    rig.bus.subscribe(RECEIPTS, "test", lambda delivery: receipts.extend(delivery.message.receipts), credits=9)
    await rig.storage.start()
    rig.send(fetch(1, 1, b"one", last_modified="Mon"), fetch(2, 1, b"", sha256=b"s" * 32, text_hash=b""), missing(3, 1))
    await rig.storage.flush()
    await rig.storage.close()
    first, binary, lost = receipts
    assert (first.text_hash, first.etag, first.last_modified) == (hashlib.sha256(b"one").digest()[:8], '"1"', "Mon")
    assert (first.size_bytes, first.status, first.not_modified) == (1001, 200, False)
    assert binary.text_hash == b"s" * 8
    assert (lost.outcome, lost.status, lost.text_hash) == (m.Outcome.FAILED, 404, b"")


def test_a_first_answer_without_a_page_changes_nothing():
    """A 404 of a page that was never stored is not gone, and a 304 without a copy is no change."""
    assert [change_of(item, None) for item in (missing(1, 1), confirmed(1, 1))] == ["", ""]


@pytest.fixture
async def changing(tmp_path):
    """Six pages: unchanged, changed, new later, gone, back after a failure, never stored."""
    async with running(tmp_path / "crawl") as rig:
        rig.send(*(fetch(n, 1, b"old") for n in (1, 2, 4, 5)), missing(6, 1))
        await rig.storage.flush()
        rig.send(fetch(1, 5, b"old"), fetch(2, 5, b"text"), fetch(3, 5, b"text"), missing(4, 5), missing(5, 5, 503))
        await rig.storage.flush()
    return tmp_path / "crawl"


def exported(crawl, target, **options):
    """(page, change, text) of each line, in order of the pages."""
    export(crawl, "jsonl", target, **options)
    found = [json.loads(line) for line in target.read_text().splitlines()]
    return sorted((row["url"].rpartition("/")[2], row["change"], row["text"]) for row in found)


def test_only_changes_are_exported(changing, tmp_path):
    """Since an instant: only new changes; without one: all first texts."""
    target = tmp_path / "o.jsonl"
    later = [("2.html", "changed", "text"), ("3.html", "new", "text")]
    assert exported(changing, target, changes=True, since="2027-01-15T15:00:00Z") == later
    assert exported(changing, target, changes=True, since="2027-01-15T16:30:00+01:30") == later
    first = [("1.html", "new", "old"), ("5.html", "new", "old")]
    assert exported(changing, target, changes=True, since="2027-01-15") == sorted(
        [*first, ("2.html", "new", "text"), ("3.html", "new", "text")]
    )
    assert exported(changing, target, changes=True) == sorted([*first, *later])
    assert exported(changing, target, changes=True, since="2028-01-01") == []
    with pytest.raises(UsageError, match="'yesterday' is no date or time"):
        export(changing, "jsonl", target, changes=True, since="yesterday")


def test_a_page_that_could_not_be_had_is_exported_a_gone_one_is_not(changing, tmp_path):
    """One 503 does not remove a page from the result of a monitoring crawl."""
    assert [page for page, _, _ in exported(changing, tmp_path / "o")] == ["1.html", "2.html", "3.html", "5.html"]
    assert export(changing, "csv", tmp_path / "o", all_outcomes=True) == 6


def test_a_diff_is_bounded_and_linear():
    """Two hostile texts of 2 MB: 4,000 characters and a last line with the number of the others."""
    old = b"\n".join(b"%d a" % (n % 7) for n in range(400_000))
    new = b"\n".join(b"%d b" % n for n in range(200_000)) + b"\n" + b"x" * 1_000_000
    diff = text_diff(old, new)
    assert len(diff) < 4100
    assert diff.startswith("-0 a\n-1 a")
    assert diff.splitlines()[-1].endswith("more lines differ")
    assert text_diff(b"a\nb\n\nc", b"a\nB\nc") == "-b\n+B"
