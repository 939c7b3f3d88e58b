"""Some of the links of a page: parts of a message go to different partitions, and links that were sent before stay out.

The links of a message are columns of bytes, so a choice copies parts of each column. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from nephila.kernel.messages import Outlinks
from nephila.native import links_at

_COLUMNS: Final = (
    "fingerprints",
    "urls",
    "url_ends",
    "host_spans",
    "anchors",
    "anchor_ends",
    "flags",
    "lastmods",
    "priorities",
)
"""What a message has of each link, in the order of `links_at`. Seeds of a file have the first four."""


def only(message: Outlinks, chosen: Sequence[int]) -> Outlinks:
    """A copy with the links at these rising indices alone. O(chosen)."""
    columns = links_at(chosen, *[getattr(message, name) for name in _COLUMNS])
    return msgspec.structs.replace(message, **dict(zip(_COLUMNS, columns, strict=True)))
