"""The resolved facts of a stored row: dates, authors, section, image, description, comments."""

from __future__ import annotations

from nephila.kernel.page_facts.facts import RowFacts
from nephila.storage.rows import FINAL_URL, LANG, META, TITLE, URL, Row
from nephila.storage.sinks.jsonl import json_object


def facts_of(row: Row) -> RowFacts:
    """The facts of a row; none if its metadata are damaged."""
    from nephila.kernel.page_facts.row_facts import row_facts

    meta = json_object(row[META])
    return row_facts(
        url=row[FINAL_URL] or row[URL],
        title=row[TITLE],
        lang=row[LANG],
        meta=meta if isinstance(meta, dict) else {},
    )
