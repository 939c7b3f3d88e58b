"""Where a flush ends makes no difference: the same records give the same tables and lines in one flush and in many."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.extensions import is_installed
from nephila.storage.config import StorageConfig
from nephila.storage.rows import iso
from nephila.storage.writer import Writer

from tests.storage.storage_rig import key, lines, record, rows
from tests.storage.structured import structured

URLS = range(4)
SIMHASHES = {text: number.to_bytes(8, "big") for text, number in ((b"one", 8), (b"two\nlines", 9), (b"three", 1 << 63))}
"""Two of the texts are near-copies."""
TEXTS = ("markdown", "chunks") if is_installed("row-markdown") else ()
TABLES = {
    "pages": "url",
    "fetches": "url_key, fetch_no, attempt",
    "changes": "url_key, fetch_no",
    "items": "url_key, ordinal",
    "links": "from_key, to_url",
}


def links(*urls: bytes) -> m.Outlinks:
    """A packed list of links."""
    ends = [sum(map(len, urls[: number + 1])) for number in range(len(urls))]
    return m.Outlinks(
        fingerprints=b"".join(hashlib.md5(url).digest() for url in urls),
        urls=b"".join(urls),
        url_ends=b"".join(end.to_bytes(4, "little") for end in ends),
    )


def life(seed: int, mode: m.NearCopies, count: int = 40) -> list[m.Record]:
    """Fetches of a few pages as a crawl stores them: texts, 304s, errors, redirects, deliveries out of order."""
    chance = random.Random(seed)
    found: list[m.Record] = []
    fetches: Counter[int] = Counter()
    for _ in range(count):
        number = chance.choice(URLS)
        fetches[number] += 1
        at = {"fetched_at": 1_800_000_000.0 + 3600 * len(found)}
        text = chance.choice([b"one", b"two\nlines", b"three"])
        digest = hashlib.sha256(text).digest()
        body = {"text": text, "text_hash": digest[:8], "sha256": digest, "simhash": SIMHASHES[text]}
        none = {"text": b"", "text_hash": b"", "sha256": b"", "title": "", "meta": "", "etag": ""}
        made = [{"rule": "shop", "rule_version": 3, "items": [b'{"n":%d}' % n]} for n in range(2)]
        kinds: list[dict[str, Any]] = [
            {**body, "simhash": b""},  # too short a text
            {**body, "structure": structured(f"<p>{text.decode()}")["structure"]},
            {**body, "links": links(b"http://a.test/", text[:3])},
            {**body, **made[0]},
            {**body, **made[1]},
            {**none, "not_modified": True, "status": 304},
            {**none, "outcome": m.Outcome.FAILED, "reason": "http_404", "status": 404},
            {**none, "outcome": m.Outcome.FAILED, "reason": "http_404", "status": 404, "gone_pending": True},
            {**none, "outcome": m.Outcome.FAILED, "reason": "timeout", "status": 0},
            {**none, "outcome": m.Outcome.DROPPED, "reason": "redirect", "status": 301, "final_url": "http://b.test/"},
            {**none, "outcome": m.Outcome.DENIED, "reason": "robots", "status": 0},
            {"text": 7, "title": None},  # no row can be made of it
        ]
        found.append(record(number, fetches[number], **{**at, "near_copies": mode, **chance.choice(kinds)}))
        if chance.random() < 0.2:  # the bus delivers an earlier one again, or another attempt of it
            again = copy.copy(chance.choice(found))
            again.attempt = chance.choice([again.attempt, again.attempt + 1])
            found.append(again)
    return found


def stored(directory: Path, records: Sequence[m.Record], sizes: Sequence[int]) -> dict[str, Any]:
    """All tables and lines, and the counters, after flushes of these sizes."""
    clock = ManualClock()
    writer = Writer(StorageConfig(directory=directory, formats=("sqlite", "jsonl", *TEXTS), fsync=False), clock)
    writer.open()
    counters: Counter[str] = Counter()
    outcomes: list[m.Outcome] = []
    feed: list[Any] = []
    start = 0
    for size in sizes:
        part = records[start : start + size]
        result = writer.commit(part, [None] * len(part), [])
        writer.after_commit()
        outcomes += result.outcomes
        counters.update(result.new)
        feed += result.changes
        start += size
    assert start >= len(records)
    writer.close()
    tables = {name: rows(directory, name, order) for name, order in TABLES.items()}
    for row in (*tables["fetches"], *tables["changes"]):
        row.pop("id", None)
        row.pop("seq", None)
    assert {row["at"] for row in tables["changes"]} <= {iso(clock.now())}
    return {
        **tables,
        "files": {path.name: path.read_bytes() for path in (directory / "markdown").rglob("*.md")},
        "chunks": [sorted(path.read_bytes().splitlines()) for path in directory.glob("chunks.jsonl")],
        "lines": sorted(map(json.dumps, newest_items(lines(directory)))),
        "counters": +counters,
        "outcomes": outcomes,
        "feed": sorted(feed),
    }


def newest_items(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines, with items in the newest copy of each page alone: a flush has the items that hold at its end."""
    newest = {line["url_key"]: line["fetch_id"] for line in found if line["sha256"]}
    return [line if line["fetch_id"] == newest.get(line["url_key"]) else {**line, "items": []} for line in found]


@pytest.mark.parametrize("mode", m.NearCopies)
@pytest.mark.parametrize("seed", range(4))
def test_one_flush_and_many_give_the_same_state(tmp_path: Path, seed: int, mode: m.NearCopies) -> None:
    """Every row, line, change and counter; each fetch is in the history once."""
    records = life(seed, mode)
    chance = random.Random(seed)
    one = stored(tmp_path / "one", records, [len(records)])
    each = stored(tmp_path / "each", records, [1] * len(records))
    some = stored(tmp_path / "some", records, [chance.randrange(1, 9) for _ in records])
    for name, value in one.items():
        assert value == each[name], f"{name}: one flush and a flush for each record"
        assert value == some[name], f"{name}: one flush and several"
    fetched = [(row["url_key"], row["fetch_no"]) for row in one["fetches"] if row["reason"] != "dead_letter"]
    assert len(fetched) == len(set(fetched))
    assert one["counters"] == Counter(row["outcome"] for row in one["pages"])
    assert {row["url_key"] for row in one["pages"]} <= {key(number).hex() for number in URLS}


@pytest.mark.parametrize("pages", [[], [None], [None, None, None]])
def test_records_and_their_pages_are_of_one_number(tmp_path: Path, pages: list[None]) -> None:
    """No record is left out where a page is missing: nothing of the flush is stored."""
    writer = Writer(StorageConfig(directory=tmp_path, fsync=False), ManualClock())
    writer.open()
    with pytest.raises(ValueError, match=r"zip\(\)"):
        writer.commit([record(1), record(2)], pages, [])
    writer.close()
    assert rows(tmp_path) == []
