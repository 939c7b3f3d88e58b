"""Shares of fields in the learned state of a rule, for the API and for the state that a crawl has stored. Pure.

A state that another version of the program wrote has no shares here.
"""

from __future__ import annotations

from nephila.kernel.runtime.errors import UNREADABLE
from nephila_rules.fit.health import ITEMS, RuleHealth, decode

from nephila_control import rule_types


def fills(state: bytes) -> list[rule_types.FieldFill]:
    return [
        rule_types.FieldFill(
            name=name,
            now=round(field.filled.recent, 4),
            usual=round(field.filled.before if field.filled.alarm else field.filled.usual, 4),
        )
        for name, field in _read(state).fields.items()
        if not name.startswith("(")  # the counts of items, links and matches
    ]


def samples(state: bytes) -> list[rule_types.RuleSample]:
    return [
        rule_types.RuleSample(
            at=sample.at,
            version=sample.version,
            pages=sample.pages,
            items=sample.shares.get(ITEMS, 0.0),
            fields={name: share for name, share in sample.shares.items() if name != ITEMS},
        )
        for sample in _read(state).history.samples()
    ]


def _read(state: bytes) -> RuleHealth:
    try:
        return decode(state) if state else RuleHealth()
    except UNREADABLE:
        return RuleHealth()
