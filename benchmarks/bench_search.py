"""Searches over generated rows: index, searches by kind, pairs of characters beside FTS5's trigrams.

    PYTHONPATH=services:. python -m benchmarks.bench_search [--rows 1000000] [--directory DIR]

Milliseconds of the fastest of three runs, as on an idle machine, and of the first one; CPU seconds of the index.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from pathlib import Path

from nephila.storage.ledgers.schema import DATABASE
from nephila_stores.search.search import make_index, search
from nephila_stores.search.sqlite_index import SEARCH_DATABASE

from benchmarks.stored_rows import COMMON, SPACELESS, make


def kinds(rows: int) -> dict[str, str]:
    """Name → search."""
    word = "".join(SPACELESS["zh"][100:102])
    return {
        "one page": f"unique{rows // 2 + 2}",
        "a word of nine in ten": COMMON,
        "a word of one in ten": "xhto",
        "two words": f"{COMMON} hto",
        "rare and common": f"{COMMON} unique{rows // 2 + 2}",
        "a phrase that is frequent": f'"{COMMON} unique*"',
        "a phrase that is nowhere": f'"{COMMON} {COMMON}"',
        "without a word": f"{COMMON} -hto",
        "a beginning": "unique12*",
        "two Chinese characters": word,
        "one Chinese character": word[0],
        "four Chinese characters": "".join(SPACELESS["zh"][100:104]),
        "a host": f"{COMMON} host:h77.example.test",
        "three months": f"{COMMON} since:2026-03 until:2026-05",
        "a word of the title": "title:xhto",
        "a beginning of a million words": "unique*",
        "nothing": "zzzznowhere",
    }


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--trigrams", type=int, default=20_000, help="pages of the comparison")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = given.directory or Path(temporary)
        if not (directory / DATABASE).exists():
            make(directory, given.rows, max(given.rows // 10, 1))
        _index(directory)
        _searches(directory, given.rows)
        _trigrams(directory, given.trigrams)


def _index(directory: Path) -> None:
    began = time.process_time()
    steps = sum(1 for _ in make_index(directory))
    rows = (directory / DATABASE).stat().st_size / 1e6
    index = (directory / SEARCH_DATABASE).stat().st_size / 1e6
    used = time.process_time() - began
    print(f"index: {steps:,} steps, {used:.0f} CPU s, {index:,.0f} MB beside {rows:,.0f} MB of rows")


def _searches(directory: Path, rows: int) -> None:
    print(f"{'search':<28}{'pages':>7}{'first':>9}{'fastest':>9}{'CPU ms':>8}")
    for name, text in kinds(rows).items():
        times, cpu = [], []
        for _ in range(3):
            began, used = time.perf_counter(), time.process_time()
            found = search(directory, text)
            times.append((time.perf_counter() - began) * 1000)
            cpu.append((time.process_time() - used) * 1000)
        mark = f" (the newest {found.looked_at:,})" if found.looked_at else ""
        print(f"{name:<28}{found.total:>7,}{times[0]:>9.0f}{min(times):>9.0f}{min(cpu):>8.0f}{mark}")


def _trigrams(directory: Path, pages: int) -> None:
    """Both cuts of the same texts without spaces."""
    from nephila_stores.search.words import index_text

    with sqlite3.connect(directory / DATABASE) as rows:
        query = "SELECT title || ' ' || text FROM pages WHERE lang IN ('zh', 'ja', 'th') LIMIT ?"
        texts = [text for (text,) in rows.execute(query, (pages,))]
    words = {length: texts[len(texts) // 2][200 : 200 + length] for length in (1, 2, 3)}
    print(f"{len(texts):,} texts without spaces: found by a word of 1, 2 and 3 characters")
    for name, tokenizer, cut in (("pairs", "ascii", index_text), ("trigrams", "trigram", str)):
        connection = sqlite3.connect(":memory:")
        connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(text, content='', columnsize=0, tokenize='{tokenizer}')")
        began = time.process_time()
        connection.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(map(cut, texts)))
        used = time.process_time() - began
        (size,) = connection.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()
        found = []
        for word in words.values():
            match = " ".join(word[at : at + 2] for at in range(max(len(word) - 1, 1))) if name == "pairs" else word
            star = "*" if name == "pairs" and len(word) == 1 else ""
            (count,) = connection.execute("SELECT count(*) FROM t WHERE t MATCH ?", (f'"{match}"{star}',)).fetchone()
            found.append(count)
        truth = [sum(word in text for text in texts) for word in words.values()]
        print(f"  {name:<9} {used:6.1f} CPU s {size / 1e6:7.0f} MB  found {found} of {truth}")


if __name__ == "__main__":
    main()
