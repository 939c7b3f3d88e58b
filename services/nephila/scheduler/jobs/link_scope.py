"""The scope of a job in the native core, where its patterns mean the same there as in RE2.

Patterns are RE2. The core searches them with another engine of the same family. The two agree on ASCII text for the
syntax below, and WHATWG hrefs are ASCII. A scope with any other pattern has no native form: its links are decided in
Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nephila.kernel.net.public_suffix import registrable_domain
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import LinkScope

_ESCAPE: Final = r"\\[-!\"#$%&'()*+,./:;=?@\[\\\]^_`{|}~]"
_SET: Final = rf"\[\^?(?:[0-9A-Za-z]-[0-9A-Za-z]|[0-9A-Za-z_./:=@%,;!#+*?()|$ ]|{_ESCAPE}|\\[dws])+-?\]"
_ONE: Final = rf"[0-9A-Za-z_/:@%&=~#,;!'\" -]|{_ESCAPE}|\\[dwsDWS]|\.|{_SET}"
_REPEAT: Final = r"(?:[*+?]|\{\d+(?:,\d*)?\})\??"
_COMMON: Final = late_pattern(rf"(?:\(\?i\))?(?:(?:{_ONE}|\))(?:{_REPEAT})?|\((?:\?:)?|[|^$])*")


def is_common(pattern: str) -> bool:
    """Whether a valid RE2 pattern means the same in the native core."""
    return _COMMON.fullmatch(pattern) is not None


def link_scope(mode: int, anchors: set[str], include: Sequence[str], exclude: Sequence[str]) -> LinkScope | None:
    """The native form of a scope; None where there is none. `anchors` is shared, not copied."""
    if not all(map(is_common, (*include, *exclude))):
        return None
    try:
        return LinkScope(mode, anchors, registrable_domain, include, exclude)
    except ValueError:
        return None
