"""The operations on rules: read, applied, deleted; and whether they fit their sites."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import ParseRule
from nephila_rules.fit.messages import describe_all
from nephila_rules.runtime import load
from nephila_rules.runtime.function_directory import NO_DIRECTORY, functions_in

from nephila_control import api, requests, rule_state, rule_types
from nephila_control.part import OperationPart
from nephila_control.rule_difference import rule_difference
from nephila_control.rule_versions import StoredVersion


class RuleOperations(OperationPart):
    async def list_rules(self, request: requests.Empty) -> rule_types.RuleList:
        jobs = self._jobs_by_rule()
        rules = [
            rule_types.Rule(
                name=name, version=rule.version, document=msgspec.json.decode(rule.document), jobs=jobs.get(name, [])
            )
            for name, rule in sorted(self._backend.rules.items())
        ]
        return rule_types.RuleList(rules=rules)

    def _jobs_by_rule(self) -> dict[str, list[str]]:
        jobs: dict[str, list[str]] = {}
        for job in self._backend.jobs().values():
            for name in spec_of(job).rules if not job.deleted else ():
                if len(users := jobs.setdefault(name, [])) < rule_types.MAX_JOBS:
                    users.append(job.uid)
        return jobs

    async def apply_rules(self, request: rule_types.ApplyRules) -> rule_types.RulesApplied:
        self._backend.check_rule_change()
        rules = _messages(request.rules)
        self._backend.check_rule_change(rule.name for rule in rules)
        before = dict(self._backend.rules)
        if changed := [rule for rule in rules if before.get(rule.name) != rule]:
            await self._backend.put_rules(changed)
        has_functions = self._backend.has_functions
        changes = [_change(before.get(rule.name), rule, has_functions=has_functions) for rule in rules]
        return rule_types.RulesApplied(rules=changes)

    async def delete_rule(self, request: rule_types.RuleName) -> rule_types.RuleChange:
        self._backend.check_rule_change([request.name])
        if request.name not in self._backend.rules:
            raise api.NotFound(f"there is no rule {request.name!r}")
        await self._backend.put_rules([ParseRule(request.name, deleted=True)])
        return rule_types.RuleChange(name=request.name, verdict="deleted")

    async def list_rule_versions(self, request: rule_types.RuleName) -> rule_types.RuleVersionList:
        rule = self._backend.rules.get(request.name)
        if rule is None:
            raise api.NotFound(f"there is no rule {request.name!r}")
        stored = self._backend.rule_versions(request.name) or [StoredVersion(rule.document, rule.version, 0.0)]
        verdict = next((verdict for verdict in self._backend.verdicts() if verdict.rule == request.name), None)
        return rule_types.RuleVersionList(
            versions=[_version(version, rule) for version in reversed(stored)],
            history=rule_state.samples(verdict.state) if verdict is not None and not verdict.deleted else [],
        )

    async def rule_health(self, request: requests.Empty) -> rule_types.RuleHealthList:
        rules = [
            rule_types.RuleHealth(
                rule=verdict.rule,
                version=verdict.version,
                degraded=verdict.degraded,
                findings=describe_all(verdict),
                since=verdict.since,
                pages=verdict.pages,
                fill_rate=round(verdict.fill_rate, 4),
                fields=rule_state.fills(verdict.state),
            )
            for verdict in self._backend.verdicts()
            if not verdict.deleted
        ]
        return rule_types.RuleHealthList(rules=sorted(rules, key=lambda rule: (not rule.degraded, rule.rule)))


def _version(version: StoredVersion, present: ParseRule) -> rule_types.RuleVersion:
    differs = version.document != present.document
    return rule_types.RuleVersion(
        version=version.version,
        etag=version.etag,
        at=version.at,
        document=msgspec.json.decode(version.document),
        difference=rule_difference(present, ParseRule(present.name, version.document)) if differs else [],
    )


def _messages(documents: Iterable[dict[str, Any]]) -> list[ParseRule]:
    """Raises `UsageError` for the first mistake."""
    read = [load.from_json(content, f"rules[{number}]") for number, content in enumerate(documents)]
    return [ParseRule(rule.name, rule.text, rule.rule.version) for rule in load.distinct(read)]


def _change(before: ParseRule | None, after: ParseRule, *, has_functions: bool) -> rule_types.RuleChange:
    """Describes the effect of an apply on one rule. `has_functions` says whether the program has a directory of Python
    functions."""
    verdict = "created" if before is None else "unchanged" if before == after else "changed"
    calls = not has_functions and functions_in([load.from_text(after.document, after.name).rule])
    warning = f"its Python functions are not called: {NO_DIRECTORY}" if calls else ""
    return rule_types.RuleChange(name=after.name, verdict=verdict, version=after.version, warning=warning)  # type: ignore[arg-type]
