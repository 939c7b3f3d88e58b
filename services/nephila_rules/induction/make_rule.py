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
        return [name for name, choices in self.choices.items() if not choices]

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "rule": self.text,
            "fields": {name: [_choice_as_json(choice) for choice in choices] for name, choices in self.choices.items()},
            "missing": self.missing,
            "pages": self.others,
            "files": [str(path) for path in self.paths],
        }


def _choice_as_json(choice: Choice) -> dict[str, Any]:
    return {
        "selector": selector_text(choice),
        "type": choice.type,
        "filled": choice.filled,
        "sample": list(choice.sample),
    }


def selector_text(choice: Choice) -> str:
    """A selection in one line, as `css: .price, attr: content`."""
    chosen = choice.selection
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
    """Make a rule from named values of pages. Raises `UsageError`, `UserError`."""
    name = name or (name_of(out) if out is not None else "rule")
    examples = _examples(page, values)
    stored = [page_of(stored_page.page, "", allow_private=allow_private, host_map=host_map) for stored_page in examples]
    for stored_page in stored:
        _check(stored_page)
    compared = _compared(others, stored) if others is not None else []
    named = [
        Example(stored_page.document, example.values, example.partial)
        for stored_page, example in zip(stored, examples, strict=True)
    ]
    induced = induce_in_child(named, [stored_page.document for stored_page in compared])
    choices = {field: induced[field] for field in names(examples)}
    chosen = {field: some[0] for field, some in choices.items() if some}
    if not chosen:
        return MadeRule("", choices, len(compared))
    text = rule_text(name, url_pattern([stored_page.url for stored_page in stored]), chosen)
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
    urls = {page.url for page in examples}
    start = {_folder(page.url) for page in examples}
    alike = (page for page in stored_pages(path) if page.url not in urls and _folder(page.url) in start)
    return list(islice((page for page in alike if tree_is_linear(page.body, depth_of(page.document))), MAX_OTHERS))


def _folder(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    segments = parts.path.split("/")
    return parts.netloc, segments[1] if len(segments) > 2 else "", len(segments)
