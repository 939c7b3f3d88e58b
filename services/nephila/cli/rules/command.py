"""`nephila rules …`: rules as code - begin one, check it, test it on its stored page, try it on any page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nephila.cli.output import note, print_json
from nephila.cli.rules import live
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError

app = typer.Typer(add_completion=False, help="Rules: what is taken from the pages of a site.")

Places = Annotated[list[Path] | None, typer.Argument(metavar="[DIR|FILE...]", help="Rules; by default rules/.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Scripts = Annotated[bool, typer.Option("--scripts", help="Run the scripts of rules, in a confined process.")]
HERE = [Path("rules")]


@app.command()
def lint(places: Places = None, json: Json = False) -> None:
    """Read rules and say what is wrong or doubtful; exit code 1 when something is wrong."""
    from nephila.rulekit.lint import check

    findings = check(places or HERE)
    for one in findings.all:
        if json:
            print_json({"place": one.place, "level": one.level, "text": one.text})
        else:
            typer.echo(sanitize(f"{one.place}: {one.level}: {one.text}", 1000))
    if not json:
        note(f"{findings.rules} rules, {findings.errors} errors, {findings.warnings} warnings")
    raise typer.Exit(1 if findings.errors else 0)


@app.command("test")
def run_tests(
    places: Places = None,
    json: Json = False,
    scripts: Scripts = False,
    write: Annotated[bool, typer.Option("--write", help="Write what comes out as the expected items.")] = False,
) -> None:
    """Run each rule on the page beside it and compare with items.json; exit code 1 when one differs."""
    from nephila.rulekit import fixtures

    results = fixtures.run(places or HERE, scripts=scripts, write=write)
    failed = 0
    for result in results:
        failed += not result.good
        if json:
            print_json(result.as_json())
        else:
            fixtures.show(result)
    if not json:
        note(f"{len(results)} rules, {failed} failed")
    raise typer.Exit(1 if failed else 0)


@app.command("try")
def try_rule(
    target: Annotated[str, typer.Argument(metavar="URL|FILE", help="A page: stored, or fetched now.")],
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", "-r", metavar="DIR|FILE", help="Rules; by default rules/.")
    ] = None,
    name: Annotated[str, typer.Option("--rule", help="Name of the rule; by default the one for the page.")] = "",
    url: Annotated[str, typer.Option(help="Where a FILE came from.")] = "",
    json: Json = False,
    scripts: Scripts = False,
    allow_private: Annotated[bool, typer.Option("--allow-private", help="Reach private addresses.")] = False,
    host_map: Annotated[list[str] | None, typer.Option(metavar="PATTERN=ADDRESS", help="Resolve hosts.")] = None,
) -> None:
    """Show what a rule makes of a page and, where a field is empty, what nearly matched."""
    from nephila.rulekit import try_page

    page = try_page.page_of(target, url, allow_private=allow_private, host_map=host_map or [])
    trial = try_page.attempt(page, rules or HERE, name, scripts=scripts)
    if json:
        print_json(trial.as_json())
    else:
        try_page.show(trial)
    raise typer.Exit(0 if trial.found.items or not trial.rule.rule.fields else 1)


@app.command()
def apply(
    place: Annotated[
        Path,
        typer.Option("--from", metavar="DIR|FILE", help="A crawl with bodies (--keep-raw) or WARC files, or pages."),
    ],
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", "-r", metavar="DIR|FILE", help="Rules; by default rules/.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Put the items into DIR/nephila.db.")] = False,
    items: Annotated[bool, typer.Option("--items", help="Print the items as JSON lines.")] = False,
    job: Annotated[str, typer.Option(metavar="NAME", help="Only for this job of the crawl.")] = "",
    json: Json = False,
    scripts: Scripts = False,
) -> None:
    """Run rules on pages that were stored earlier, without a request, and compare with the items they had."""
    from nephila.rulekit import apply as rules_apply

    comparison, rows = rules_apply.apply(place, rules or HERE, write=write, job=job, scripts=scripts)
    if items:
        for row in rows:
            print_json(row)
    elif json:
        print_json(comparison.as_json())
    else:
        rules_apply.show(comparison)
    if write:
        note(f"{comparison.items_after:,} items of {comparison.pages:,} pages written")


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Rules as they were.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Rules as they are to be.")],
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[PAGES...]", help="Stored pages; by default those beside NEW.")
    ] = None,
    json: Json = False,
    scripts: Scripts = False,
) -> None:
    """Show field by field what two versions of a rule make of the same pages; exit code 1 when a value is lost."""
    from nephila.rulekit import apply as rules_apply

    comparison = rules_apply.diff(old, new, places or [], scripts=scripts)
    if json:
        print_json(comparison.as_json())
    else:
        rules_apply.show(comparison)
    raise typer.Exit(1 if any(change.lost for change in comparison.fields.values()) else 0)


@app.command("fmt")
def tidy(
    places: Places = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit code 1 if a file would change.")] = False,
) -> None:
    """Write rules in one style, keys in their order, comments kept."""
    from nephila.rulekit.fmt import reformatted

    changed = 0
    for path, text in reformatted(places or HERE):
        changed += 1
        typer.echo(f"{'would change' if check else 'changed'}: {path}")
        if not check:
            path.write_text(text, encoding="utf-8")
    raise typer.Exit(1 if check and changed else 0)


app.command()(live.deploy)
app.command("list")(live.list_rules)
app.command("delete")(live.delete_rule)
app.command()(live.status)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a rule, for editors and CI."""
    from nephila.kernel.documents.json_schema import json_schema
    from nephila.parser.rules.rule_schema import ParseRule

    print_json(json_schema(ParseRule))


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Of the new rule, as rules/shop.")],
    page: Annotated[str, typer.Option("--page", metavar="URL|FILE", help="A page of the site to begin with.")] = "",
    allow_private: Annotated[bool, typer.Option("--allow-private", help="Reach private addresses.")] = False,
) -> None:
    """Begin a rule: rule.yaml with a few fields, the page beside it, and its items as they are now."""
    from nephila.rulekit.init import create

    for path in create(directory, page, allow_private=allow_private):
        typer.echo(str(path))


def items_of(found: Any) -> list[Any]:
    """The items of an extraction as values."""
    import msgspec

    try:
        return [msgspec.json.decode(item) for item in found.items]
    except msgspec.DecodeError as error:
        raise UserError(f"an item is no JSON: {error}") from None
