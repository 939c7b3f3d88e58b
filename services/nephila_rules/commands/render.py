"""Results of rule commands for people: one line per rule, field, difference or example, safe for a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import typer
from nephila.cli.output import note
from nephila.cli.terminal import sanitize, sanitize_lines

from nephila_rules.compare import RuleComparison
from nephila_rules.fixtures import MAX_DIFFERENCES, FixtureResult
from nephila_rules.induction.make_rule import MadeRule, selector_text
from nephila_rules.run_rule import items_of
from nephila_rules.try_page import RuleTrial

MAX_SHOWN: Final = 20
"""Items, and links of each kind, of one page."""
MAX_VALUE_CHARS: Final = 100


def show_fixture(result: FixtureResult) -> None:
    """One line per rule and page, and one per difference."""
    typer.echo(
        sanitize(f"{'ok  ' if result.good else 'FAIL'} {result.rule} ({result.path}): {result.items} items", 500)
    )
    for text in result.differences:
        typer.echo(f"     {sanitize(text, 500)}")
    for text in [] if result.good else result.problems[:MAX_DIFFERENCES]:
        typer.echo(f"     note: {sanitize(text, 500)}")


def show_trial(trial: RuleTrial) -> None:
    """Items of a page, then on standard error the empty fields with near matches, problems and links."""
    rule, extraction = trial.rule.rule, trial.found
    items = items_of(extraction)
    note(f"{trial.page.url or trial.page.origin}: rule {rule.name}, version {rule.version}, {len(items)} items")
    for number, item in enumerate(items[:MAX_SHOWN]):
        if number:
            typer.echo("")
        for key, value in item.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            typer.echo(sanitize(f"{key}: {text}", 2000))
    if len(items) > MAX_SHOWN:
        note(f"… and {len(items) - MAX_SHOWN:,} more items (--json shows all)")
    for path in extraction.missing:
        note(f"{path} is empty" + ("" if trial.hints.get(path) else ": no similar selector matches the page"))
        for hint in trial.hints.get(path, []):
            sys.stderr.write(f"             {sanitize(hint, 300)}\n")
    for problem in extraction.problems:
        note(sanitize(problem, 500))
    for kind, links in (
        ("link", extraction.links),
        ("next page", extraction.next_pages),
        ("second page", extraction.second_pages),
    ):
        for link in (links or [])[:MAX_SHOWN]:
            note(f"{kind}: {sanitize(link.href, 300)}")
        if links is not None and len(links) > MAX_SHOWN:
            note(f"… and {len(links) - MAX_SHOWN:,} more")


def show_comparison(comparison: RuleComparison) -> None:
    """One line per field, and examples of changed values."""
    note(
        f"{comparison.pages:,} pages, {comparison.equal:,} with the same items;"
        f" {comparison.items_before:,} items before, {comparison.items_after:,} after"
    )
    for name, change in comparison.fields.items():
        counts = {"gained": change.gained, "lost": change.lost, "changed": change.changed}
        changes = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
        line = f"{name}: {change.before:,} before, {change.after:,} after{': ' + changes if changes else ''}"
        typer.echo(sanitize(line, 300))
        for url, old, new in change.examples:
            typer.echo("    " + sanitize(f"{url}: {_short(old)} -> {_short(new)}", 400))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"


def show_induction(made: MadeRule) -> None:
    """The rule on standard output; on standard error a line per field, and the values that were not found."""
    for name, choices in made.choices.items():
        if not choices:
            note(f"{name}: no selector gives the named values; check that they stand on the page as you wrote them")
            continue
        best = choices[0]
        there = f", on {best.filled} of {best.others} other pages" if best.others else ""
        note(sanitize(f"{name}: {selector_text(best)}{there}; {len(choices) - 1} alternatives (--json)", 400))
    if made.paths:
        for path in made.paths:
            typer.echo(str(path))
    elif made.text:
        for line in sanitize_lines(made.text):
            typer.echo(line)
