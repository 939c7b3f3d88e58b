"""Items that are completed from a second page: the key in an incomplete item, and how a part is merged into it. Pure.

An incomplete item lists its missing parts, with reasons, under the key `MISSING`; a complete item has no such key. A
part is the item of the second page; its fields are added to the first item. Invariant: `complete_item` may be called
again with the same or a newer part, in any order of parts. Storage has a table of the items that wait for each page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MISSING: Final = "_incomplete"
NOT_YET: Final = "not fetched yet"
NO_LINK: Final = "the page has no link to it"
NOT_READ: Final = "the rule does not read this URL for it"
_SIGN: Final = f'"{MISSING}"'
"""Occurs in every incomplete item; inside a text value the quotes would be escaped."""


class MissingPart(NamedTuple):
    name: str
    url: str
    """URL of the second page."""


def part_rule(rule: str, name: str) -> str:
    """Name of the rule that reads a second page: names of rules contain no "/"."""
    return f"{rule}/{name}"


def base_of(rule: str) -> str:
    """The rule of a name: the name itself, or that of the rule whose second pages it reads."""
    return rule.partition("/")[0]


def is_part(rule: str) -> bool:
    """Whether the items of `rule` complete items of other pages."""
    return "/" in rule


def missing_parts(missing: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, str]]:
    """The value of `MISSING`: part → URL of its page, reason."""
    return {name: {"url": url, "why": why} for name, (url, why) in missing.items()}


def waits_of(data: str) -> list[MissingPart]:
    """The parts that an item waits for. O(length) for a complete item."""
    if _SIGN not in data:
        return []
    item = _object(data)
    parts = item.get(MISSING) if item is not None else None
    if not isinstance(parts, dict):
        return []
    missing = [(name, part.get("url"), part.get("why")) for name, part in parts.items() if isinstance(part, dict)]
    return [MissingPart(name, url) for name, url, why in missing if why == NOT_YET and isinstance(url, str) and url]


def complete_item(data: str, name: str, part: str | None, url: str, why: str) -> str:
    """An item with a part merged into it, or with the reason why it is missing; unchanged if either is no object."""
    item = _object(data)
    added = _object(part) if part is not None else None
    if item is None or (part is not None and added is None):
        return data
    listed = item.pop(MISSING, None)
    missing = dict(listed) if isinstance(listed, dict) else {}
    missing.pop(name, None)
    if added is None:
        missing[name] = {"url": url, "why": why}
    item.update(added or {})
    if missing:
        item[MISSING] = missing
    return _text(item)


def _object(data: str) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(item: dict[str, Any]) -> str:
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(item, separators=(",", ":"))
    return text
