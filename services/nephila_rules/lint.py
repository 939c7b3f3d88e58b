"""Errors and doubtful statements in rules, each with its file, line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nephila.kernel.runtime.errors import UserError

from nephila_rules.files import find, read
from nephila_rules.function_check import function_faults
from nephila_rules.runtime.function_directory import NO_DIRECTORY, functions_in
from nephila_rules.runtime.load import RuleDocument
from nephila_rules.runtime.selectors import compiled
from nephila_rules.runtime.spec import ItemField, Selection, leaves
from nephila_rules.runtime.values import value_of
from nephila_rules.stored_pages import pages_of

_ANY: Final = ("https://zq7.invalid/", "http://a-b.zq8.invalid:8080/x/y.html?z=1", "https://192.0.2.7/q")
"""URLs that no real rule is for: a pattern that matches all of them matches every URL."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One error or warning."""

    location: str
    """file:line:column."""
    level: str
    """error or warning."""
    text: str


@dataclass(slots=True)
class Findings:
    """All errors and warnings, and the number of rules."""

    rules: int = 0
    all: list[LintFinding] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(finding.level == "error" for finding in self.all)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return len(self.all) - self.errors


def check(paths: Iterable[Path], functions: str = "") -> Findings:
    """Check every rule below some paths; a file that cannot be read does not stop the check. `functions`: the directory
    of Python functions; they are loaded in a child process. Raises `UsageError` if there is no such directory."""
    findings = Findings()
    names: dict[str, RuleDocument] = {}
    for path in find(paths):
        try:
            documents = read(path)
        except UserError as error:
            for fault in (error, *getattr(error, "others", ())):
                location, _, text = str(fault).partition(": ")
                findings.all.append(LintFinding(location, "error", text or str(fault)))
            continue
        for document in documents:
            findings.rules += 1
            first = names.setdefault(document.name, document)
            if first is not document:
                text = f"the rule {document.name!r} comes twice, first at {first.location}"
                findings.all.append(LintFinding(document.location, "error", text))
            findings.all += [LintFinding(document.location, "warning", text) for text in warnings_of(document)]
    findings.all += _equal_priorities(list(names.values()))
    findings.all += _functions(list(names.values()), functions)
    return findings


def _functions(documents: list[RuleDocument], directory: str) -> list[LintFinding]:
    """Python functions that rules name and that cannot be called; without a directory that they are not checked."""
    if directory:
        return [LintFinding(location, "error", text) for location, text in function_faults(documents, directory)]
    text = f"its Python functions are not checked: {NO_DIRECTORY}"
    return [LintFinding(rule.location, "warning", text) for rule in documents if functions_in([rule.rule])]


def warnings_of(document: RuleDocument) -> list[str]:
    """Statements of a rule that its author may not mean."""
    rule = document.rule
    warnings = []
    for pattern in rule.urls:
        if _is_any(pattern):
            warnings.append(
                f"match.url {pattern!a} matches every URL; every page of the job would be read by this rule"
            )
        elif not pattern.startswith(("^", r"\A")):
            warnings.append(f"match.url {pattern!a} has no ^: it is searched in the whole URL, including the query")
    for follow_up in rule.follow_ups:
        warnings += [
            f"followUps.{follow_up.name}.url {pattern!a} matches every URL; then no page counts as a first page"
            for pattern in follow_up.rule.urls
            if _is_any(pattern)
        ]
    if rule.fields and not any(field.required for _, field in leaves(rule.fields)):
        warnings.append("no field is required: a page without any of them gives an empty item")
    for path, leaf in leaves(rule.fields):
        if leaf.selection.source == "xpath" and leaf.selection.expression.startswith("/") and "." in path:
            warnings.append(f"{path}: the xpath begins with /, so it searches the whole page and not its group")
        for key, text in (("default", leaf.default), ("constant", leaf.selection.expression)):
            if text is not None and (key == "default" or leaf.selection == Selection(key, text)):
                warnings += [f"{path}: the {key} {text!a} is not used: {why}" for why in _wrong_type(leaf, text)]
        if leaf.default is not None and leaf.required:
            warnings.append(f"{path}: required has no effect with a default")
    return warnings


def _wrong_type(field: ItemField, text: str) -> list[str]:
    """Why a text in the rule itself is not of its field's type."""
    try:
        value_of(field, text, lambda: _ANY[0])
    except ValueError as error:
        return [str(error)]
    return []


def _is_any(pattern: str) -> bool:
    return all(compiled("regex", pattern).search(url) for url in _ANY)


def _equal_priorities(documents: list[RuleDocument]) -> list[LintFinding]:
    """Rules of equal priority that match one stored page: their names decide which one is used."""
    warnings = []
    for document in documents:
        folder = Path(document.location.partition(":")[0]).parent
        for page in sorted(folder.glob("page*.htm*")):
            url = next(iter(pages_of(page))).url
            for other in documents:
                if (
                    other.rule.priority == document.rule.priority
                    and other.name < document.name
                    and (document.rule.matches(url) and other.rule.matches(url) and not other.rule.content)
                ):
                    text = f"{other.name!r} matches {url} as well and wins by its name; give one rule a priority"
                    warnings.append(LintFinding(document.location, "warning", text))
    return warnings
