"""The directory of Python functions, from the parser's side: which task reads a page, when files are read again.

The parser itself never runs a file of the directory: `functions.py` does, in the child. Files are looked at once a
second at most, by size and modification time; after a change the next page goes to a new child, which loads them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.sandbox import Task
from nephila.parser.sandbox.task import Out

CHECK_S: Final = 1.0
"""Seconds between two looks at the files."""
NO_DIRECTORY: Final = (
    "there is no directory of Python functions; name it with --rule-functions DIR (crawl, up), --functions DIR"
    " (nephila rules) or parser.rule_functions_dir (services)"
)

_decode_faults = partial(msgspec.msgpack.decode, type=dict[str, str])
FUNCTIONS: Final[Task[dict[str, str]]] = Task(
    "functions", "nephila_rules.runtime.functions", _decode_faults, memory_bytes=768 << 20
)
"""Names of functions → why they cannot be called."""


class FunctionDirectory:
    """A directory of functions that the operator has named."""

    def __init__(self, directory: str, monotonic: Callable[[], float]) -> None:
        """Raises `UsageError` if there is no such directory."""
        self._directory = os.path.abspath(directory)
        self._monotonic = monotonic
        if not Path(self._directory).is_dir():
            raise UsageError(f"the directory of rule functions {directory} does not exist")
        self._looked_at_s = monotonic()
        self._stamp = self._read_stamp()

    def task(self, task: Task[Out]) -> Task[Out]:
        """A task whose child has the functions: its own, so that rules without them stay apart from this code."""
        now_s = self._monotonic()
        if now_s - self._looked_at_s >= CHECK_S:
            self._looked_at_s, self._stamp = now_s, self._read_stamp()
        return replace(task, name=f"{task.name} with py", arguments=(self._directory, self._stamp))

    def _read_stamp(self) -> str:
        """A text that changes with every file of the directory. O(files)."""
        try:
            with os.scandir(self._directory) as entries:
                files = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
        except OSError as error:
            return error.strerror or "unreadable"
        lines = sorted(f"{name}:{of.st_mtime_ns}:{of.st_size}" for name, of in files)
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def faults_of(directory: FunctionDirectory, names: Iterable[str]) -> dict[str, str]:
    """Why functions cannot be called, by name; the files are loaded in a child for it."""
    from nephila.parser.sandbox import BlockingSandbox, ChildError

    calls = sorted(set(names))
    if not calls:
        return {}
    try:
        with BlockingSandbox() as sandbox:
            return sandbox.call(directory.task(FUNCTIONS), msgspec.msgpack.encode(calls), attempts=1)
    except ChildError as error:  # a file that ends its process
        return dict.fromkeys(calls, str(error))


def functions_in(rules: Iterable[Any]) -> list[str]:
    """The functions that rules call, second pages included, each once."""
    return sorted({name for rule in rules for reader in rule.page_rules for name in reader.functions})
