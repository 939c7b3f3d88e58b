"""The rules of a directory, told to the services of this program, and told again when a file changes.

Files are looked at every CHECK_S seconds, by size and time of change; only what has another content is told.
Invariants: a file that cannot be read or used leaves the rules as they were, and is told in one line, once; no page is
held up or lost, since the parser reads each page by the rules of the moment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nephila.kernel.bus.contract import Bus
from nephila.kernel.messages import ParseRule
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import RULES
from nephila.parser.rules.load import RuleDocument
from nephila.rulekit.files import find, read_all

log = logging.getLogger(__name__)

CHECK_S: Final = 1.0


def message_of(document: RuleDocument) -> ParseRule:
    """A rule as it travels."""
    return ParseRule(document.name, document.text, document.rule.version)


class RuleWatcher:
    """See the module. Raises `UserError` when the rules cannot be read at the start."""

    def __init__(self, place: Path, bus: Bus, clock: Clock, on_change: Callable[[], None] | None = None) -> None:
        """`on_change` is called when the set of names has changed."""
        self.place = place
        self.names: tuple[str, ...] = ()
        self.on_change = on_change
        self._bus = bus
        self._clock = clock
        self._published: dict[str, ParseRule] = {}
        self._last_signature: tuple[object, ...] = ()
        self._last_error = ""
        """What was wrong at the last look."""
        self._timer: Timer | None = None
        self._first = self._read()

    @property
    def rules(self) -> dict[str, ParseRule]:
        """Name → rule, as published last."""
        return self._published

    def start(self) -> None:
        """Tell all rules, and look at the files from now on."""
        self._publish(self._first)
        self._schedule_check()

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def check(self) -> bool:
        """Look at the files now; True when a rule was told."""
        try:
            seen = self._signature()
            found = self._read() if seen != self._last_signature else None
        except (UserError, OSError) as error:
            if str(error) != self._last_error:
                log.warning("rules stay as they were: %s", error)
            self._last_error = str(error)
            return False
        self._last_error = ""
        return found is not None and self._publish(found)

    def _schedule_check(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + CHECK_S, self._on_timer)

    def _on_timer(self) -> None:
        self.check()
        self._schedule_check()

    def _read(self) -> list[RuleDocument]:
        # Before the reading: what changes meanwhile is seen the next time.
        self._last_signature = self._signature()
        return read_all([self.place])

    def _signature(self) -> tuple[object, ...]:
        return tuple(
            (path, (stat := path.stat()).st_mtime_ns, stat.st_size, stat.st_ino) for path in find([self.place])
        )

    def _publish(self, documents: list[RuleDocument]) -> bool:
        wanted = {document.name: message_of(document) for document in documents}
        gone = [name for name in self._published if name not in wanted]
        changed = [rule for name, rule in wanted.items() if self._published.get(name) != rule]
        for rule in changed:
            self._bus.publish(RULES, 0, rule)
        for name in gone:
            self._bus.publish(RULES, 0, ParseRule(name, deleted=True))
        before, self._published, self.names = self.names, wanted, tuple(wanted)
        if before and (changed or gone):
            names = ", ".join([*(rule.name for rule in changed), *gone])
            log.warning("rules read again: %s", names)
        if before and set(before) != set(self.names) and self.on_change is not None:
            self.on_change()
        return bool(changed or gone)
