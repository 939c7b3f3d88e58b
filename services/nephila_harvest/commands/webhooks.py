"""`nephila webhooks …`: changes of pages delivered to URLs."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.output_directory import find_rows
from nephila_control.commands.jobs.table import print_table

if TYPE_CHECKING:
    from nephila_harvest.webhooks.sender import WebhookSender

app = typer.Typer(add_completion=False, help="Changes of pages, delivered to URLs (docs/harvest.md).")

Out = Annotated[str, typer.Option("--out", metavar="DIR|URL", help="Directory of the crawl, or a database's URL.")]
File = Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="The webhooks.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the webhook.")]


@app.command()
def run(
    file: File,
    out: Out = str(DEFAULT_OUT),
    once: Annotated[bool, typer.Option("--once", help="End when every change is delivered.")] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", metavar="PORT", min=0, max=65535, help="Serve health and metrics there."),
    ] = None,
) -> None:
    """Deliver changes until it is stopped. One program may do it for a directory or database at a time."""
    from nephila.kernel.process.process_setup import run_loop

    from nephila_harvest.send_webhooks import send

    source, _ = find_rows(out)

    def ready(sender: WebhookSender) -> None:
        note(f"delivering changes of {out} to the webhooks of {file}")

    sender = run_loop(send(Path(file), source, once=once, ready=ready, metrics_port=metrics_port))
    note(f"{sender.delivered.total():,} changes delivered, {sender.dead.total():,} dead letters")


@app.command("list")
def list_webhooks(out: Out = str(DEFAULT_OUT), json: Json = False) -> None:
    """Show the position of each webhook, its failures and its dead letters."""
    from nephila_harvest.change_feed import changes
    from nephila_harvest.webhooks.store import WebhookStore

    source, _ = find_rows(out)
    newest = changes(source, limit=1, newest=True).position
    with closing(WebhookStore(source)) as store:
        positions = store.positions()
    if json:
        for name, (position, dead) in positions.items():
            state = {"position": position.seq, "failures": position.failures, "failing_since": position.failing_since}
            print_json({"name": name, **state, "error": position.error, "newest": newest, "dead": dead})
        return
    rows = [("name", "position", "newest", "failures", "failing for", "dead", "last error")]
    for name, (position, dead) in positions.items():
        failing_s = time.time() - float(position.failing_since) if position.failing_since else 0.0
        numbers = (str(position.seq), str(newest), str(position.failures), f"{failing_s:,.0f} s", str(dead))
        rows.append((sanitize(name, 80), *numbers, sanitize(position.error, 200)))
    print_table(rows)


@app.command()
def replay(
    name: Name,
    out: Out = str(DEFAULT_OUT),
    since: Annotated[
        str, typer.Option(metavar="TIME|ID", help="Deliver again from here: a time, or behind an id or number.")
    ] = "",
    dead: Annotated[bool, typer.Option("--dead", help="Deliver the dead letters again.")] = False,
    json: Json = False,
) -> None:
    """Deliver changes again, with the same ids; a sender that runs continues from there."""
    from nephila_harvest.change_feed import changes
    from nephila_harvest.webhooks.store import WebhookStore

    if bool(since) == dead:
        raise UsageError("say --since TIME|ID, or --dead")
    source, _ = find_rows(out)
    with closing(WebhookStore(source)) as store:
        if store.position(name) is None:
            raise UserError(f"there is no webhook {name!r} here; see nephila webhooks list")
        if dead:
            letters = store.replay_dead(name)
            again = f"{name}: {letters:,} dead letters are delivered again"
            print_json({"webhook": name, "dead_letters": letters}) if json else typer.echo(again)
            return
        part = changes(source, since=since, limit=1)
        before = part.rows[0].seq - 1 if part.rows else part.position
        store.replay(name, before)
    if json:
        print_json({"webhook": name, "position": before})
    else:
        typer.echo(f"{name}: delivers again from behind {before}")


@app.command("dead")
def list_dead(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Of this webhook.")] = "",
    out: Out = str(DEFAULT_OUT),
    json: Json = False,
) -> None:
    """Show changes that were not delivered."""
    from nephila_harvest.webhooks.store import WebhookStore

    source, _ = find_rows(out)
    with closing(WebhookStore(source)) as store:
        letters = store.dead(name)
    for letter in letters:
        change = letter.row.change
        if json:
            print_json({"webhook": letter.name, "dead_at": letter.dead_at, "error": letter.error, **change._asdict()})
        else:
            columns = (letter.name, letter.dead_at, change.id, change.change, sanitize(change.url, 500))
            typer.echo("  ".join((*columns, sanitize(letter.error, 200))))
