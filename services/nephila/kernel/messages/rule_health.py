"""Generated from proto/nephila/v1/rule_health.proto by tools/protogen.py; do not edit."""

import msgspec



class FieldStats(msgspec.Struct, array_like=True, gc=False):
    """Counts of one field over the pages of a RuleStats."""

    field: str = ""
    # Pages on which the rule looked for the field.
    pages: int = 0
    # Sum over these pages of the share of items in which the field has a value.
    filled: float = 0.0
    # Sum over these pages of the share of items in which a value was found that is not of the field's type.
    refused: float = 0.0
    # Pages with a value. The counts below are about the first value of each page.
    valued: int = 0
    # Pages whose value has a digit.
    digits: int = 0
    # Pages whose value equals that of the previous page.
    repeated: int = 0
    # Sum of lengths in characters; for (items) and (links) the sum of their numbers.
    length: int = 0
    # Pages by length, in powers of two: 0, 1, 2-3, 4-7 and so on.
    lengths: list[int] = msgspec.field(default_factory=list)


class RuleFinding(msgspec.Struct, array_like=True, gc=False):
    """One deviation from the usual."""

    field: str = ""
    # gone, fewer, type, digits, length or repeated.
    kind: str = ""
    # Share of pages on which the field was normal: usually, and now.
    before: float = 0.0
    now: float = 0.0


class RuleStats(msgspec.Struct, array_like=True, gc=False):
    """Counts of one rule on the pages that one parser read since its last message. Topic `rule-stats`, partition
    by the MD5 of the rule's name.
    """

    rule: str = ""
    version: int = 0
    pages: int = 0
    # One entry per field path. "(items)" counts the items of a page, "(links)" the links that the rule
    # selects, "(match)" the pages that meet the rule's conditions on content.
    fields: list[FieldStats] = msgspec.field(default_factory=list)


class RuleVerdict(msgspec.Struct, array_like=True, gc=False):
    """Whether a rule still fits its site: the newest verdict of the parser that owns the rule's partition. Topic
    `rule-verdicts` (compacted by rule).
    """

    rule: str = ""
    version: int = 0
    # The site has changed: rows are marked, and values of the degraded fields are not stored.
    degraded: bool = False
    # Seconds since 1970 UTC at which the rule became degraded; 0 for a healthy rule.
    since: float = 0.0
    # Pages counted for this version.
    pages: int = 0
    findings: list[RuleFinding] = msgspec.field(default_factory=list)
    # Share of the last pages that had items.
    fill_rate: float = 0.0
    # The judge's learned state of the rule. The next owner of the partition continues from it.
    state: bytes = b""
    # The member that published the verdict.
    judge: str = ""
    deleted: bool = False
