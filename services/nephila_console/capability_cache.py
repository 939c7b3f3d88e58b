"""What works in the program behind a console, remembered for some seconds: every screen greys what does not.

The question may look at the disk, and its answer changes when somebody starts another program, so it is not asked for
each screen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila_control import requests
from nephila_control.access.caller import Caller
from nephila_control.api import Control
from nephila_control.capability_types import Capability, CapabilityName

FRESH_S: Final = 15.0
CALLERS: Final = 100
"""Callers whose answer is remembered."""
SCREENS: Final[Mapping[str, CapabilityName]] = {
    "pages": "rows",
    "page": "rows",
    "items": "rows",
    "audit": "rows",
}
"""First part of the path of a screen → what it cannot do without."""
Lacking = Mapping[str, Capability]
"""Capabilities that do not work, by name."""


class CapabilityCache:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[Caller, tuple[float, Lacking]] = OrderedDict()

    async def lacking(self, caller: Caller, control: Control) -> Lacking:
        """Returns nothing for a program that cannot be asked: its own refusals are shown then."""
        now = self._clock.monotonic()
        until, answer = self._answers.get(caller, (0.0, {}))
        if now < until:
            return answer
        try:
            entries = (await control.get_capabilities(requests.Empty())).capabilities
        except UserError:
            return {}
        answer = {entry.name: entry for entry in entries if not entry.works}
        self._answers[caller] = now + FRESH_S, answer
        if len(self._answers) > CALLERS:
            self._answers.popitem(last=False)
        return answer
