"""`nephila rules induce`: a rule from named values, with its pages as tests where a directory is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.parser.page.html_tree import tree_is_linear

from nephila_rules.induction.child import induce_in_child
from nephila_rules.induction.examples import SUFFIXES, NamedPage, names, of_words, read_examples
from nephila_rules.induction.induce import MAX_OTHERS, Choice, Example
from nephila_rules.induction.rule_text import rule_text, url_pattern
from nephila_rules.init import name_of, write_files
from nephila_rules.run_rule import depth_of
from nephila_rules.stored_pages import StoredPage, stored_pages
from nephila_rules.try_page import page_of


@dataclass(frozen=True, slots=True)
class MadeRule:
    """A rule that was made, and how its selectors were chosen."""

    text: str
    """Its YAML; "" when no field has a selector."""
    choices: dict[str, list[Choice]]
    """Field → selections, the chosen one first."""
    others: int
    """Pages that selectors were compared on."""
    paths: list[Path] = field(default_factory=list)
    """Files that were written."""

    @property
    def missing(self) -> list[str]:
        """Fields for which no selection gives the named values."""
        return [name for name, found in self.choices.items() if not found]

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "rule": self.text,
            "fields": {name: [_choice_as_json(one) for one in found] for name, found in self.choices.items()},
            "missing": self.missing,
            "pages": self.others,
            "files": [str(path) for path in self.paths],
        }


def _choice_as_json(one: Choice) -> dict[str, Any]:
    return {"selector": selector_text(one), "type": one.type, "filled": one.filled, "sample": list(one.sample)}


def selector_text(one: Choice) -> str:
    """A selection in one line, as `css: .price, attr: content`."""
    chosen = one.selection
    parts = (
        (chosen.source, chosen.expression),
        ("attr", chosen.attr),
        ("regex", chosen.regex),
        (chosen.path, chosen.query),
    )
    return ", ".join(f"{key}: {value}" for key, value in parts if value)


def make_rule(
    page: str,
    values: Sequence[str],
    others: Path | None,
    out: Path | None,
    name: str,
    *,
    allow_private: bool,
    host_map: list[str],
) -> MadeRule:
    """See the module. Raises `UsageError`, `UserError`."""
    name = name or (name_of(out) if out is not None else "rule")
    examples = _examples(page, values)
    stored = [page_of(one.page, "", allow_private=allow_private, host_map=host_map) for one in examples]
    for one in stored:
        _check(one)
    compared = _compared(others, stored) if others is not None else []
    named = [Example(one.document, said.values, said.partial) for one, said in zip(stored, examples, strict=True)]
    found = induce_in_child(named, [one.document for one in compared])
    choices = {field: found[field] for field in names(examples)}
    chosen = {field: some[0] for field, some in choices.items() if some}
    if not chosen:
        return MadeRule("", choices, len(compared))
    text = rule_text(name, url_pattern([one.url for one in stored]), chosen)
    return MadeRule(text, choices, len(compared), write_files(out, text, stored) if out is not None else [])


def _examples(page: str, values: Sequence[str]) -> list[NamedPage]:
    if page.endswith(SUFFIXES) and "://" not in page:
        if values:
            raise UsageError(f"{page} names its values itself; leave out {values[0]!r}")
        return read_examples(Path(page))
    return [of_words(page, values)]


def _check(page: StoredPage) -> None:
    if not page.url:
        raise UsageError(f"the URL of {page.origin} is not known; begin the file with <!-- url: https://… -->")
    if not tree_is_linear(page.body, depth_of(page.document)):
        raise UserError(f"{page.origin} is nested too deeply to look for values in it")


def _compared(path: Path, examples: Sequence[StoredPage]) -> list[StoredPage]:
    """Stored pages of the same site and folder, the examples left out."""
    known = {one.url for one in examples}
    start = {_folder(one.url) for one in examples}
    alike = (one for one in stored_pages(path) if one.url not in known and _folder(one.url) in start)
    return list(islice((one for one in alike if tree_is_linear(one.body, depth_of(one.document))), MAX_OTHERS))


def _folder(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    segments = parts.path.split("/")
    return parts.netloc, segments[1] if len(segments) > 2 else "", len(segments)
