"""The screen of rules answers which rule no longer fits its site, which field broke, and what the rule was before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml
from nephila.kernel.runtime.errors import UserError
from nephila_control import requests, rule_types
from nephila_control.api import NotFound
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.view import View, go
from nephila_console.words import path

SHOWN: Final = 60
"""Rules on one screen."""
FIELDS: Final = 12
"""Fields on the card of a rule; its own screen has all."""
MOVED: Final = 0.02
"""A share that differs by so much from its usual value has a trend."""


class FieldRow(NamedTuple):
    name: str
    fill: rule_types.FieldFill | None
    """None before the first page."""
    history: tuple[float, ...] = ()
    """Shares over time, the oldest first."""

    @property
    def trend(self) -> float:
        """Difference of the present share from the usual one; 0 for a small one, and while none is learned."""
        if self.fill is None or not self.fill.usual:
            return 0.0
        difference = self.fill.now - self.fill.usual
        return difference if abs(difference) >= MOVED else 0.0


class RuleCard(NamedTuple):
    rule: rule_types.Rule
    health: rule_types.RuleHealth | None
    fields: list[FieldRow]

    @property
    def order(self) -> tuple[bool, bool, str]:
        """Degraded rules come first, then those that no job uses."""
        return not (self.health is not None and self.health.degraded), bool(self.rule.jobs), self.rule.name


async def rules(view: View) -> Response:
    """GET /console/rules?name=…"""
    listed, health = await asyncio.gather(
        view.control.list_rules(requests.Empty()), view.control.rule_health(requests.Empty())
    )
    by_rule = {verdict.rule: verdict for verdict in health.rules}
    cards = [card(rule, by_rule.get(rule.name)) for rule in listed.rules]
    name = view.field("name")
    chosen = next((entry for entry in cards if entry.rule.name == name), None)
    if chosen is not None:
        return await _rule(view, chosen)
    search = view.field("q").strip()[:500]
    matching = sorted(
        (entry for entry in cards if search.lower() in entry.rule.name.lower()), key=lambda entry: entry.order
    )
    skip = min(view.number("skip"), max(len(matching) - 1, 0) // SHOWN * SHOWN)
    return view.render(
        "rules.html",
        cards=matching[skip : skip + SHOWN],
        total=len(cards),
        matching=len(matching),
        degraded=sum(entry.health is not None and entry.health.degraded for entry in cards),
        unused=sum(not entry.rule.jobs for entry in cards),
        search=search,
        skip=skip,
        next=skip + SHOWN if len(matching) > skip + SHOWN else 0,
        most_fields=FIELDS,
    )


async def _rule(view: View, chosen: RuleCard) -> Response:
    answer = await view.control.list_rule_versions(rule_types.RuleName(name=chosen.rule.name))
    versions, history = answer.versions, answer.history
    return view.render(
        "rule.html",
        card=chosen._replace(fields=[_with_history(field, history) for field in chosen.fields]),
        history=history,
        ended={sample.version: sample for sample in history if sample.version != chosen.rule.version},
        text=yaml.safe_dump(chosen.rule.document, allow_unicode=True, sort_keys=False, width=100),
        current=versions[0],
        versions=versions[1:],
        most_fields=len(chosen.fields),
    )


async def restore(view: View) -> Response:
    """POST /console/rules/{name}: a version before is in effect again."""
    versions = (await view.control.list_rule_versions(rule_types.RuleName(name=view.name))).versions
    if versions[0].etag != view.form.get("current", ""):
        raise UserError(_("The rule was changed since this page was loaded; look at its versions again."))
    version = next((version for version in versions if version.etag == view.form.get("etag", "")), None)
    if version is None:
        raise NotFound(_("This version is not kept any more."))
    await view.control.apply_rules(rule_types.ApplyRules(rules=[version.document]))
    return go(path("rules", name=view.name, notice="changed"))


def card(rule: rule_types.Rule, health: rule_types.RuleHealth | None) -> RuleCard:
    fills = {fill.name: fill for fill in health.fields} if health is not None else {}
    names = dict.fromkeys([*_fields_of(rule.document), *fills])
    return RuleCard(rule, health, [FieldRow(name, fills.get(name)) for name in names])


def _with_history(field: FieldRow, history: Sequence[rule_types.RuleSample]) -> FieldRow:
    return field._replace(history=tuple(sample.fields[field.name] for sample in history if field.name in sample.fields))


def _fields_of(document: Mapping[str, Any]) -> list[str]:
    fields = document.get("spec", {}).get("fields", {})
    return list(fields) if isinstance(fields, dict) else []
