"""The log of changes: who changed what over the control API, and when. Durable and bounded.

One program keeps it in DIR/control-log.jsonl; a system over Kafka in the topic `control-log` (`cluster/log.py`). The
newest entry comes first. A further batch of one change, as of the seeds of a job, by the same caller within `MERGED_S`
adds no entry.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

import msgspec
from nephila.kernel.messages import ControlChange
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UNREADABLE, UserError

from nephila_control import system_types
from nephila_control.api import OPERATIONS

log = logging.getLogger(__name__)
FILE: Final = "control-log.jsonl"
MAX_BYTES: Final = 2 << 20
"""Of one file: some 8,000 entries. The file before it is kept, older ones are deleted."""
MERGED_S: Final = 60.0


class ChangeLog(Protocol):
    async def note(self, who: str, operation: str, subject: str, change: str, author: str = "") -> None:
        """Keep a change; it is durable when this returns. `author`: for whom the caller made it, as the caller says. A
        log that cannot be written is reported in the log of the program: the change itself is done."""

    async def read(self, request: system_types.ListControlLog) -> system_types.ControlLog:
        """Returns entries, the newest first. Raises `UserError`."""


class Entries:
    """Makes the entries of one log. Ids rise; a repetition of the last entry is left out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ms = 0
        self._batch: tuple[tuple[str, str, str, str], float] = (("", "", "", ""), float("-inf"))

    def make(self, who: str, operation: str, subject: str, change: str, author: str = "") -> ControlChange | None:
        """Returns None for a further batch of the last entry."""
        key, now = (who, operation, subject, author), self._clock.monotonic()
        if _is_batch(operation) and key == self._batch[0] and now - self._batch[1] < MERGED_S:
            return None
        self._batch = key, now
        self._last_ms = max(int(self._clock.now() * 1000), self._last_ms + 1)
        return ControlChange(f"{self._last_ms:013d}-{secrets.token_hex(4)}", who, operation, subject, change, author)


def _is_batch(operation: str) -> bool:
    declared = OPERATIONS.get(operation)
    return declared is not None and declared.log is not None and declared.log.batches


def select(entries: Iterable[ControlChange], request: system_types.ListControlLog) -> system_types.ControlLog:
    """`entries` begins with the newest."""
    selected: list[system_types.ControlLogEntry] = []
    for entry in entries:
        if (request.before and entry.id >= request.before) or not _wanted(entry, request):
            continue
        if len(selected) == request.limit:
            return system_types.ControlLog(entries=selected, next=selected[-1].id)
        selected.append(_entry(entry))
    return system_types.ControlLog(entries=selected)


def _wanted(entry: ControlChange, request: system_types.ListControlLog) -> bool:
    text = request.search.lower()
    return (
        (not request.who or request.who in (entry.who, entry.author))
        and (not request.operation or entry.operation == request.operation)
        and (not text or text in f"{entry.subject}\n{entry.change}".lower())
    )


def _entry(entry: ControlChange) -> system_types.ControlLogEntry:
    at = int(entry.id.partition("-")[0]) / 1000
    return system_types.ControlLogEntry(
        id=entry.id,
        at=at,
        who=entry.who,
        author=entry.author,
        operation=entry.operation,
        subject=entry.subject,
        change=entry.change,
    )


class FileChangeLog:
    """Appends lines to two files of the directory, and syncs them."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._path = directory / FILE
        self._made = Entries(clock)
        self._lock = asyncio.Lock()

    async def note(self, who: str, operation: str, subject: str, change: str, author: str = "") -> None:
        entry = self._made.make(who, operation, subject, change, author)
        if entry is None:
            return
        async with self._lock:
            try:
                await asyncio.to_thread(self._append, msgspec.json.encode(entry) + b"\n")
            except OSError as error:
                log.error("the log of changes cannot be written", extra={"file": str(self._path)}, exc_info=error)

    def _append(self, line: bytes) -> None:
        if self._path.exists() and self._path.stat().st_size + len(line) > MAX_BYTES:
            self._path.replace(self._before)
        with self._path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    @property
    def _before(self) -> Path:
        return self._path.with_suffix(".1.jsonl")

    async def read(self, request: system_types.ListControlLog) -> system_types.ControlLog:
        return await asyncio.to_thread(lambda: select(self._entries(), request))

    def _entries(self) -> Iterator[ControlChange]:
        for path in (self._path, self._before):
            try:
                lines = path.read_bytes().splitlines()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise UserError(f"cannot read {path}: {error.strerror}") from None
            for line in reversed(lines):
                try:
                    yield msgspec.json.decode(line, type=ControlChange)
                except UNREADABLE:
                    continue  # the last line of a crash
