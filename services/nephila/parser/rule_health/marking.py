"""What a degraded rule leaves on a page: the mark, and not more than what still looks right.

The row's own title, text and metadata are never a rule's, so they stand. An item is left out when a field that is
alarmed is empty in it, or of the page came by its default; how many were left out is said in the row. Where
links are alarmed, those of a page on which the rule selects none are the page's own again, within the scope of the job;
else that there are none is what the rule says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nephila.kernel import messages as m
from nephila.parser.rule_health.drift_test import FEWER, GONE
from nephila.parser.rule_health.health import LINKS, TYPE
from nephila.parser.rule_health.messages import MAX_SHOWN, describe
from nephila.parser.rules.extract import Extraction

_EMPTY: Final[tuple[Any, ...]] = (None, "", [], False)
_decode = msgspec.json.Decoder().decode


def mark(record: m.Record, findings: Sequence[m.RuleFinding], left_out: int = 0) -> None:
    """Say in a row that its rule was degraded, and why."""
    meta = _decode(record.meta) if record.meta else {}
    meta["degraded"] = "; ".join(describe(one) for one in findings[:MAX_SHOWN])
    if left_out:
        meta["items_left_out"] = str(left_out)
    record.meta = msgspec.json.encode(meta).decode()


def trusted_part(found: Extraction, findings: Sequence[m.RuleFinding]) -> Extraction:
    """What is kept of an extraction."""
    names = {one.field for one in findings if one.kind in (GONE, FEWER, TYPE)}
    # Of a field that no item of the page has by itself, a value can only be the rule's default.
    lost = any((count := found.counts.get(name)) is not None and not count.filled for name in names)
    tops = {name.split(".")[0] for name in names if not name.startswith("(")}
    items = [] if lost else [item for item in found.items if all(_has(_decode(item), name) for name in tops)]
    links = (found.links or None) if LINKS in names else found.links
    return msgspec.structs.replace(found, items=items, links=links)


def _has(item: Any, name: str) -> bool:
    return not isinstance(item, dict) or item.get(name) not in _EMPTY
