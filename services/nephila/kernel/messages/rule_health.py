"""Generated from proto/nephila/v1/rule_health.proto by tools/protogen.py; do not edit."""

from __future__ import annotations

import msgspec



class RuleStats(msgspec.Struct, array_like=True, gc=False):
    """What one parser saw of a rule on some pages. Topic `rule-stats`, on the partition of the MD5 of the rule's
    name.
    """

    rule: str = ""
    version: int = 0
    pages: int = 0
    # One for each field, by its path; "(items)" counts the items of a page, "(links)" the links that the rule
    # selects.
    fields: list[FieldStats] = msgspec.field(default_factory=list)


class FieldStats(msgspec.Struct, array_like=True, gc=False):
    """What became of one field on the pages of a RuleStats."""

    field: str = ""
    # Pages on which it was looked for.
    pages: int = 0
    # Sum over these pages of the share of items that have it.
    filled: float = 0.0
    # Sum over these pages of the share of items in which there was something, not of its type.
    refused: float = 0.0
    # Pages with a value; what follows is of the first value of each.
    valued: int = 0
    # Those with a digit in it.
    digits: int = 0
    # Those where it is the value of the page before.
    repeated: int = 0
    # Sum of characters; of (items) and (links) their number.
    length: int = 0
    # Pages by length: 0, 1, 2-3, 4-7 and so on.
    lengths: list[int] = msgspec.field(default_factory=list)


class RuleVerdict(msgspec.Struct, array_like=True, gc=False):
    """Whether a rule still fits its site: the newest word of the owner of its partition. Topic `rule-verdicts`
    (compacted by rule).
    """

    rule: str = ""
    version: int = 0
    # Its site has changed: rows are marked, and what it gives is not taken for right.
    degraded: bool = False
    # Seconds since 1970 UTC at which that began; 0 when it is not so.
    since: float = 0.0
    # Pages of this version that were counted.
    pages: int = 0
    findings: list[RuleFinding] = msgspec.field(default_factory=list)
    # Share of pages with items, over the last ones.
    fill_rate: float = 0.0
    # What the owner knows of the rule, for the one that comes after it.
    state: bytes = b""
    # The member that says so.
    owner: str = ""
    deleted: bool = False


class RuleFinding(msgspec.Struct, array_like=True, gc=False):
    """What is other than it was."""

    field: str = ""
    # gone, fewer, type, digits, length or repeated.
    kind: str = ""
    # Share of pages where it was as it should be: usually, and by now.
    before: float = 0.0
    now: float = 0.0
