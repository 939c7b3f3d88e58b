"""`nephila dead …`: messages that no service could digest, listed and published again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError

if TYPE_CHECKING:
    from nephila.kernel.bus.kafka.claim_check import ClaimStore
    from nephila.kernel.bus.kafka.config import KafkaConfig
    from nephila.programs.cluster.dead_letters import Found

app = typer.Typer(add_completion=False, help="Messages that no service could digest (topic dead).")

Bootstrap = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="A broker; otherwise NEPHILA_BOOTSTRAP, or 127.0.0.1:9092.")
]
Config = Annotated[
    str, typer.Option("--config", metavar="FILE", help="The services' YAML file: bootstrap and kafka are read of it.")
]
Prefix = Annotated[str | None, typer.Option(metavar="TEXT", help="Before every name, for several systems on a broker.")]
Job = Annotated[str | None, typer.Option(metavar="UID", help="Those of one job only.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON, one object a line.")]


@app.command("list")
def list_letters(
    bootstrap: Bootstrap = None, config: Config = "", prefix: Prefix = None, job: Job = None, json: Json = False
) -> None:
    """What is there: place, time, service, message, URL, partition, attempts, error."""
    from nephila.programs.cluster import dead_letters

    settings, claim_store = _settings(bootstrap, config, prefix)

    async def tell() -> None:
        async for one in dead_letters.scan(settings, claim_store):
            if job is not None and one.letter.job != job:
                continue
            if json:
                print_json(_row(one))
            else:
                typer.echo(_line(one))

    asyncio.run(tell())


@app.command()
def replay(
    places: Annotated[
        list[str] | None, typer.Argument(metavar="[PLACE]...", help="PARTITION:OFFSET as nephila dead list has them.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are there (of --job).")] = False,
    bootstrap: Bootstrap = None,
    config: Config = "",
    prefix: Prefix = None,
    job: Job = None,
    json: Json = False,
) -> None:
    """Publish messages again on their topics. A page that can be parsed by now takes over its row; to replay a letter
    twice is harmless; letters stay for 30 days. Requests are not replayed: their leases bring them back."""
    from nephila.programs.cluster import dead_letters

    if bool(places) == everything:
        raise UsageError("name the letters as PARTITION:OFFSET, or say --all")
    settings, claim_store = _settings(bootstrap, config, prefix)
    done, refused = asyncio.run(_replayed(dead_letters.replay(settings, claim_store, places or (), job), json=json))
    if not json:
        typer.echo(f"{done} of {done + refused} published again")


async def _replayed(letters: AsyncIterator[Found], *, json: bool) -> tuple[int, int]:
    """Say what becomes of each; (how many were published, how many refused)."""
    done = refused = 0
    async for one in letters:
        done, refused = done + (not one.refused), refused + bool(one.refused)
        if json:
            print_json({"place": one.place, "replayed": not one.refused, "refused": one.refused})
        elif one.refused:
            note(f"{one.place}: {one.refused}")
    return done, refused


def _row(one: Found) -> dict[str, Any]:
    letter = one.letter
    return {
        "place": one.place,
        "at": round(one.at, 3),
        "service": letter.service,
        "topic": letter.topic,
        "message": one.kind,
        "job": letter.job,
        "url": letter.url,
        "url_key": letter.url_key.hex(),
        "partition": letter.partition,
        "attempts": letter.attempts,
        "error": letter.error,
        "bytes": len(letter.message),
        "refused": one.refused,
    }


def _line(one: Found) -> str:
    letter = one.letter
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.at))
    if one.problem:
        return f"{one.place}  {at}  {sanitize(one.problem)}"
    what = f"{one.kind or letter.topic} on {sanitize(letter.topic)}/{letter.partition}"
    tries = f"{letter.attempts} attempt{'' if letter.attempts == 1 else 's'}"
    why = f"{tries}: {sanitize(letter.error, 300)}"
    return "  ".join((one.place, at, sanitize(letter.service), what, sanitize(letter.url, 500), why))


def _settings(bootstrap: str | None, path: str, prefix: str | None) -> tuple[KafkaConfig, ClaimStore | None]:
    from nephila.kernel.bus.kafka.admin import hush
    from nephila.kernel.bus.kafka.claim_check import open_claim_store
    from nephila.kernel.bus.kafka.config import kafka_config

    hush()
    values: dict[str, Any] = {}
    if path:
        from nephila.programs.service.settings import transport_of

        values = transport_of(path)
    given = {"bootstrap": bootstrap, "prefix": prefix}
    config = kafka_config({**values, **{k: v for k, v in given.items() if v is not None}}, path or "command line")
    return config, open_claim_store(config.blobs)
