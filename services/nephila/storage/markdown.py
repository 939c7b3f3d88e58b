"""Pages as Markdown: front matter in YAML, then the title and the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from nephila.kernel.errors import UserError
from nephila.storage.rows import COLUMNS, Row

_FRONT = ("url", "title", "lang", "fetched_at", "status", "content_type", "outcome", "reason", "final_url")
_SLUG_CHARS = 60
_UNSAFE = re.compile(r"[^a-z0-9._-]+")
# Fine in JSON; YAML forbids them or reads them as line ends.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def write_stream(stream: IO[bytes], rows: Iterator[Row]) -> int:
    """One document after the other."""
    written = 0
    for row in rows:
        stream.write(document(row))
        written += 1
    return written


def write_directory(directory: Path, rows: Iterator[Row]) -> int:
    """One file per page, HOST/slug-KEY.md below `directory`. Raises `OSError`, `UserError`."""
    if directory.exists() and not directory.is_dir():
        raise UserError(
            f"{directory} is a file; a Markdown export to a path needs a directory (or -o - for one stream)"
        )
    written = 0
    hosts: set[str] = set()
    for row in rows:
        host, name = _place(row)
        if host not in hosts:
            (directory / host).mkdir(parents=True, exist_ok=True)
            hosts.add(host)
        (directory / host / name).write_bytes(document(row))
        written += 1
    directory.mkdir(parents=True, exist_ok=True)
    return written


def document(row: Row) -> bytes:
    """Front matter and text. A JSON string is a YAML string too once a few characters are escaped."""
    values = dict(zip(COLUMNS, row, strict=True))
    front = "".join(f"{name}: {_scalar(values[name])}\n" for name in _FRONT if values[name] not in ("", 0))
    title = " ".join(str(values["title"]).split())
    heading = f"# {title}\n\n" if title else ""
    return f"---\n{front}---\n\n{heading}{values['text']}\n\n".encode()


def _scalar(value: object) -> str:
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _place(row: Row) -> tuple[str, str]:
    """Host directory and file name; made of harmless characters only. Of two jobs with one URL the later row stays."""
    values = dict(zip(COLUMNS, row, strict=True))
    try:
        parts = urlsplit(values["url"])
        host, path = parts.netloc.rpartition("@")[2], parts.path
    except ValueError:
        host, path = "", ""
    slug = _slug(path)[:_SLUG_CHARS].strip("-.") or "index"
    return _slug(host) or "host", f"{slug}-{values['url_key'][:16]}.md"


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text.lower()).strip("-.")
