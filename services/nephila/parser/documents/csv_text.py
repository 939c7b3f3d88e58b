"""CSV: its rows as text, up to a limit, and the names of its columns.

The separator is the most frequent of comma, semicolon, tab and bar in the first line, outside of quotes. The first row
names the columns if all its cells are words. Invariant: a row is returned completely or not at all.
"""

from __future__ import annotations

import csv
from typing import Final

from nephila.parser.documents.content import MAX_WORD_CHARS, DocumentContent
from nephila.parser.page.text import one_line

MAX_ROWS: Final = 10_000
MAX_CHARS: Final = 2_000_000

_SEPARATORS: Final = ",;\t|"
_MAX_COLUMNS: Final = 1_000


def read_csv(text: str, separator: str = "") -> DocumentContent:
    """The content of a table; `text` is decoded, `separator` "" where it has to be found. O(its length)."""
    content = DocumentContent()
    whole = text[:MAX_CHARS]
    if len(text) > MAX_CHARS:
        content.problem = f"more than {MAX_CHARS:,} characters"
        whole = whole[: whole.rfind("\n") + 1]
    separator = separator or _separator(whole)
    lines: list[str] = []
    first: list[str] | None = None
    try:
        for row in csv.reader(whole.splitlines(keepends=True), delimiter=separator):
            if not any(row):
                continue
            if len(lines) >= MAX_ROWS:
                content.problem = f"more than {MAX_ROWS:,} rows"
                break
            first = row if first is None else first
            lines.append("\t".join(map(one_line, row)))
    except csv.Error as error:
        content.problem = f"broken after row {len(lines)}: {error}"[:200]
    content.text = "\n".join(lines).encode("utf-8", "replace")
    content.facts = _facts(first or [], len(lines))
    return content


def _facts(first: list[str], rows: int) -> dict[str, str]:
    facts = {"rows": str(rows)}
    cells = [one_line(cell) for cell in first[:_MAX_COLUMNS]]
    if cells and all(cell and not _is_number(cell) for cell in cells):
        facts["columns"] = ", ".join(cells)[:MAX_WORD_CHARS]
        facts["rows"] = str(rows - 1)
    return facts


def _is_number(cell: str) -> bool:
    return cell.strip("+-.,%€$ ").replace(".", "").replace(",", "").isdecimal()


def _separator(text: str) -> str:
    line = text[:10_000].lstrip("\r\n").partition("\n")[0]
    bare = "".join(line.split('"')[::2])  # what stands outside of quotes
    return max(_SEPARATORS, key=bare.count)
