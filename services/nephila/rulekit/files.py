"""Rule files as a person names them: a file, or a directory with a rule.yaml in it or in any directory below.

Invariant: every file is read whole or refused in one line with its place; hidden directories are left alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from nephila.kernel.documents.yaml import MAX_BYTES
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.parser.rules.load import RuleDocument, distinct, load

FILE = "rule.yaml"
MAX_FILES = 10_000


def find(places: Iterable[Path]) -> list[Path]:
    """The rule files of some places, in order. Raises `UsageError` when a place has none."""
    found: dict[Path, None] = {}
    for place in places:
        files = sorted(_below(place)) if place.is_dir() else [place] if place.exists() else []
        if not files:
            what = f"holds no {FILE}, itself or below" if place.is_dir() else "is neither a file nor a directory"
            raise UsageError(f"{place} {what}; nephila rules init DIR begins a rule")
        found.update(dict.fromkeys(files))
    return list(found)


def _below(place: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name in (FILE, "rule.yml"):
                count += 1
                if count > MAX_FILES:
                    raise UsageError(f"{place}: more than {MAX_FILES:,} rules")
                yield Path(folder, name)


def read(path: Path) -> list[RuleDocument]:
    """The rules of a file. Raises `UsageError` in one line with the place."""
    try:
        # Whoever opens a FIFO waits for a writer, which may never come.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(f"cannot read {path}: it is no regular file; write the rule to one")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return load(data, str(path))


def read_all(places: Iterable[Path]) -> list[RuleDocument]:
    """All rules of some places, each name once. Raises `UsageError` for the first mistake."""
    return distinct(document for path in find(places) for document in read(path))
