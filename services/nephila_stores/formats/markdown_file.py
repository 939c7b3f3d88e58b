"""Pages as Markdown: front matter in YAML, then the text. One file per page, HOST/slug-KEY.md, or JSON lines.

The text is the Markdown of the row's structure (`nephila.native.markdown`), or its plain text. Neither has control
characters: a file is opened in terminals and editors, and its text comes from the web.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import urlsplit

from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import UrlError, markdown
from nephila.storage.rows import COLUMNS, CONTENT_TYPE, STRUCTURE, TEXT, URL, Row
from nephila.storage.sinks.facts import facts_of

FOLDER = "markdown"
"""Directory of the Markdown files, in the directory of a crawl."""
LinkStyle = Literal["inline", "reference", "none"]
"""[text](URL); [text][1] with the URLs at the end; text alone."""
MarkdownOf = Callable[[Row], str]
"""Returns the Markdown of a row; "" where it has no structure."""
_FRONT = ("url", "title", "lang", "fetched_at", "status", "content_type", "outcome", "reason", "final_url", "sha256")
LINE_COLUMNS = ("url", "title", "lang", "fetched_at", "sha256")
"""Columns of a line of JSON, beside what is made of the structure."""
_SLUG_CHARS = 60
_UNSAFE = late_pattern(r"[^a-z0-9._-]+")
# Controls but line feed and tab, and marks that change the direction of text.
_CONTROLS = late_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Valid in JSON; YAML forbids them or reads them as line ends, or they change the direction of text.
_NOT_YAML = late_pattern("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def write_stream(stream: IO[bytes], rows: Iterator[Row], text: MarkdownOf) -> int:
    """Write one document after the other."""
    written = 0
    for row in rows:
        stream.write(document(row, text(row)))
        written += 1
    return written


def write_lines(stream: IO[bytes], rows: Iterator[Row], text: MarkdownOf) -> int:
    """Write one JSON object per line, as a text corpus."""
    written = 0
    for row in rows:
        line = line_of(row, LINE_COLUMNS)
        line["markdown"] = markdown_text(row, text(row))
        stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        written += 1
    return written


def line_of(row: Row, names: Sequence[str]) -> dict[str, Any]:
    """These columns of a row."""
    values = dict(zip(COLUMNS, row, strict=False))
    return {name: values[name] for name in names}


def write_directory(directory: Path, rows: Iterator[Row], text: MarkdownOf) -> int:
    """Write one file per page, HOST/slug-KEY.md below `directory`. Raises `OSError`, `UserError`."""
    if directory.exists() and not directory.is_dir():
        raise UserError(
            f"{directory} is a file; a Markdown export to a path needs a directory (or -o - for one stream)"
        )
    written = 0
    hosts: set[str] = set()
    for row in rows:
        path = path_of(row)
        host = path.parent.name
        if host not in hosts:
            (directory / host).mkdir(parents=True, exist_ok=True)
            hosts.add(host)
        (directory / path).write_bytes(document(row, text(row)))
        written += 1
    directory.mkdir(parents=True, exist_ok=True)
    return written


def document(row: Row, text: str = "") -> bytes:
    """Front matter and text, by default the plain text. A JSON string is also a YAML string after a few escapes."""
    values = dict(zip(COLUMNS, row, strict=False))
    front = "".join(f"{name}: {_scalar(value)}\n" for name, value in _front(values, row) if value not in ("", 0))
    text = markdown_text(row, text)
    title = " ".join(_CONTROLS.sub(" ", str(values["title"])).split())
    heading = f"# {title}\n\n" if title and "\n# " not in f"\n{text}" else ""
    return f"---\n{front}---\n\n{heading}{text}\n\n".encode()


def _front(values: dict[str, Any], row: Row) -> Iterator[tuple[str, Any]]:
    """The columns, and of the facts description, author and date."""
    for name in _FRONT:
        yield name, values[name]
        if name == "title":
            facts = facts_of(row)
            yield "description", facts.description
            yield "author", ", ".join(facts.authors)
            yield "date", facts.published


def markdown_text(row: Row, text: str) -> str:
    """The Markdown of a row, which has no control characters; by default its plain text without them."""
    return text or _CONTROLS.sub("", plain_text(row))


def row_markdown(row: Row, links: LinkStyle = "inline") -> str:
    """The Markdown of a row's structure; "" where it has none: what is no HTML, rows of the Python fallback."""
    if not row[STRUCTURE]:
        return ""
    text = row[TEXT]
    try:
        made = markdown(row[STRUCTURE], text.encode() if isinstance(text, str) else text, row[URL], links)
    except UrlError:
        return ""
    return made.decode("utf-8", "replace")


class RowMarkdown:
    """Callable that returns the Markdown of a row, and counts pages that have none."""

    def __init__(self, links: LinkStyle = "inline") -> None:
        self._links = links
        self.rows = 0
        self.plain = 0

    def __call__(self, row: Row) -> str:
        markdown = row_markdown(row, self._links)
        self.rows += 1
        self.plain += not markdown and bool(row[TEXT]) and "html" in row[CONTENT_TYPE]
        return markdown


def plain_text(row: Row) -> str:
    text = row[TEXT]
    return text if isinstance(text, str) else str(text, "utf-8")


def _scalar(value: object) -> str:
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def path_of(row: Row) -> Path:
    """Host directory and file name, of safe characters only. If two jobs have the same URL, the later row
    overwrites."""
    values = dict(zip(COLUMNS, row, strict=False))
    try:
        parts = urlsplit(values["url"])
        host, path = parts.netloc.rpartition("@")[2], parts.path
    except ValueError:
        host, path = "", ""
    slug = _slug(path)[:_SLUG_CHARS].strip("-.") or "index"
    return Path(_slug(host) or "host", f"{slug}-{values['url_key'][:16]}.md")


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text.lower()).strip("-.")
