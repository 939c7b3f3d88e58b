"""What is wrong or doubtful about rules, beyond what cannot be read at all: one line each, with its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila.parser.rules.load import RuleDocument
from nephila.parser.rules.selectors import compiled
from nephila.parser.rules.spec import Field, Selection, leaves
from nephila.parser.rules.values import value_of
from nephila.rulekit.files import find, read
from nephila.rulekit.stored_pages import pages_of

_ANY: Final = ("https://zq7.invalid/", "http://a-b.zq8.invalid:8080/x/y.html?z=1", "https://192.0.2.7/q")
"""URLs that no rule can mean."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line."""

    place: str
    level: str
    """error or warning."""
    text: str


@dataclass(slots=True)
class Findings:
    """All of them."""

    rules: int = 0
    all: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """How many are errors."""
        return sum(one.level == "error" for one in self.all)

    @property
    def warnings(self) -> int:
        """How many are warnings."""
        return len(self.all) - self.errors


def check(places: Iterable[Path]) -> Findings:
    """Every rule of some places; a file that cannot be read does not hide the next."""
    findings = Findings()
    names: dict[str, RuleDocument] = {}
    for path in find(places):
        try:
            documents = read(path)
        except UserError as error:
            for one in (error, *getattr(error, "others", ())):
                place, _, text = str(one).partition(": ")
                findings.all.append(Finding(place, "error", text or str(one)))
            continue
        for document in documents:
            findings.rules += 1
            first = names.setdefault(document.name, document)
            if first is not document:
                text = f"the rule {document.name!r} comes twice, first at {first.location}"
                findings.all.append(Finding(document.location, "error", text))
            findings.all += [Finding(document.location, "warning", text) for text in warnings_of(document)]
    findings.all += _equal_priorities(list(names.values()))
    return findings


def warnings_of(document: RuleDocument) -> list[str]:
    """What one rule may not mean."""
    rule = document.rule
    told = []
    for pattern in rule.urls:
        if _is_any(pattern):
            told.append(f"match.url {pattern!a} matches every URL; every page of the job would be read by this rule")
        elif not pattern.startswith(("^", r"\A")):
            told.append(f"match.url {pattern!a} has no ^: it is searched in the whole URL, its query included")
    for follow_up in rule.follow_ups:
        told += [
            f"followUps.{follow_up.name}.url {pattern!a} matches every URL; first pages are none then"
            for pattern in follow_up.rule.urls
            if _is_any(pattern)
        ]
    if rule.fields and not any(field.required for _, field in leaves(rule.fields)):
        told.append("no field is required: a page that has none of them makes an empty item")
    for path, one in leaves(rule.fields):
        if one.selection.source == "xpath" and one.selection.expression.startswith("/") and "." in path:
            told.append(f"{path}: the xpath begins with /, so it looks at the whole page and not inside its group")
        for what, said in (("default", one.default), ("constant", one.selection.expression)):
            if said is not None and (what == "default" or one.selection == Selection(what, said)):
                told += [f"{path}: the {what} {said!a} is left out: {why}" for why in _wrong_type(one, said)]
        if one.default is not None and one.required:
            told.append(f"{path}: required has no effect beside a default")
    return told


def _wrong_type(field: Field, said: str) -> list[str]:
    """Why a text of the rule itself is not of its field's type."""
    try:
        value_of(field, said, lambda: _ANY[0])
    except ValueError as error:
        return [str(error)]
    return []


def _is_any(pattern: str) -> bool:
    return all(compiled("regex", pattern).search(url) for url in _ANY)


def _equal_priorities(documents: list[RuleDocument]) -> list[Finding]:
    """Rules of equal priority for one stored page: the name decides, which may not be meant."""
    told = []
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
                    text = f"{other.name!r} matches {url} as well and comes first by its name; give one a priority"
                    told.append(Finding(document.location, "warning", text))
    return told
