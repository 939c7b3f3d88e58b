"""Rules that were applied through the API of one program: kept in DIR/applied-rules.json, published to its services.

Each is kept with its last versions. Rules of files (`--rules`) are not here. Invariant: the file is replaced and synced
before a rule is published, so a program that starts again has every rule that was answered for.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from nephila.kernel.bus.contract import Bus
from nephila.kernel.messages import ParseRule
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import RULES

from nephila_control.rule_versions import RuleVersions, StoredVersion

FILE: Final = "applied-rules.json"


class _Version(msgspec.Struct, kw_only=True):
    document: str
    version: int
    at: float = 0.0


class _Entry(_Version, kw_only=True):
    name: str
    earlier: list[_Version] = []
    """Versions before this one, the oldest first."""


class RuleStore:
    """Holds the applied rules of a directory. Raises `UserError` if its file cannot be read."""

    def __init__(self, directory: Path, bus: Bus) -> None:
        self._path = directory / FILE
        self._bus = bus
        self.versions = RuleVersions()
        self._rules: dict[str, ParseRule] = self._read()

    @property
    def rules(self) -> Mapping[str, ParseRule]:
        return self._rules

    def start(self) -> None:
        """Publishes every rule."""
        for rule in self._rules.values():
            self._bus.publish(RULES, 0, rule)

    def put(self, changes: Sequence[ParseRule], at: float) -> None:
        """Stores and publishes the rules, deletions too. Raises `UserError` if the file cannot be written; nothing has
        changed then."""
        merged = {**self._rules, **{rule.name: rule for rule in changes}}
        rules = {name: rule for name, rule in merged.items() if not rule.deleted}
        versions = copy.deepcopy(self.versions)
        for rule in changes:
            versions.take(rule, at)
        self._write(rules, versions)
        self._rules, self.versions = rules, versions
        for rule in changes:
            self._bus.publish(RULES, 0, rule)

    def _read(self) -> dict[str, ParseRule]:
        try:
            entries = msgspec.json.decode(self._path.read_bytes(), type=list[_Entry])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"cannot read {self._path}: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{self._path} is damaged ({error}); move it away and apply the rules again") from None
        for entry in entries:
            states = (*entry.earlier, entry)
            self.versions.restore(
                entry.name, [StoredVersion(state.document, state.version, state.at) for state in states]
            )
        return {entry.name: ParseRule(entry.name, entry.document, entry.version) for entry in entries}

    def _write(self, rules: Mapping[str, ParseRule], versions: RuleVersions) -> None:
        entries = [_entry(name, versions.of(name)) for name in rules]
        part = self._path.with_suffix(".tmp")
        try:
            with part.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(entries), indent=2) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise UserError(f"cannot write {self._path}: {error.strerror}") from None


def _entry(name: str, versions: Sequence[StoredVersion]) -> _Entry:
    *earlier, last = versions
    return _Entry(name=name, **last._asdict(), earlier=[_Version(**version._asdict()) for version in earlier])
