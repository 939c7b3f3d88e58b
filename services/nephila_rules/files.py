"""Rule files: a path names a file, or a directory with `rule.yaml` in it or in any directory below.

Invariant: a file is read completely, or refused with one line that names file and position. Hidden directories are
skipped.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from nephila.kernel.documents.yaml import MAX_BYTES
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_rules.runtime.load import RuleDocument, distinct, load

FILE = "rule.yaml"
MAX_FILES = 10_000


def find(paths: Iterable[Path]) -> list[Path]:
    """The rule files below some paths, in order. Raises `UsageError` for a path without rules."""
    ordered: dict[Path, None] = {}
    for path in paths:
        files = sorted(_below(path)) if path.is_dir() else [path] if path.exists() else []
        if not files:
            fault = f"holds no {FILE}, itself or below" if path.is_dir() else "is neither a file nor a directory"
            raise UsageError(f"{path} {fault}; nephila rules init DIR creates a rule")
        ordered.update(dict.fromkeys(files))
    return list(ordered)


def _below(directory: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name in (FILE, "rule.yml"):
                count += 1
                if count > MAX_FILES:
                    raise UsageError(f"{directory}: more than {MAX_FILES:,} rules")
                yield Path(folder, name)


def read(path: Path, name: str = "") -> list[RuleDocument]:
    """The rules of a file. `name`: the file in errors. Raises `UsageError` with file, line and column."""
    with open_regular(path, name) as file:
        data = file.read(MAX_BYTES + 1)
    return load(data, name or str(path))


@contextmanager
def open_regular(path: Path, name: str = "") -> Iterator[BinaryIO]:
    """A regular file, open for reading. `name`: the file in errors. Raises `UserError`."""
    try:
        # Without O_NONBLOCK, opening a FIFO blocks until a writer opens it.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(f"cannot read {name or path}: it is no regular file; write its content to one")
            yield file
    except OSError as error:
        raise UserError(f"cannot read {name or path}: {error.strerror or error}") from None


def read_all(paths: Iterable[Path]) -> list[RuleDocument]:
    """All rules below some paths. Raises `UsageError` for the first mistake, and for two rules of one name."""
    return distinct(document for path in find(paths) for document in read(path))


def write_documents(documents: Iterable[Mapping[str, Any]], directory: Path) -> None:
    """Write a folder with a rule file for each document. A document without `spec` is the spec itself."""
    for number, document in enumerate(documents, 1):
        whole = document if "spec" in document else _whole(f"rule-{number}", document)
        folder = directory / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(whole, ensure_ascii=False), "utf-8")


def _whole(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": name}, "spec": dict(spec)}
