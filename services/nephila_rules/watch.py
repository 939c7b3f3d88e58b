"""The rules of a directory, published to the services of this program, and published again when a file changes.

Files are checked every CHECK_S seconds by size and modification time; only rules with new content are published.
Invariants: a file that cannot be read or used leaves the rules unchanged and is logged once; no page is delayed or
lost, since the parser reads each page by the rules that it has at that time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nephila.kernel.bus.contract import Bus
from nephila.kernel.messages import ParseRule
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import RULES

from nephila_rules.files import find, read_all
from nephila_rules.runtime.load import RuleDocument

log = logging.getLogger(__name__)

CHECK_S: Final = 1.0


def message_of(document: RuleDocument) -> ParseRule:
    """A rule as a message."""
    return ParseRule(document.name, document.text, document.rule.version)


class RuleWatcher:
    """Publishes the rules of one path. Raises `UserError` if the rules cannot be read at the start."""

    def __init__(self, path: Path, bus: Bus, clock: Clock, on_change: Callable[[], None] | None = None) -> None:
        """`on_change` is called when rules are added or removed."""
        self.path = path
        self.names: tuple[str, ...] = ()
        self.on_change = on_change
        self._bus = bus
        self._clock = clock
        self._published: dict[str, ParseRule] = {}
        self._last_signature: tuple[object, ...] = ()
        self._last_error = ""
        """Error of the last check."""
        self._timer = OneTimer(clock, self._on_timer)
        self._first = self._read()

    @property
    def rules(self) -> dict[str, ParseRule]:
        """Published rules by name."""
        return self._published

    def start(self) -> None:
        """Publish all rules and start to check the files."""
        self._publish(self._first)
        self._timer.start(CHECK_S)

    def close(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def check(self) -> bool:
        """Check the files now; True if a rule was published."""
        try:
            seen = self._signature()
            documents = self._read() if seen != self._last_signature else None
        except (UserError, OSError) as error:
            if str(error) != self._last_error:
                log.warning("the rules are unchanged: %s", error)
            self._last_error = str(error)
            return False
        self._last_error = ""
        return documents is not None and self._publish(documents)

    def _on_timer(self) -> None:
        self.check()
        self._timer.start(CHECK_S)

    def _read(self) -> list[RuleDocument]:
        # Taken before the files are read: a change during the reading is found by the next check.
        self._last_signature = self._signature()
        return read_all([self.path])

    def _signature(self) -> tuple[object, ...]:
        return tuple((path, (stat := path.stat()).st_mtime_ns, stat.st_size, stat.st_ino) for path in find([self.path]))

    def _publish(self, documents: list[RuleDocument]) -> bool:
        messages = {document.name: message_of(document) for document in documents}
        gone = [name for name in self._published if name not in messages]
        changed = [rule for name, rule in messages.items() if self._published.get(name) != rule]
        for rule in changed:
            self._bus.publish(RULES, 0, rule)
        for name in gone:
            self._bus.publish(RULES, 0, ParseRule(name, deleted=True))
        before, self._published, self.names = self.names, messages, tuple(messages)
        if before and (changed or gone):
            names = ", ".join([*(rule.name for rule in changed), *gone])
            log.warning("rules reloaded: %s", names)
        if before and set(before) != set(self.names) and self.on_change is not None:
            self.on_change()
        return bool(changed or gone)
