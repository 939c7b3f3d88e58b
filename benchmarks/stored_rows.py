"""A nephila.db of many generated rows, for benches of searches and screens: texts by Zipf's law in five languages."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from nephila.storage.ledgers.schema import DATABASE, create
from nephila.storage.ledgers.sqlite import PAGE_BYTES
from nephila.storage.rows import STORED_COLUMNS

SPACELESS: Final = {
    "zh": [chr(code) for code in range(0x4E00, 0x4E00 + 2_500)],
    "ja": [chr(code) for code in (*range(0x3041, 0x3094), *range(0x30A1, 0x30F5), *range(0x5000, 0x5000 + 500))],
    "th": [chr(code) for code in (*range(0x0E01, 0x0E31), *range(0x0E40, 0x0E45), 0x0E34, 0x0E35, 0x0E38, 0x0E48)],
}
"""Characters of texts without spaces."""
COMMON: Final = "common"
"""A word of nine pages in ten."""


def make(directory: Path, rows: int, hosts: int, *, seed: int = 1, words: int = 250) -> None:
    """Write the rows: one job, one fetch each; every tenth failed, every twentieth has an item and ten links."""
    directory.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(directory / DATABASE, isolation_level=None)
    for pragma in (f"page_size = {PAGE_BYTES}", "journal_mode = WAL", "synchronous = OFF", "cache_size = -500000"):
        connection.execute(f"PRAGMA {pragma}")
    create(connection, "bench")
    connection.execute("BEGIN")
    marks = ", ".join("?" * len(STORED_COLUMNS))
    for batch in _batches(rows, hosts, random.Random(seed), words):
        connection.executemany(
            f"INSERT INTO pages ({', '.join(STORED_COLUMNS)}) VALUES ({marks})", [one[0] for one in batch]
        )
        connection.executemany(
            "INSERT INTO fetches (job, url_key, fetch_no, attempt, outcome, reason, status, fetched_at, bytes, sha256,"
            " change, text_hash, old_hash) VALUES (?, ?, 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, '')",
            [one[1] for one in batch],
        )
        connection.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?)", [link for one in batch for link in one[2]])
        connection.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", [item for one in batch for item in one[3]]
        )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def url_of(number: int, hosts: int) -> str:
    """The URL of a row."""
    return f"https://h{number % hosts}.example.test/section{number % 7}/page-{number}.html"


def _batches(rows: int, hosts: int, chance: random.Random, words: int) -> Iterator[list[tuple[Any, ...]]]:
    vocabulary = [_word(number) for number in range(200_000)]
    weights = [*accumulate(1 / (rank + 10) for rank in range(len(vocabulary)))]
    sentences = [" ".join(chance.choices(vocabulary, cum_weights=weights, k=12)) + "." for _ in range(20_000)]
    foreign = {
        lang: ["".join(chance.choices(letters, k=30)) for _ in range(5_000)] for lang, letters in SPACELESS.items()
    }
    for start in range(0, rows, 1000):
        yield [
            _row(number, hosts, chance, words, sentences, foreign) for number in range(start, min(start + 1000, rows))
        ]


def _word(number: int) -> str:
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    found = ""
    number += 30
    while number:
        number, rest = divmod(number, 26)
        found += letters[rest]
    return found


def _row(
    number: int, hosts: int, chance: random.Random, words: int, sentences: Sequence[str], foreign: dict[str, list[str]]
) -> tuple[Any, ...]:
    url = url_of(number, hosts)
    host = url.split("/")[2]
    key = hashlib.md5(host.encode()).hexdigest()[:8] + hashlib.md5(url.encode()).hexdigest()[:24]
    stored = number % 10 != 0
    lang = ("zh", "ja", "th")[number % 3] if number % 5 == 1 else "en"
    if lang == "en":
        text = "\n".join(chance.choices(sentences, k=words // 12)) + f"\n{COMMON} unique{number}"
    else:
        text = "。".join(chance.choices(foreign[lang], k=words // 12)) + f" unique{number}"
    title = chance.choice(sentences)[:60] if lang == "en" else chance.choice(foreign[lang])
    at = f"2026-{number % 12 + 1:02d}-{number % 28 + 1:02d}T10:00:00.000Z"
    sha = hashlib.sha256(b"%d" % number).hexdigest() if stored else ""
    values = {
        **dict.fromkeys(STORED_COLUMNS, ""),
        "url": url,
        "url_key": key,
        "job": "bench",
        "outcome": "stored" if stored else "failed",
        "reason": "" if stored else "http_404",
        "status": 200 if stored else 404,
        "final_url": url,
        "depth": 3,
        "content_type": "text/html",
        "bytes": 20_000,
        "sha256": sha,
        "lang": lang if stored else "",
        "title": title if stored else "",
        "fetched_at": at,
        "fetch_id": f"{key}-1-1",
        "fetch_no": 1,
        "rule_version": 0,
        "near_copy_bits": 0,
        "structure": b"",
        "meta": "{}",
        "text": text if stored else "",
        "change": "new" if stored else "",
        "changed_at": at if stored else "",
        "first_at": at if stored else "",
        "text_hash": sha[:16],
    }
    fetch = (
        "bench",
        key,
        values["outcome"],
        values["reason"],
        values["status"],
        at,
        20_000,
        sha,
        values["change"],
        sha[:16],
    )
    links, items = [], []
    if number % 20 == 1:
        links = [("bench", key, url_of(number + 1 + at_, hosts), "", f"link {at_}") for at_ in range(10)]
        items = [("bench", key, "product", 1, 0, f'{{"name":"Thing {number}","price":{number % 1000}.5,"stock":null}}')]
    return tuple(values[name] for name in STORED_COLUMNS), fetch, links, items
