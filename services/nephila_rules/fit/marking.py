"""Pages of a degraded rule: their rows are marked, and only the trustworthy part of the extraction is stored.

Title, text and metadata of the row do not come from the rule and stay. An item is dropped if a degraded field has no
value, or only its default value; the row has the number of dropped items. If the links are degraded and the rule
selects none on the page, the page's own links are followed; if they are not degraded, the page has no links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from nephila.kernel import messages as m

from nephila_rules.fit.drift_test import FEWER, GONE
from nephila_rules.fit.health import LINKS, TYPE
from nephila_rules.fit.messages import MAX_SHOWN, describe
from nephila_rules.runtime.extract import Extraction

_EMPTY: Final[tuple[Any, ...]] = (None, "", [], False)
_decode = msgspec.json.Decoder().decode


def mark(record: m.Record, findings: Sequence[m.RuleFinding], left_out: int = 0) -> None:
    """Mark a row: its rule is degraded, with the reasons."""
    meta = _decode(record.meta) if record.meta else {}
    meta["degraded"] = "; ".join(describe(finding) for finding in findings[:MAX_SHOWN])
    if left_out:
        meta["items_left_out"] = str(left_out)
    record.meta = msgspec.json.encode(meta).decode()


def trusted_part(extraction: Extraction, findings: Sequence[m.RuleFinding]) -> Extraction:
    """The part of an extraction that can be stored."""
    names = {finding.field for finding in findings if finding.kind in (GONE, FEWER, TYPE)}
    # If no item of the page has the field, every value is the rule's default.
    lost = any((count := extraction.counts.get(name)) is not None and not count.filled for name in names)
    tops = {name.split(".")[0] for name in names if not name.startswith("(")}
    items = [] if lost else [item for item in extraction.items if all(_has(_decode(item), name) for name in tops)]
    links = (extraction.links or None) if LINKS in names else extraction.links
    return msgspec.structs.replace(extraction, items=items, links=links)


def _has(item: Any, name: str) -> bool:
    return not isinstance(item, dict) or item.get(name) not in _EMPTY
