"""DIR/pages.jsonl: one JSON object per ended fetch, with the column names of the table.

Of several objects of one (job, url_key) the one with the highest fetch_no is valid. An object without sha256 brought no
copy, a 304 (reason not_modified) or an end without a page: the earlier copy stays, and outcome, reason, status,
final_url, fetched_at, fetch_no, fetch_id and change are those of the new object. `items` holds the items that a rule
extracted. `change` states what the fetch changed: see changes.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from nephila.kernel.page_facts.facts import COMMENTS, NO_FACTS, RowFacts
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import COLUMNS, FETCH_ID, JOB, META, TEXT, URL_KEY, Row, RowBatch
from nephila.storage.sinks.line_file import LineFile

NAME = "pages.jsonl"


class Jsonl(LineFile):
    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        super().__init__(config, ledger, NAME)

    def lines(self, batch: RowBatch) -> bytearray:
        buffer = bytearray()
        for row in batch.rows:
            items = batch.items.get((row[JOB], row[URL_KEY]))
            append_line(buffer, row, items.data if items is not None and items.fetch_id == row[FETCH_ID] else ())
        for row in chain(batch.not_modified, batch.copy_kept):
            append_line(buffer, row)
        return buffer


_encoder = msgspec.json.Encoder()


def append_line(buffer: bytearray, row: Row, items: Sequence[str] = (), facts: RowFacts = NO_FACTS) -> None:
    """Append the row as one line of JSON, with the items of the page and the facts that there are. Comments are a fact,
    and no entry of `meta` then."""
    value: dict[str, Any] = dict(zip(COLUMNS, row, strict=False))
    text = row[TEXT]
    value["text"] = text if isinstance(text, str) else str(text, "utf-8")
    meta = value["meta"] = json_object(row[META])
    if facts.comments and isinstance(meta, dict):
        del meta[COMMENTS]
    value.update((name, fact) for name, fact in facts._asdict().items() if fact)
    if items:
        value["items"] = [msgspec.Raw(item.encode()) for item in items]
    _encoder.encode_into(value, buffer, -1)
    buffer += b"\n"


def json_object(text: str) -> dict[str, Any] | str:
    """The value of a JSON text; the text itself if it is invalid, because one page must not damage the file."""
    if not text:
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
