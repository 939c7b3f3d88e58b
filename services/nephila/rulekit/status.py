"""How rules stood when a crawl ended, from what it left in its directory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import typer

from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError
from nephila.rulekit.health import RuleState, load


def show(directory: Path, *, as_json: bool) -> None:
    """A line per rule, those that are degraded first. Raises `UserError` where there is nothing."""
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory; --out names that of a crawl")
    states = sorted(load(directory), key=lambda one: (not one.degraded, one.rule))
    if not states and not as_json:
        note(f"no rule has read a page in {directory}, or the crawl there has not ended yet")
    for one in states:
        if as_json:
            print_json({name: getattr(one, name) for name in RuleState.__struct_fields__ if name != "state"})
        else:
            typer.echo(sanitize(f"{one.rule} (version {one.version}): {_told(one)}", 500))


def _told(one: RuleState) -> str:
    pages = f"{one.pages:,} pages"
    if not one.degraded:
        return f"well, {one.fill_rate:.0%} of its last pages have items; {pages}"
    since = datetime.fromtimestamp(one.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"degraded: {one.findings}; since {since}, {pages}"
