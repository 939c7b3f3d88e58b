"""`nephila rules …`: create, check, format, test, try, compare and apply rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.options import AlwaysJson
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError

from nephila_rules.commands import live
from nephila_rules.time_limit import TRY_S, TimeLimit

app = typer.Typer(add_completion=False, help="Rules: which fields are extracted from the pages of a site.")

Paths = Annotated[list[Path] | None, typer.Argument(metavar="[DIR|FILE...]", help="Rules; by default rules/.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Scripts = Annotated[bool, typer.Option("--scripts", help="Run the scripts of rules, in a confined process.")]
Functions = Annotated[
    str, typer.Option("--functions", metavar="DIR", help="Python files with the functions (py) of rules.")
]
Private = Annotated[bool, typer.Option("--allow-private", help="Reach loopback and private addresses.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host-map", metavar="PATTERN=ADDRESS", help="Resolve hosts like '*.x.test=127.0.0.1'."),
]
HERE = [Path("rules")]


@app.command()
def lint(paths: Paths = None, json: Json = False, functions: Functions = "") -> None:
    """Check rules for errors and doubtful statements; exit code 1 when there is an error."""
    from nephila_rules.lint import check

    findings = check(paths or HERE, functions)
    for finding in findings.all:
        if json:
            print_json({"place": finding.location, "level": finding.level, "text": finding.text})
        else:
            typer.echo(sanitize(f"{finding.location}: {finding.level}: {finding.text}", 1000))
    if not json:
        note(f"{findings.rules} rules, {findings.errors} errors, {findings.warnings} warnings")
    raise typer.Exit(1 if findings.errors else 0)


@app.command("test")
def run_tests(
    paths: Paths = None,
    json: Json = False,
    scripts: Scripts = False,
    functions: Functions = "",
    write: Annotated[bool, typer.Option("--write", help="Overwrite items.json with the current result.")] = False,
) -> None:
    """Run each rule on the page in its directory and compare with items.json; exit code 1 if one differs."""
    from nephila_rules import fixtures
    from nephila_rules.commands.render import show_fixture

    results = fixtures.run(paths or HERE, scripts=scripts, functions=functions, write=write)
    failed = 0
    for result in results:
        failed += not result.good
        if json:
            print_json(result.as_json())
        else:
            show_fixture(result)
    if not json:
        note(f"{len(results)} rules, {failed} failed")
    raise typer.Exit(1 if failed else 0)


@app.command("item-schema")
def print_item_schema(
    paths: Paths = None,
    name: Annotated[str, typer.Option("--rule", help="Name of the rule; by default all rules with fields.")] = "",
    json: AlwaysJson = True,
) -> None:
    """Print the JSON Schema of the items of each rule, one per line."""
    from nephila_rules.files import read_all
    from nephila_rules.item_schema import item_schema

    rules_with_fields = [
        document.rule for document in read_all(paths or HERE) if document.rule.fields and name in ("", document.name)
    ]
    if not rules_with_fields:
        where = ", ".join(map(str, paths or HERE))
        raise UsageError(
            f"no rule {name!r} with fields below {where}" if name else f"no rule with fields below {where}"
        )
    for rule in rules_with_fields:
        print_json(item_schema(rule))


@app.command("try")
def try_rule(
    target: Annotated[str, typer.Argument(metavar="URL|FILE", help="A page: stored, or fetched now.")],
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", "-r", metavar="DIR|FILE", help="Rules; by default rules/.")
    ] = None,
    name: Annotated[str, typer.Option("--rule", help="Name of the rule; by default the one for the page.")] = "",
    url: Annotated[str, typer.Option(help="URL of the page in a FILE.")] = "",
    json: Json = False,
    scripts: Scripts = False,
    functions: Functions = "",
    allow_private: Private = False,
    host_map: Hosts = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", min=0.1, max=3600.0, help="Of fetch and rules together.")
    ] = TRY_S,
) -> None:
    """Show the items of a rule on a page and, for empty fields, selectors that nearly match."""
    from nephila_rules import try_page
    from nephila_rules.commands.render import show_trial

    limit = TimeLimit(time_limit)
    page = try_page.page_of(target, url, allow_private=allow_private, host_map=host_map or [], limit=limit)
    trial = try_page.try_rule(page, rules or HERE, name, limit, scripts=scripts, functions=functions)
    if json:
        print_json(trial.as_json())
    else:
        show_trial(trial)
    raise typer.Exit(0 if trial.found.items or not trial.rule.rule.fields else 1)


@app.command()
def apply(
    source: Annotated[
        Path,
        typer.Option(
            "--from", "--out", metavar="DIR|FILE", help="A crawl with bodies (--keep-raw) or WARC files, or pages."
        ),
    ],
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", "-r", metavar="DIR|FILE", help="Rules; by default rules/.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Put the items into DIR/nephila.db.")] = False,
    items: Annotated[bool, typer.Option("--items", help="Print the items as JSON lines.")] = False,
    job: Annotated[str, typer.Option(metavar="NAME", help="Only for this job of the crawl.")] = "",
    json: Json = False,
    scripts: Scripts = False,
    functions: Functions = "",
) -> None:
    """Run rules on pages that were stored earlier, without a request, and compare with the stored items."""
    from nephila.programs.output_directory import OutputDirectory

    from nephila_rules import apply as rules_apply
    from nephila_rules.commands.render import show_comparison

    lock = OutputDirectory(rules_apply.directory_of(source)).locked() if write else None
    comparison, rows = rules_apply.apply(
        source, rules or HERE, job=job, scripts=scripts, functions=functions, lock=lock
    )
    if items:
        for row in rows:
            print_json(row)
    elif json:
        print_json(comparison.as_json())
    else:
        show_comparison(comparison)
    if write:
        note(f"{comparison.items_after:,} items of {comparison.pages:,} pages written")


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The old rules.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new rules.")],
    pages: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PAGES...]", help="Stored pages; default: those in the directory of NEW."),
    ] = None,
    json: Json = False,
    scripts: Scripts = False,
    functions: Functions = "",
) -> None:
    """Compare two versions of a rule on the same pages, field by field; exit code 1 when a value is lost."""
    from nephila_rules.apply import diff as compare_rules
    from nephila_rules.commands.render import show_comparison

    comparison = compare_rules(old, new, pages or [], scripts=scripts, functions=functions)
    if json:
        print_json(comparison.as_json())
    else:
        show_comparison(comparison)
    raise typer.Exit(1 if any(change.lost for change in comparison.fields.values()) else 0)


@app.command("fmt")
def format_files(
    paths: Paths = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit code 1 if a file would change.")] = False,
    json: Json = False,
) -> None:
    """Format rules: one style, keys in their order, comments kept."""
    from nephila_rules.fmt import reformatted

    changed = 0
    for path, text in reformatted(paths or HERE):
        changed += 1
        verdict = "would change" if check else "changed"
        print_json({"path": str(path), "verdict": verdict}) if json else typer.echo(f"{verdict}: {path}")
        if not check:
            path.write_text(text, encoding="utf-8")
    raise typer.Exit(1 if check and changed else 0)


app.command()(live.deploy)
app.command("list")(live.list_rules)
app.command("delete")(live.delete_rule)
app.command()(live.status)


@app.command()
def schema(json: AlwaysJson = True) -> None:
    """Print the JSON Schema of a rule, for editors and CI."""
    from nephila_control.http.json_schema import json_schema

    from nephila_rules.runtime.rule_schema import ParseRule

    print_json(json_schema(ParseRule))


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the new rule, as rules/shop.")],
    page: Annotated[str, typer.Option("--page", metavar="URL|FILE", help="A page of the site to start from.")] = "",
    allow_private: Private = False,
    host_map: Hosts = None,
    json: Json = False,
) -> None:
    """Create a rule: rule.yaml with a few fields, the page, and its current items."""
    from nephila_rules.init import create

    for path in create(directory, page, allow_private=allow_private, host_map=host_map or []):
        print_json({"path": str(path)}) if json else typer.echo(str(path))


@app.command()
def induce(
    page: Annotated[
        str, typer.Argument(metavar="PAGE|EXAMPLES.yaml", help="A page, or a file of pages and the values on them.")
    ],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE...]", help="Values as they stand on the page.")
    ] = None,
    pages: Annotated[
        Path | None, typer.Option("--pages", metavar="DIR|FILE", help="Stored pages on which selectors are compared.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write rule.yaml, the pages and their items there.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the rule; by default that of --out.")] = "",
    json: Json = False,
    allow_private: Private = False,
    host_map: Hosts = None,
) -> None:
    """Make a rule from values that stand on one to three pages; --pages are compared, too."""
    from nephila_rules.commands.render import show_induction
    from nephila_rules.induction.make_rule import make_rule

    made = make_rule(page, values or [], pages, out, name, allow_private=allow_private, host_map=host_map or [])
    if json:
        print_json(made.as_json())
    else:
        show_induction(made)
    raise typer.Exit(1 if made.missing else 0)
