"""ParseRule documents of the API: read, listed, compared; the same for one program and for a system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from nephila.kernel.messages import ParseRule, RuleVerdict
from nephila_rules.fit.messages import describe_all
from nephila_rules.runtime import load
from nephila_rules.runtime.function_directory import NO_DIRECTORY, functions_in

from nephila_control import answers


def read_rules(documents: Iterable[dict[str, Any]]) -> list[ParseRule]:
    """The messages of all documents. Raises `UsageError` for the first mistake."""
    read = [load.from_json(content, f"rules[{number}]") for number, content in enumerate(documents)]
    return [ParseRule(one.name, one.text, one.rule.version) for one in load.distinct(read)]


def rule_list(rules: Iterable[ParseRule]) -> answers.RuleList:
    """As the API lists them, by name."""
    return answers.RuleList(
        rules=[
            answers.Rule(name=one.name, version=one.version, document=msgspec.json.decode(one.document))
            for one in sorted(rules, key=lambda one: one.name)
        ]
    )


def rule_change(before: ParseRule | None, after: ParseRule, *, has_functions: bool) -> answers.RuleChange:
    """What an apply does to one rule. `has_functions`: the program has a directory of Python functions."""
    verdict = "created" if before is None else "unchanged" if before == after else "changed"
    calls = not has_functions and functions_in([load.from_text(after.document, after.name).rule])
    warning = f"its Python functions are not called: {NO_DIRECTORY}" if calls else ""
    return answers.RuleChange(name=after.name, verdict=verdict, version=after.version, warning=warning)  # type: ignore[arg-type]


def rule_health(verdicts: Iterable[RuleVerdict]) -> answers.RuleHealthList:
    """As the API lists it."""
    found = [
        answers.RuleHealth(
            rule=one.rule,
            version=one.version,
            degraded=one.degraded,
            findings=describe_all(one),
            since=one.since,
            pages=one.pages,
            fill_rate=round(one.fill_rate, 4),
        )
        for one in verdicts
        if not one.deleted
    ]
    return answers.RuleHealthList(rules=sorted(found, key=lambda one: (not one.degraded, one.rule)))
