"""Files of what a browser captured of a page: `<url_key>-<fetch_no>-<attempt>.png`, `.pdf` and `.xhr.jsonl`, in one
directory. A file is complete or absent: it is renamed to its name when it is written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from nephila.kernel.messages import Capture

_SUFFIXES = {"screenshot": "png", "pdf": "pdf"}


def write_captures(directory: Path, stem: str, captures: Iterable[Capture]) -> list[str]:
    """Write the captures of one page; returns the names of the files. Raises `OSError`.

    JSON that scripts fetched is one file, a line per response: url, content_type, body (text).
    """
    directory.mkdir(parents=True, exist_ok=True)
    names, responses = [], []
    for capture in captures:
        if capture.kind in _SUFFIXES:
            names.append(_write(directory, f"{stem}.{_SUFFIXES[capture.kind]}", capture.body))
        else:
            text = capture.body.decode("utf-8", "replace")
            responses.append({"url": capture.url, "content_type": capture.content_type, "body": text})
    if responses:
        lines = b"".join(msgspec.json.encode(response) + b"\n" for response in responses)
        names.append(_write(directory, f"{stem}.xhr.jsonl", lines))
    return names


def _write(directory: Path, name: str, data: bytes) -> str:
    part = directory / f"{name}.part"
    part.write_bytes(data)
    os.replace(part, directory / name)
    return name
