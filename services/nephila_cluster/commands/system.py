"""`nephila status`, `members`, `settings`: how a program or a system stands, its members, its live settings."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json, print_pairs
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UNREADABLE, UsageError
from nephila_control import requests, system_types
from nephila_control.commands.client import call
from nephila_control.commands.jobs.table import print_table
from nephila_control.commands.target import ControlTarget, with_target
from nephila_control.explain.explain import utc
from nephila_control.stores import store_text


@with_target()
def status(target: ControlTarget, json: Json = False) -> None:
    """Show the state of the program or system. Exit code 1 when something keeps it from working."""
    print_status(call(target, lambda control: control.status(requests.Empty())), as_json=json)


def print_status(state: system_types.Status, *, as_json: bool) -> None:
    """Print the state; each problem goes to standard error. Raises `typer.Exit` with code 1 if there is one."""
    if as_json:
        print_json(state)
    else:
        pairs = msgspec.structs.asdict(state)
        del pairs["transport"], pairs["problems"]
        pairs["storage"] = "; ".join(map(store_text, state.storage)).removeprefix("storage: ")
        print_pairs((name.replace("_", " "), _text(value)) for name, value in pairs.items())
        for problem in state.problems:
            note(problem)
    if state.problems:
        raise typer.Exit(1)


@with_target()
def members(target: ControlTarget, json: Json = False) -> None:
    """Show the programs that take part; pages and MB read are counted since the start of each."""
    programs = call(target, lambda control: control.list_members(requests.Empty())).members
    if json:
        print_json(programs)
        return
    rows: list[tuple[str, ...]] = [
        (
            "service",
            "name",
            "state",
            "version",
            "host",
            "address",
            "partitions",
            "in flight",
            "pages",
            "MB read",
            "cpu",
            "MB",
        )
    ]
    for member in programs:
        state = _state(member)
        texts = (
            member.service,
            sanitize(member.name),
            sanitize(state),
            member.version,
            sanitize(member.host),
            sanitize(member.address),
        )
        work = (f"{member.pages:,}" if member.pages else "-", f"{member.bytes / 1e6:,.1f}" if member.bytes else "-")
        counts = (len(member.partitions), member.in_flight)
        rows.append((*texts, *map(str, counts), *work, f"{member.cpu:.2f}", str(member.memory_bytes >> 20)))
    print_table(rows, left=6)


def _state(member: system_types.Member) -> str:
    """The state in the table: the reported one, with the problem, and since when there is no report."""
    reported = f"{member.state} ({member.problem})" if member.problem else member.state
    if not member.silent_since:
        return reported
    since = f"silent since {utc(member.silent_since)}"
    return since if member.state == "silent" else f"{reported}, {since}"


@with_target()
def settings(
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE...]", help="What to change; none: show.")
    ] = None,
    member: Annotated[
        str, typer.Option("--member", metavar="NAME", help="Of this member alone, see nephila service members.")
    ] = "",
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """Show or change live settings. NAME= takes the default back.

    log_level: debug, info, warning or error. Of downloaders: connections (concurrent fetches), speed (fetches started
    per second). Of schedulers: depth (links that lie deeper are not admitted).
    """
    if member and not changes:
        raise UsageError("--member needs NAME=VALUE; without it all settings are shown")
    request = _changes(changes or [], member)
    if request is None:
        answer = call(target, lambda control: control.get_settings(requests.Empty()))
    else:
        answer = call(target, lambda control: control.change_settings(request))
    if json:
        print_json(answer)
    else:
        print_pairs((name, _text(value)) for name, value in answer.settings.items())


def _changes(texts: list[str], member: str) -> system_types.ChangeSettings | None:
    """NAME=JSON; a value that is not JSON is a text, NAME= takes the default back."""
    if not texts:
        return None
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text[:100]!r} is not NAME=VALUE")
        try:
            values[name] = msgspec.json.decode(value) if value else None
        except UNREADABLE:
            values[name] = value
    try:
        return msgspec.convert({"settings": values, "member": member}, system_types.ChangeSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{' '.join(texts)[:200]}: {error}") from None


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items()) or None
    if isinstance(value, list):
        return ", ".join(map(str, value)) or None
    return None if value is None else str(value)
