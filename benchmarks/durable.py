"""What a crawl left behind, checked row by row: the table, pages.jsonl, the WARC files. Returns complaints in plain
words; empty = whole.
"""

import gzip
import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path


def table_complaints(out: Path, expected: frozenset[str] | None, count: int) -> list[str]:
    """Rows: as many as expected, none twice, all stored, the right URLs; run.json has the same numbers."""
    path = out / "nephila.db"
    if not path.exists():
        return ["nephila.db is missing"]
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
        rows = connection.execute("SELECT job, url, url_key, outcome, reason FROM pages").fetchall()
    finally:
        connection.close()
    found = [] if sound == "ok" else [f"nephila.db: {sound}"]
    if len(rows) != count:
        found.append(f"{len(rows)} rows, expected {count}")
    twice = [url for (_, url), n in Counter((job, url) for job, url, *_ in rows).items() if n > 1]
    if twice:
        found.append(f"{len(twice)} URLs have two rows, such as {twice[0]}")
    not_stored = Counter(f"{outcome}({reason or ''})" for *_, outcome, reason in rows if outcome != "stored")
    if not_stored:
        found.append(f"not stored: {dict(not_stored)}")
    if expected is not None and (wrong := expected.symmetric_difference(url for _, url, *_ in rows)):
        found.append(f"{len(wrong)} URLs lost or extra, such as {min(wrong)}")
    return found


def jsonl_complaints(out: Path, count: int) -> list[str]:
    """pages.jsonl: whole lines, one per page."""
    path = out / "pages.jsonl"
    if not path.exists():
        return ["pages.jsonl is missing"]
    data = path.read_bytes()
    found = [] if data.endswith(b"\n") else ["pages.jsonl ends within a line"]
    keys: Counter[str] = Counter()
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = json.loads(line)
            keys[str(row.get("url_key") or row["url"])] += 1
        except (ValueError, KeyError):
            found.append(f"pages.jsonl, line {number} is torn")
    return found + _counted("pages.jsonl", keys, count)


def warc_complaints(out: Path, count: int) -> list[str]:
    """*.warc.gz: every gzip member is whole, every record can be read, one response per page."""
    paths = sorted(out.glob("**/*.warc.gz"))
    if not paths:
        return ["no *.warc.gz"]
    found: list[str] = []
    targets: Counter[str] = Counter()
    for path in paths:
        if torn := torn_gzip(path):
            found.append(f"{path.name}: {torn}")
        targets.update(responses(path))
    return found + _counted("WARC", targets, count)


def _counted(name: str, keys: Counter[str], count: int) -> list[str]:
    twice = [key for key, n in keys.items() if n > 1]
    found = [f"{name}: {len(twice)} pages twice, such as {twice[0]}"] if twice else []
    return found + ([f"{name}: {len(keys)} pages, expected {count}"] if len(keys) != count else [])


def responses(path: Path) -> Iterator[str]:
    """The target of each response record, read by fastwarc."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    with path.open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response):
            record.reader.read()
            if record.headers.get("Nephila-Status", "200") == "200":
                yield record.headers["WARC-Target-URI"]


def torn_gzip(path: Path) -> str:
    """Why a file is not a row of whole gzip members; empty when it is."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except EOFError:
        return "ends within a record"
    except (OSError, zlib.error) as error:
        return f"broken ({error})"
    return ""
