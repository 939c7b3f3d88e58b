"""The content of the tables."""

from __future__ import annotations

import struct

from nephila.kernel import messages as m

from tests.storage.storage_rig import JOB, key, record, rows, running


def links(*targets):
    """Packed links."""
    urls = [f"http://x/{n}".encode() for n in targets]
    anchors = [f"to {n}".encode() for n in targets]

    def ends(parts):
        return struct.pack(f"<{len(parts)}I", *(sum(map(len, parts[: n + 1])) for n in range(len(parts))))

    return m.Outlinks(
        fingerprints=b"".join(key(n) for n in targets),
        urls=b"".join(urls),
        url_ends=ends(urls),
        anchors=b"".join(anchors),
        anchor_ends=ends(anchors),
    )


async def test_every_field_of_a_record_has_its_column(tmp_path):
    """Names and types of the columns."""
    async with running(tmp_path) as rig:
        rig.send(record(5, attempt=2, final_url="http://f/", rule="r", rule_version=3, last_modified="Mon"))
        await rig.storage.flush()
    assert rows(tmp_path) == [
        {
            "url": "http://h2.test/p/5.html",
            "url_key": key(5).hex(),
            "job": JOB,
            "outcome": "stored",
            "reason": "",
            "status": 200,
            "final_url": "http://f/",
            "depth": 2,
            "content_type": "text/html",
            "bytes": 1005,
            "sha256": "ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d",
            "title": "Page 5",
            "lang": "en",
            "fetched_at": "2027-01-15T08:00:05.250Z",
            "fetch_id": f"{key(5).hex()}-1-2",
            "fetch_no": 1,
            "rule": "r",
            "rule_version": 3,
            "etag": '"5"',
            "last_modified": "Mon",
            "change": "new",
            "changed_at": "2027-01-15T08:00:05.250Z",
            "first_at": "2027-01-15T08:00:05.250Z",
            "text_hash": "ef2d127de37b942b",
            "simhash": "",
            "near_copy_of": "",
            "near_copy_bits": 0,
            "meta": '{"description":"d"}',
            "text": "text of page 5\nfetch 1",
            "structure": b"",
        }
    ]


async def test_every_fetch_has_a_row_of_history(tmp_path):
    """Two fetches and a 304 give three rows; a redelivery gives none."""
    async with running(tmp_path) as rig:
        rig.send(record(1))
        await rig.storage.flush()
        rig.send(record(1, 2), record(1, attempt=2), record(1, 3, attempt=4, not_modified=True, status=304))
        await rig.storage.flush()
    history = rows(tmp_path, "fetches", "id")
    assert [(row["fetch_no"], row["attempt"], row["status"]) for row in history] == [
        (1, 1, 200),
        (2, 1, 200),
        (3, 4, 304),
    ]


async def test_two_jobs_have_a_row_each_for_one_url(tmp_path):
    """The key is (job, url_key)."""
    async with running(tmp_path) as rig:
        rig.send(record(1), record(1, job="other"))
        await rig.storage.flush()
    assert [row["job"] for row in rows(tmp_path, order="job")] == [JOB, "other"]


async def test_links_are_replaced_with_each_fetch(tmp_path):
    """Only the links of the last fetch are stored."""
    async with running(tmp_path) as rig:
        rig.send(record(1, links=links(7, 8, 9)), record(2, links=links()))
        await rig.storage.flush()
        rig.send(record(1, 2, links=links(8)), record(1, 1, links=links(1)))
        await rig.storage.flush()
    assert rows(tmp_path, "links", "to_url") == [
        {"job": JOB, "from_key": key(1).hex(), "to_url": "http://x/8", "to_key": key(8).hex(), "anchor": "to 8"}
    ]


async def test_a_record_no_row_can_be_made_of_ends_as_a_dead_letter(tmp_path):
    """Its URL ends as failed(dead_letter); the other records of the flush are written."""
    from nephila.kernel.topics import DEAD

    async with running(tmp_path) as rig:
        letters = []
        rig.bus.subscribe(DEAD, "test", lambda delivery: letters.append(delivery.message), credits=10)
        rig.send(record(1), record(2, title=None), record(3))
        await rig.storage.flush()
        assert [receipt[4] for receipt in rig.receipts] == [m.Outcome.STORED, m.Outcome.FAILED, m.Outcome.STORED]
        assert letters[0].url_key == key(2)
    found = {row["url_key"]: (row["outcome"], row["reason"]) for row in rows(tmp_path)}
    assert found[key(2).hex()] == ("failed", "dead_letter")
    assert len(found) == 3


async def test_times_no_calendar_holds_are_left_empty(tmp_path):
    """An invalid time is stored as empty; the row is stored."""
    async with running(tmp_path) as rig:
        rig.send(*(record(n, fetched_at=t) for n, t in enumerate([0.0, float("nan"), float("inf"), 1e300])))
        await rig.storage.flush()
    assert [row["fetched_at"] for row in rows(tmp_path)] == [""] * 4
