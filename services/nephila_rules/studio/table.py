"""What a draft's rule takes from pages: the table of fields by pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from nephila.kernel.runtime.errors import UsageError

from nephila_rules.runtime import load
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import extract
from nephila_rules.studio.draft import Draft
from nephila_rules.studio.rule import document_of
from nephila_rules.studio.seen import Row

MAX_ITEMS: Final = 5
"""Items of one page that are shown."""
MAX_CHARS: Final = 300
_decode: Final = msgspec.json.Decoder().decode


def rows(draft: Draft, documents: Iterable[Document]) -> list[Row]:
    """A row for each page; none while no field has a selector."""
    if not any(field.take.source or field.take.path for field in draft.fields):
        return []
    try:
        rule = load.from_json(document_of(draft, lenient=True)).rule
    except UsageError as error:
        return [Row(draft.url, [], 0, [str(error)])]
    names = [field.name for field in draft.fields]
    page_rows = []
    for document in documents:
        got = extract(rule, document)
        items = [_decode(item) for item in got.items[:MAX_ITEMS]]
        cells = [{name: _text(item.get(name)) for name in names} for item in items]
        if not cells and not draft.each:
            cells = [dict.fromkeys(names, "")]
        page_rows.append(
            Row(document.url, cells, len(got.items), [problem[:MAX_CHARS] for problem in got.problems[:3]])
        )
    return page_rows


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " · ".join(_text(item) for item in value)[:MAX_CHARS]
    if isinstance(value, dict):
        return " ".join(_text(item) for item in value.values())[:MAX_CHARS]
    return str(value)[:MAX_CHARS]
