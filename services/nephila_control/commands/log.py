"""`nephila log`: who changed what over the control API, and when."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError

from nephila_control import system_types
from nephila_control.commands.client import call
from nephila_control.commands.rows import Limit
from nephila_control.commands.target import ControlTarget, with_target
from nephila_control.explain.explain import utc


@with_target()
def log(
    search: Annotated[str, typer.Argument(metavar="[TEXT]", help="Part of the object or of the change.")] = "",
    who: Annotated[str, typer.Option(metavar="NAME", help="Only of this token or user.")] = "",
    operation: Annotated[str, typer.Option(metavar="NAME", help="Only of this operation, as apply_job.")] = "",
    before: Annotated[str, typer.Option(metavar="ID", help="Continue behind the `next` of a list.")] = "",
    limit: Limit = 50,
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Show who changed what over the control API, the newest first."""
    fields = {"search": search, "who": who, "operation": operation, "before": before, "limit": limit}
    try:
        request = msgspec.convert(fields, system_types.ListControlLog)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
    page = call(target, lambda control: control.list_control_log(request))
    if json:
        print_json(page)
        return
    for entry in page.entries:
        person = f"{entry.who} for {entry.author}" if entry.author else entry.who
        texts = (sanitize(person, 200), entry.operation, sanitize(entry.subject, 200), sanitize(entry.change, 500))
        typer.echo(f"{utc(entry.at)}  " + "  ".join(text for text in texts if text))
    if page.next:
        note(f"older ones: --before {page.next}")
