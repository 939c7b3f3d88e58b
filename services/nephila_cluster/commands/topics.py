"""`nephila service topics …`: the topics of the route on a Kafka broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila_control.commands.target import broker_settings

if TYPE_CHECKING:
    from nephila_cluster.kafka.config import KafkaConfig

app = typer.Typer(add_completion=False, help="The topics of the route on a Kafka broker.")

Bootstrap = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|FILE",
        help="A broker, or the settings file of the services (TLS, SASL, prefix); otherwise NEPHILA_BOOTSTRAP, or "
        "127.0.0.1:9092.",
    ),
]
Prefix = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Prefix of topic and group names, for several systems on one broker.")
]


@app.command()
def apply(
    bootstrap: Bootstrap = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="P",
            help="Number of partitions (default 64): a power of two. To add some: nephila service topics grow.",
        ),
    ] = None,
    replication: Annotated[
        int, typer.Option(metavar="N", help="Copies of each partition; -1 is the broker's default.")
    ] = -1,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="TOPIC:KEY=VALUE",
            help="A setting of a topic, or of all with *: pages:retention.ms=86400000, '*:compression.type=zstd'; "
            "may be repeated.",
        ),
    ] = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Create the topics that are missing, set retention and the chosen settings, leave other settings as they are. Safe
    to repeat."""
    from nephila.kernel.topics import TOPICS

    from nephila_cluster.kafka.admin import topics as admin
    from nephila_cluster.kafka.admin.topic_settings import chosen

    config = _config(bootstrap, partitions, prefix)
    choices = chosen(settings or (), TOPICS)
    for change in asyncio.run(admin.apply(config, replication, choices=choices)):
        if json:
            changes = {key: [before, after] for key, before, after in change.changes}
            row = {"topic": config.prefix + change.name, "partitions": change.partitions, "created": change.created}
            print_json({**row, "changes": changes, "others": dict(change.others)})
        else:
            verb = "created" if change.created else "changed" if change.changes else "unchanged"
            changed = [f"{key} {before} -> {after}" for key, before, after in change.changes]
            typer.echo(
                _line(config.prefix + change.name, [f"{verb}, {change.partitions} partitions", *changed], change.others)
            )


@app.command()
def grow(
    to: Annotated[
        int, typer.Option("--to", metavar="P", help="The new number: the present one times 2, 4, 8 and so on.")
    ],
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="Longest time to wait for the schedulers.")
    ] = 60.0,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Split all partitions of a system, while it works. Hosts pause for some seconds; nothing is lost or fetched twice.
    The services' settings keep the number of partitions at the creation of the system. Safe to repeat."""
    from nephila_cluster.kafka import grow as kafka_grow

    config = _config(bootstrap, None, prefix)
    begun, new = asyncio.run(kafka_grow.grow(config, to, wait_s=wait_s))
    if json:
        print_json({"partitions": to, "new": new, "begun": begun})
    else:
        typer.echo(f"{to} partitions; {begun} of {new} new ones have begun")
    if begun < new:
        note("the schedulers split the others as soon as they run")


@app.command("list")
def list_topics(bootstrap: Bootstrap = None, prefix: Prefix = None, json: Json = False) -> None:
    """Which topics of the route are there, and which of their settings are not the route's own."""
    from nephila.kernel.topics import TOPICS

    from nephila_cluster.kafka.admin import topics as admin

    config = _config(bootstrap, None, prefix)
    there = {drift.name: drift for drift in asyncio.run(admin.compared(config))}
    for topic in TOPICS:
        drift = there.get(topic.name)
        count = drift.partitions if drift else 0
        differs = {key: [now, own] for key, now, own in drift.changes} if drift else {}
        others = drift.others if drift else ()
        if json:
            row = {"topic": config.prefix + topic.name, "partitions": count, "retention_s": topic.retention_s}
            print_json({**row, "differs": differs, "others": dict(others)})
        else:
            parts = [f"{count} partitions" if count else "missing"]
            parts += [f"{key} is {now}, the route's is {own}" for key, (now, own) in differs.items()]
            typer.echo(_line(config.prefix + topic.name, parts, others))


def _line(name: str, parts: list[str], others: tuple[tuple[str, str], ...]) -> str:
    also = [f"also set: {', '.join(f'{key}={value}' for key, value in others)}"] if others else []
    return f"{name}: {'; '.join([*parts, *also])}"


def _config(bootstrap: str | None, partitions: int | None, prefix: str | None) -> KafkaConfig:
    from nephila_cluster.kafka.admin.topics import hush

    hush()
    return broker_settings(bootstrap, prefix, partitions)
