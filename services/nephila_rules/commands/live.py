"""`nephila rules deploy|list|delete|status`: the rules of a running program or system."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila_control import requests, rule_types
from nephila_control.api import Control
from nephila_control.commands.client import call
from nephila_control.commands.target import ControlTarget, with_target


@with_target()
def deploy(
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR|FILE...]", help="Rules; by default rules/.")
    ] = None,
    *,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the rules that are not in these files.")] = False,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Apply rules to a running program or system: all of them or, where one is wrong, none."""
    from nephila_rules.files import read_all

    documents = read_all(places or [Path("rules")])
    request = rule_types.ApplyRules(rules=[document.content for document in documents])
    names = {document.name for document in documents}

    async def work(control: Control) -> list[rule_types.RuleChange]:
        done = list((await control.apply_rules(request)).rules)
        if prune:
            gone = [rule.name for rule in (await control.list_rules(requests.Empty())).rules if rule.name not in names]
            done += [await control.delete_rule(rule_types.RuleName(name=name)) for name in gone]
        return done

    for applied in call(target, work):
        print_json(applied) if json else typer.echo(f"{applied.name}: {applied.verdict} (version {applied.version})")
        if applied.warning and not json:
            note(f"rule {applied.name}: {applied.warning}")


@with_target()
def list_rules(target: ControlTarget, json: Json = False) -> None:
    """Show the rules that pages are read by."""
    rules = call(target, lambda control: control.list_rules(requests.Empty())).rules
    if not rules and not json:
        note("there is no rule; see nephila rules deploy")
    for row in rules:
        urls = row.document.get("spec", {}).get("match", {}).get("url", "")
        url = urls if isinstance(urls, str) else ", ".join(map(str, urls))
        print_json(row) if json else typer.echo(sanitize(f"{row.name} (version {row.version}): {url}", 500))


@with_target()
def delete_rule(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A rule's name.")],
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Delete a rule; its items stay."""
    answer = call(target, lambda control: control.delete_rule(rule_types.RuleName(name=name)))
    print_json(answer) if json else typer.echo(f"{answer.name}: {answer.verdict}")


@with_target()
def status(target: ControlTarget, json: Json = False) -> None:
    """Show whether rules still fit their sites: now, or when the crawl in DIR ended."""
    rows = _health(target)
    if not rows and not json:
        note("no rule has read a page yet")
    for row in rows:
        print_json(row) if json else typer.echo(sanitize(f"{row.rule} (version {row.version}): {_line(row)}", 500))


def _health(target: ControlTarget) -> list[rule_types.RuleHealth]:
    from nephila_control.http.client import at_directory

    if target.is_directory and at_directory(target.out) is None:
        return _stored(target.out)
    return call(target, lambda control: control.rule_health(requests.Empty())).rules


def _stored(directory: Path) -> list[rule_types.RuleHealth]:
    from nephila_control.rule_state import fills

    from nephila_rules.health import RuleState, states

    names = set(rule_types.RuleHealth.__struct_fields__) & set(RuleState.__struct_fields__)
    return [
        rule_types.RuleHealth(**{name: getattr(state, name) for name in names}, fields=fills(state.state))
        for state in states(directory)
    ]


def _line(state: rule_types.RuleHealth) -> str:
    pages = f"{state.pages:,} pages"
    if not state.degraded:
        return f"healthy, {state.fill_rate:.0%} of its last pages have items; {pages}"
    since = datetime.fromtimestamp(state.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"degraded: {state.findings}; since {since}, {pages}"
